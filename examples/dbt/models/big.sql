-- A view over a view: customers who have spent 100 or more.
SELECT customer, total FROM {{ ref('totals') }} WHERE total >= 100
