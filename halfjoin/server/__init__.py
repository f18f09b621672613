"""The server: PostgreSQL's wire protocol over an engine."""
