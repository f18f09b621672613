"""What feeds tables from elsewhere, exactly once: streaming queries, other Delta tables, Debezium's messages."""
