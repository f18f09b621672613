with table_privileges as (
  select NULL as role, t.schemaname as schema, t.objectname as table,
    pg_catalog.has_any_column_privilege(current_user, format('%I.%I', t.schemaname, t.objectname), 'update') as update,
    pg_catalog.has_any_column_privilege(current_user, format('%I.%I', t.schemaname, t.objectname), 'select') as select,
    pg_catalog.has_any_column_privilege(current_user, format('%I.%I', t.schemaname, t.objectname), 'insert') as insert,
    pg_catalog.has_table_privilege(current_user, format('%I.%I', t.schemaname, t.objectname), 'delete') as delete
  from (
    select schemaname, tablename as objectname from pg_catalog.pg_tables
    union
    select schemaname, viewname as objectname from pg_views
    union
    select schemaname, matviewname as objectname from pg_matviews
  ) t
  where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema'
    and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')
)
select t.* from table_privileges t order by 2, 3;
