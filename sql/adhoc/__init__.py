"""Queries that are answered once: split into what the engine computes and what DuckDB groups and sorts."""
