SELECT * FROM pg_catalog.pg_foreign_server;
