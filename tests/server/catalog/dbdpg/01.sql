SELECT
pg_catalog.quote_ident(uk_ns.nspname),
pg_catalog.quote_ident(uk_class.relname),
pg_catalog.quote_ident(uk_col.attname),
pg_catalog.quote_ident(fk_ns.nspname),
pg_catalog.quote_ident(fk_class.relname),
pg_catalog.quote_ident(fk_col.attname),
colnum.i,
CASE constr.confupdtype
WHEN 'c' THEN 0 WHEN 'r' THEN 1 WHEN 'n' THEN 2 WHEN 'a' THEN 3 WHEN 'd' THEN 4 ELSE -1
END,
CASE constr.confdeltype
WHEN 'c' THEN 0 WHEN 'r' THEN 1 WHEN 'n' THEN 2 WHEN 'a' THEN 3 WHEN 'd' THEN 4 ELSE -1
END,
pg_catalog.quote_ident(constr.conname), pg_catalog.quote_ident(uk_constr.conname),
CASE
WHEN constr.condeferrable = 'f' THEN 7
WHEN constr.condeferred = 't' THEN 6
WHEN constr.condeferred = 'f' THEN 5
ELSE -1
END,
CASE coalesce(uk_constr.contype, 'u')
WHEN 'u' THEN 'UNIQUE' WHEN 'p' THEN 'PRIMARY'
END,
pg_catalog.quote_ident(uk_type.typname), pg_catalog.quote_ident(fk_type.typname)
FROM pg_catalog.pg_constraint constr
JOIN pg_catalog.pg_class uk_class ON constr.confrelid = uk_class.oid
JOIN pg_catalog.pg_namespace uk_ns ON uk_class.relnamespace = uk_ns.oid
JOIN pg_catalog.pg_class fk_class ON constr.conrelid = fk_class.oid
JOIN pg_catalog.pg_namespace fk_ns ON fk_class.relnamespace = fk_ns.oid
JOIN pg_catalog.generate_series(1, pg_catalog.current_setting('max_index_keys')::integer) colnum(i)
ON colnum.i <= pg_catalog.array_upper(constr.conkey,1)
JOIN pg_catalog.pg_attribute uk_col ON uk_col.attrelid = constr.confrelid AND uk_col.attnum = constr.confkey[colnum.i]
JOIN pg_catalog.pg_type uk_type ON uk_col.atttypid = uk_type.oid
JOIN pg_catalog.pg_attribute fk_col ON fk_col.attrelid = constr.conrelid AND fk_col.attnum = constr.conkey[colnum.i]
JOIN pg_catalog.pg_type fk_type ON fk_col.atttypid = fk_type.oid
JOIN pg_catalog.pg_depend dep ON (
dep.classid = 'pg_catalog.pg_constraint'::regclass
AND dep.objid = constr.oid
AND dep.objsubid = 0
AND dep.deptype = 'n'
AND dep.refclassid = 'pg_catalog.pg_class'::regclass
AND dep.refobjsubid=0
)
JOIN pg_catalog.pg_class idx ON (
idx.oid = dep.refobjid AND idx.relkind='i'
)
LEFT JOIN pg_catalog.pg_depend dep2 ON (
dep2.classid = 'pg_catalog.pg_class'::regclass
AND dep2.objid = idx.oid
AND dep2.objsubid = 0
AND dep2.deptype = 'i'
AND dep2.refclassid = 'pg_catalog.pg_constraint'::regclass
AND dep2.refobjsubid = 0
)
LEFT JOIN pg_catalog.pg_constraint uk_constr ON (
uk_constr.oid = dep2.refobjid AND uk_constr.contype IN ('p','u')
)
WHERE uk_class.relname = 'customer' AND uk_ns.nspname = 'public'
AND uk_class.relkind ~ 'r|p'
AND fk_class.relkind ~ 'r|p'
AND constr.contype = 'f'
ORDER BY constr.conname, colnum.i;
SELECT pg_catalog.pg_index_column_has_property(indexrelid, 1, 'asc'), pg_catalog.pg_index_column_has_property(indexrelid, 1, 'desc'), pg_catalog.pg_index_column_has_property(indexrelid, 1, 'nulls_first'), pg_catalog.pg_index_column_has_property(indexrelid, 1, 'nulls_last')
FROM pg_index
WHERE indrelid IN (SELECT oid FROM pg_class WHERE relname = 'orders');
