SELECT "customer_id" AS "customer_id", count(*) AS "count" FROM "public"."orders"
WHERE "at" >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND "at" < TO_TIMESTAMP('2025-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY "customer_id" ORDER BY "count" DESC LIMIT 1000;
