select distinct nspname from pg_namespace;
