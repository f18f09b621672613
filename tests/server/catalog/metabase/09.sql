SELECT SUBSTRING("source"."name" FROM 1 FOR 1234) AS "substring"
FROM (SELECT "public"."customer"."name" AS "name" FROM "public"."customer") AS "source" LIMIT 10000;
