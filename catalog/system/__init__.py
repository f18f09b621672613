"""PostgreSQL's catalog over ours: pg_catalog and information_schema, made when a query names them."""
