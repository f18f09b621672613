SELECT a.attnum, a.attname
FROM pg_attribute a
WHERE a.attrelid = {oid of orders}
AND a.attnum IN (2,6);
