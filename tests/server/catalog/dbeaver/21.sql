SELECT i.*,c.relnamespace FROM pg_catalog.pg_inherits i,pg_catalog.pg_class c
WHERE i.inhrelid={oid of orders} AND c.oid=i.inhparent ORDER BY i.inhseqno;
