SELECT floor(extract(epoch from seen)/3600)*3600 AS "time", avg(price) AS price
    FROM orders
    WHERE seen BETWEEN '2024-01-01T00:00:00Z' AND '2024-02-01T00:00:00Z'
    GROUP BY 1 ORDER BY 1;
