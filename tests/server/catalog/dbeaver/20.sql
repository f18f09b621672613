SELECT sa.* FROM pg_catalog.pg_stat_activity sa WHERE sa.state = 'idle in transaction';
