"""A source that follows tables of a PostgreSQL server through logical replication, without a broker between them."""
