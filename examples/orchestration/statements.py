"""The statements of the pipelines beside this file: define once, load a day again and again, check the view."""

from __future__ import annotations

DEFINE = [
    "CREATE TABLE IF NOT EXISTS sales (day date, shop text, amount numeric(10, 2), PRIMARY KEY (day, shop))",
    "CREATE MATERIALIZED VIEW IF NOT EXISTS totals AS SELECT shop, sum(amount) AS total FROM sales GROUP BY shop",
]

# A day replaces itself: a run that is repeated, or that failed halfway, leaves what one run leaves.
LOAD = """
    INSERT INTO sales (day, shop, amount) VALUES (%(day)s, %(shop)s, %(amount)s)
    ON CONFLICT (day, shop) DO UPDATE SET amount = excluded.amount
"""

CHECK = "SELECT count(*) = 0 FROM totals WHERE total < 0"  # of its first row every value must be true
