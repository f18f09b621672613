-- What each customer has spent. The rows of `orders` come from anywhere: the view follows them without dbt.
SELECT customer, sum(amount) AS total, count(*) AS orders
FROM {{ ref('orders') }}
GROUP BY customer
