"""Incremental view maintenance in SQL."""
