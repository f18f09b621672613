SELECT pg_catalog.pg_get_viewdef({oid of big}, true);
