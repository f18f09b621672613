SELECT x.oid, x.relname, x.relkind, x.relnamespace FROM pg_catalog.pg_class x
WHERE x.relkind in ('r','v','m') AND x.relname LIKE 'ord%' ESCAPE '^' ORDER BY x.relname LIMIT 100;
