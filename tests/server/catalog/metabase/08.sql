SELECT DATE_TRUNC('month', "public"."orders"."at") AS "at", SUM("public"."orders"."price") AS "sum",
  COUNT(distinct "public"."orders"."customer_id") AS "count"
FROM "public"."orders" GROUP BY DATE_TRUNC('month', "public"."orders"."at")
ORDER BY DATE_TRUNC('month', "public"."orders"."at") ASC;
