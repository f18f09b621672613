"""Sources that feed tables exactly once: streaming queries, other Delta tables, Debezium messages."""
