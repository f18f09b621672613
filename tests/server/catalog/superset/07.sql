SELECT DATE_TRUNC('day', "at") AS "at", SUM("price") AS "SUM(price)" FROM "public"."orders"
JOIN (SELECT "customer_id" AS "customer_id__", SUM("price") AS "mme_inner__" FROM "public"."orders"
  GROUP BY "customer_id" ORDER BY "mme_inner__" DESC LIMIT 10) AS "series_limit" ON "customer_id" = "customer_id__"
GROUP BY DATE_TRUNC('day', "at") LIMIT 10000;
