"""The definitions of tables, views, indexes and sinks, and their catalog."""
