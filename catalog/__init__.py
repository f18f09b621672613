"""What exists: tables, views, arrangements and their frontiers, as plain models."""
