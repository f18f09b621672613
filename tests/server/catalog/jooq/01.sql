select pg_catalog.pg_namespace.nspname from pg_catalog.pg_namespace order by pg_catalog.pg_namespace.nspname;
