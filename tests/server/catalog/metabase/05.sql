SELECT "tmp"."table-schema", "tmp"."table-name",
  TRIM(BOTH '"' FROM "pg_catalog"."pg_get_indexdef"("tmp"."ci_oid", "tmp"."pos", FALSE)) AS "field-name"
FROM (SELECT "n"."nspname" AS "table-schema", "ct"."relname" AS "table-name", "ci"."oid" AS "ci_oid",
    ("information_schema"."_pg_expandarray"("i"."indkey"))."n" AS "pos"
  FROM "pg_catalog"."pg_class" AS "ct"
  INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "ct"."relnamespace" = "n"."oid"
  INNER JOIN "pg_catalog"."pg_index" AS "i" ON "ct"."oid" = "i"."indrelid"
  INNER JOIN "pg_catalog"."pg_class" AS "ci" ON "ci"."oid" = "i"."indexrelid"
  WHERE ("pg_catalog"."pg_get_expr"("i"."indpred", "i"."indrelid") IS NULL)
    AND n.nspname !~ '^information_schema|catalog_history|pg_' AND ("n"."nspname" IN ('public', 'sales'))) AS "tmp"
WHERE "tmp"."pos" = 1;
