"""Statements of SQL, carried out; reads, queries and what EXPLAIN shows."""
