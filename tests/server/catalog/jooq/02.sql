select exists (select 1 as one from information_schema.tables where (information_schema.tables.table_name = 'pg_constraint' and information_schema.tables.table_schema = 'pg_catalog'));
