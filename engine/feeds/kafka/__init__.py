"""Kafka: sources that read a topic into a table, and what sinks share with them."""
