SELECT  nspname
        FROM    pg_catalog.pg_namespace
        ORDER BY 1;
