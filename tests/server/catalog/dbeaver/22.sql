SELECT DISTINCT dep.deptype, dep.classid, dep.objid, cl.relkind, attr.attname
FROM pg_depend dep
LEFT JOIN pg_class cl ON dep.objid=cl.oid
LEFT JOIN pg_attribute attr ON dep.objid=attr.attrelid AND dep.objsubid=attr.attnum
WHERE dep.refobjid={oid of customer} AND dep.deptype = 'x';
