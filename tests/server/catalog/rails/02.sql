SELECT a.attnum, a.attname
FROM pg_attribute a
WHERE a.attrelid = {oid of customer}
AND a.attnum IN (3);
