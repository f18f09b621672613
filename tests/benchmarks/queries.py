"""Measures ad-hoc queries and changes: lookups beside scans and DuckDB, asking anew, aggregates beside DuckDB.

`python -m tests.benchmarks.queries [ROWS]` prints milliseconds (the median of several runs) and ratios. DuckDB reads
the same Arrow data. ROWS is the number of lines; an order has four of them, a customer ten orders.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa

import halfjoin as hj
from halfjoin.engine.statements.remembered import Remembered

LOOKUPS = {
    "lines of an order": "SELECT * FROM line WHERE o = 77",
    "a customer's lines": "SELECT l.* FROM customer c, orders o, line l "
                          "WHERE o.customer = c.c AND l.o = o.k AND c.c = 9",
    "a view by its key": "SELECT * FROM priced WHERE k = 77",
    "EXISTS": "SELECT k FROM orders WHERE k = 77 AND EXISTS (SELECT 1 FROM line l WHERE l.o = k AND l.price < 90)",
    "LEFT JOIN": "SELECT k, l.part FROM orders LEFT JOIN line l ON l.o = k AND l.price < 90 WHERE k = 77",
    "a total": "SELECT (SELECT count(*) FROM orders WHERE customer = c) AS n FROM customer WHERE c = 77",
    "one key or another": "SELECT * FROM orders WHERE k = 77 OR customer = 9",
    "recursion": "WITH RECURSIVE up AS (SELECT k, customer FROM orders WHERE k = 77 UNION SELECT o.k, o.customer "
                 "FROM up JOIN orders o ON o.k = up.customer) SELECT k FROM up",
    "in the past": "SELECT * FROM line WHERE o = 77 AS OF 1",
}
CHANGES = {
    "UPDATE": "UPDATE orders SET customer = customer + 1 WHERE k = {}",
    "DELETE": "DELETE FROM orders WHERE k = {}",
    "INSERT": "INSERT INTO orders VALUES ({}, 7)",
    "RETURNING": "UPDATE orders SET customer = 7 WHERE k = {} RETURNING k, customer",
    "ON CONFLICT": "INSERT INTO orders VALUES ({}, 7) ON CONFLICT (k) DO UPDATE SET customer = EXCLUDED.customer",
    "MERGE": "MERGE INTO orders USING (VALUES ({}, 7)) AS n (k, customer) ON orders.k = n.k WHEN MATCHED THEN "
             "UPDATE SET customer = n.customer WHEN NOT MATCHED THEN INSERT VALUES (n.k, n.customer)",
}  # fmt: skip
AGGREGATES = {
    "count, sum": "SELECT count(*) AS n, sum(price) AS total FROM line",
    "with a filter": "SELECT count(*) AS n, sum(price) AS total FROM line WHERE price < 50",
    "as of the past": "SELECT count(*) AS n, sum(price) AS total FROM line WHERE price < 50 AS OF 1",
    "a range of days": "SELECT count(*) AS n, sum(price) AS total FROM line "
                       "WHERE day BETWEEN date '1994-01-01' AND date '1994-12-31'",
    "IN": "SELECT count(*) AS n, sum(price) AS total FROM line WHERE price IN (1, 5, 7)",
    "a text": "SELECT count(*) AS n, sum(price) AS total FROM line WHERE mode = 'AIR'",
    "LIKE": "SELECT count(*) AS n FROM line WHERE mode LIKE 'R%'",
    "IS NOT NULL": "SELECT count(*) AS n, sum(price) AS total FROM line WHERE part IS NOT NULL",
    "numerics": "SELECT count(*) AS n, sum(amount) AS total FROM line WHERE amount < 50000",
    "three filters": "SELECT sum(price) AS total FROM line WHERE price < 50 AND part > 1000 AND mode = 'AIR'",
    "FILTER": "SELECT count(*) FILTER (WHERE price < 50) AS n, sum(price) FILTER (WHERE price > 70) AS total FROM line",
    "TPC-H 6": "SELECT sum(amount * discount) AS total FROM line WHERE day >= date '1994-01-01' "
               "AND day < date '1995-01-01' AND discount BETWEEN 0.05 AND 0.07 AND price < 24",
    "min, max": "SELECT min(price) AS least, max(day) AS last FROM line",
    "min, with a filter": "SELECT min(amount) AS least, max(day) AS last FROM line WHERE price < 50",
    "count(DISTINCT)": "SELECT count(DISTINCT part) AS n FROM line",
    "by group": "SELECT price, count(*) AS n FROM line GROUP BY price",
    "by group, filtered": "SELECT mode, count(*) AS n, sum(price) AS total FROM line WHERE price < 50 GROUP BY mode",
    "by many groups": "SELECT part, count(*) AS n, sum(price) AS total FROM line GROUP BY part",
    "by very many groups": "SELECT o, sum(price) AS total FROM line GROUP BY o",
    "HAVING": "SELECT o, count(*) AS n FROM line GROUP BY o HAVING count(*) > 4",
    "totals of totals": "SELECT sum(total) AS total, max(total) AS most FROM "
                        "(SELECT o, sum(price) AS total FROM line GROUP BY o) AS x",
    "by two keys": "SELECT o, part, count(*) AS n FROM line GROUP BY o, part",
    "more than average": "SELECT count(*) AS n FROM line WHERE price > (SELECT avg(price) FROM line)",
    "by two columns": "SELECT mode, price, count(*) AS n, sum(amount) AS total FROM line GROUP BY mode, price",
    "min by group": "SELECT mode, min(price) AS least, max(amount) AS most FROM line GROUP BY mode",
    "max by many groups": "SELECT part, max(day) AS last FROM line GROUP BY part",
    "by year": "SELECT extract(year FROM day) AS year, count(*) AS n, sum(price) AS total FROM line GROUP BY 1",
    "by month": "SELECT date_trunc('month', day)::date AS month, count(*) AS n, sum(price) AS total FROM line "
                "GROUP BY 1",
    "median": "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY price) AS middle FROM line",
    "medians": "SELECT mode, percentile_cont(0.5) WITHIN GROUP (ORDER BY price) AS middle FROM line GROUP BY mode",
    "numbered": "SELECT count(*) AS n FROM (SELECT row_number() OVER (PARTITION BY part ORDER BY amount, o) AS r "
                "FROM line) AS x WHERE r = 1",
    "a running sum": "SELECT count(*) AS n FROM (SELECT sum(price) OVER (PARTITION BY part ORDER BY amount) AS s "
                     "FROM line) AS x WHERE s > 100",
    "lag": "SELECT count(*) AS n FROM (SELECT price, lag(price) OVER (PARTITION BY part ORDER BY amount, o) AS p "
           "FROM line) AS x WHERE p < price",
    "TPC-H 1": "SELECT mode, sum(price) AS price, sum(amount) AS amount, sum(amount * (1 - discount)) AS paid, "
               "count(*) AS n FROM line WHERE day <= date '1998-09-02' GROUP BY mode",
    "a join": "SELECT count(*) AS n, sum(l.price) AS total FROM orders o JOIN line l ON l.o = o.k "
              "WHERE o.customer < 2000",
    "a join, by group": "SELECT o.customer, sum(l.price) AS total FROM orders o JOIN line l ON l.o = o.k "
                        "WHERE l.price < 5 GROUP BY o.customer",
    "keys of few rows": "SELECT count(*) AS n FROM line WHERE o IN (SELECT k FROM orders WHERE customer < 2000)",
    "keys of many rows": "SELECT count(*) AS n FROM line WHERE o IN (SELECT k FROM orders WHERE customer % 2 = 0)",
    "NOT IN": "SELECT count(*) AS n FROM line WHERE o NOT IN (SELECT k FROM orders WHERE customer < 2000)",
    "EXISTS": "SELECT count(*) AS n FROM orders o WHERE EXISTS (SELECT 1 FROM line l WHERE l.o = o.k AND l.price < 5)",
    "NOT EXISTS": "SELECT count(*) AS n FROM orders o "
                  "WHERE NOT EXISTS (SELECT 1 FROM line l WHERE l.o = o.k AND l.price < 5)",
    "LEFT JOIN": "SELECT count(*) AS n, sum(l.price) AS total FROM orders o LEFT JOIN line l "
                 "ON l.o = o.k AND l.price < 5",
    "a join, in keys": "SELECT o.k FROM orders o WHERE o.k IN (SELECT l.o FROM line l JOIN customer c ON c.c = l.part "
                       "WHERE l.price < 5)",
}  # fmt: skip
INEXACT = {  # DuckDB adds floats up one by one
    "variance": "SELECT mode, variance(price) AS spread FROM line GROUP BY mode",
    "correlation": "SELECT corr(price, part) AS r FROM line",
}
ROWS = {
    "all": "SELECT * FROM line",
    "those of a filter": "SELECT * FROM line WHERE price < 50",
    "some columns": "SELECT o, amount FROM line WHERE price < 5",
    "the first in an order": "SELECT * FROM line ORDER BY amount DESC NULLS LAST, o, price LIMIT 10",
}
MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]


def tables(rows: int) -> dict[str, pa.Table]:
    """Customers, their orders and the lines of these."""
    orders, random = np.arange(rows // 4), np.random.default_rng(1)
    length = 4 * len(orders)
    line = {
        "o": np.repeat(orders, 4), "price": random.integers(0, 100, length),
        "mode": pa.array(MODES).take(pa.array(random.integers(0, len(MODES), length))),
        "part": pa.array(random.integers(0, max(1, rows // 30), length), mask=random.random(length) < 0.1),
        "amount": numerics(random.integers(90_000, 10_000_000, length)),
        "discount": numerics(random.integers(0, 11, length)),
        "day": pa.array(random.integers(8_000, 10_500, length).astype(np.int32)).cast(pa.date32()),
    }  # fmt: skip
    return {
        "customer": pa.table({"c": np.arange(max(1, rows // 40))}),
        "orders": pa.table({"k": orders, "customer": orders // 10}),
        "line": pa.table(line),
    }


def numerics(cents: np.ndarray[Any, Any]) -> pa.Array:
    """Numbers of cents as numerics."""
    words = np.stack([cents, cents >> 63], axis=1)
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(cents), [None, pa.py_buffer(words)])


def filled(data: dict[str, pa.Table]) -> hj.Engine:
    """An engine with the tables, indexes on what joins them, and a view."""
    engine = hj.Engine(clock="own", retain=1_000)
    engine.execute("CREATE TABLE customer (c bigint PRIMARY KEY); CREATE TABLE orders (k bigint PRIMARY KEY, "
                   "customer bigint); CREATE TABLE line (o bigint, price bigint, mode text, part bigint, "
                   "amount numeric(15,2), discount numeric(15,2), day date)")  # fmt: skip
    engine.apply(data, time=1)
    engine.execute("CREATE INDEX ON orders (customer); CREATE INDEX ON line (o)")
    engine.execute("CREATE MATERIALIZED VIEW priced AS SELECT o.k, l.price FROM orders o JOIN line l ON l.o = o.k")
    engine.execute("CREATE INDEX ON priced (k)")
    engine.apply({"line": pa.table({"o": [5], "price": [5]})}, time=2)
    return engine


def median(call: Callable[[], object], runs: int) -> float:
    """Milliseconds of a call, after a first one that is not counted."""
    call()
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        found.append(1000 * (time.perf_counter() - start))
    return statistics.median(found)


def main(rows: int) -> None:
    """Print the tables."""
    data = tables(rows)
    engine, duck = filled(data), duckdb.connect(config={"threads": 1})
    for name, table in data.items():
        duck.register(name, table)
    duck.register("priced", engine.read("priced"))
    print(f"{rows:,} lines\n\nlookup{'':20}ms   new key  without memory      scan    DuckDB  scan/lookup")
    for name, sql in LOOKUPS.items():
        warm = median(lambda sql=sql: engine.query(sql), 21)  # type: ignore[misc]
        keys = (re.sub(r"(?<== )[0-9]+", str(key), sql, count=1) for key in count(1_000))
        new = median(lambda keys=keys: engine.query(next(keys)), 21)  # type: ignore[misc]
        with patch.object(Remembered, "find", lambda *_: None):
            cold = median(lambda sql=sql: engine.query(sql), 9)  # type: ignore[misc]
            with patch("halfjoin.planner.filling.known_of", lambda *_: None):
                scan = median(lambda sql=sql: engine.query(sql), 3)  # type: ignore[misc]
        plain = sql.removesuffix(" AS OF 1")
        theirs = median(lambda sql=plain: duck.sql(sql).to_arrow_table(), 5)  # type: ignore[misc]
        print(f"{name:22}{warm:8.2f}{new:10.2f}{cold:16.2f}{scan:10.1f}{theirs:10.1f}{scan / warm:13.0f}")
    print(f"\nchange of a row{'':12}ms  without memory")
    changed = hj.Engine()
    changed.execute("CREATE TABLE orders (k bigint PRIMARY KEY, customer bigint)")
    changed.apply({"orders": data["orders"]})
    for number, (name, sql) in enumerate(CHANGES.items()):
        texts = (sql.format(1_000 * (number + 1) + key + (rows if name == "INSERT" else 0)) for key in count())
        known = median(lambda texts=texts: changed.execute(next(texts)), 51)  # type: ignore[misc]
        with patch.object(Remembered, "find", lambda *_: None):
            cold = median(lambda texts=texts: changed.execute(next(texts)), 21)  # type: ignore[misc]
        print(f"{name:22}{known:8.2f}{cold:16.2f}")
    for title, queries in (("aggregate", {**AGGREGATES, **INEXACT}), ("rows", ROWS)):
        print(f"\n{title:26}ms    DuckDB     ratio")
        for name, sql in queries.items():
            ours = median(lambda sql=sql: engine.query(sql), 3)  # type: ignore[misc]
            plain = sql.removesuffix(" AS OF 1")
            theirs = median(lambda sql=plain: duck.sql(sql).to_arrow_table(), 5)  # type: ignore[misc]
            print(f"{name:22}{ours:8.1f}{theirs:10.1f}{ours / theirs:10.1f}")
    print(f"{'engine.read':22}{median(lambda: engine.read('line'), 3):8.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6_000_000)
