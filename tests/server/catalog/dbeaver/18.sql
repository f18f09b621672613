SELECT c.oid,c.* FROM pg_catalog.pg_collation c WHERE c.collnamespace='public'::regnamespace ORDER BY c.oid;
