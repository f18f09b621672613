SELECT count(*) AS "count" FROM "public"."orders" WHERE "public"."orders"."at" >= DATE_TRUNC('month', NOW() + INTERVAL '-12 month');
