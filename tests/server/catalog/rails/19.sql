SELECT attr.attname, nsp.nspname, seq.relname
FROM pg_class      seq,
pg_attribute  attr,
pg_depend     dep,
pg_constraint cons,
pg_namespace  nsp
WHERE seq.oid           = dep.objid
AND seq.relkind       = 'S'
AND attr.attrelid     = dep.refobjid
AND attr.attnum       = dep.refobjsubid
AND attr.attrelid     = cons.conrelid
AND attr.attnum       = cons.conkey[1]
AND seq.relnamespace  = nsp.oid
AND cons.contype      = 'p'
AND dep.classid       = 'pg_class'::regclass
AND dep.refobjid      = '"sales"."line"'::regclass;
