select exists (select 1 as one from information_schema.tables where information_schema.tables.table_name = 'column_column_usage');
