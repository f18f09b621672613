"""SQLite in memory, with delta queries written by hand for query 3.

The tables have primary keys and the index that the join needs. A batch is one transaction of prepared statements, each
with `executemany`. For one table after the other the rows that go are taken out of the view and of the table, then
those that come are added, so the view is right in between. The batch is added up by row first. Nobody is told which
rows of the view changed.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import TypeAlias

import numpy as np

from examples.tpch import KEYS
from tests.benchmarks.peers.integers import BUILDING, DAY, Columns, Tables, integers

Rows: TypeAlias = list[tuple[int, ...]]
Changed: TypeAlias = dict[str, list[tuple[tuple[int, ...], int]]]  # rows and their diffs

SCHEMA = """
CREATE TABLE customer (c_custkey INTEGER PRIMARY KEY, c_mktsegment INTEGER NOT NULL);
CREATE TABLE orders (o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER NOT NULL, o_orderdate INTEGER NOT NULL,
    o_shippriority INTEGER NOT NULL);
CREATE INDEX orders_of ON orders (o_custkey);
CREATE TABLE lineitem (l_orderkey INTEGER NOT NULL, l_linenumber INTEGER NOT NULL, l_extendedprice INTEGER NOT NULL,
    l_discount INTEGER NOT NULL, l_shipdate INTEGER NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)) WITHOUT ROWID;
"""
KEPT = {
    "lines": """
CREATE TABLE kept (l_orderkey INTEGER, o_orderdate INTEGER, o_shippriority INTEGER, l_linenumber INTEGER,
    revenue INTEGER, PRIMARY KEY (l_orderkey, l_linenumber)) WITHOUT ROWID;
""",
    "groups": """
CREATE TABLE kept (l_orderkey INTEGER, o_orderdate INTEGER, o_shippriority INTEGER, n INTEGER, revenue INTEGER,
    PRIMARY KEY (l_orderkey, o_orderdate, o_shippriority)) WITHOUT ROWID;
CREATE INDEX emptied ON kept (n) WHERE n = 0;
""",
}
# The rows of the join that a row of a table is part of. CROSS JOIN keeps SQLite to this order.
PATHS = {
    "customer": f"""
SELECT l_orderkey, o_orderdate, o_shippriority, l_linenumber, l_extendedprice * (100 - l_discount) AS revenue
FROM orders CROSS JOIN lineitem ON l_orderkey = o_orderkey
WHERE o_custkey = ?1 AND ?2 = {BUILDING} AND o_orderdate < {DAY} AND l_shipdate > {DAY}""",
    "orders": f"""
SELECT l_orderkey, ?3 AS o_orderdate, ?4 AS o_shippriority, l_linenumber,
    l_extendedprice * (100 - l_discount) AS revenue
FROM customer CROSS JOIN lineitem
WHERE ?3 < {DAY} AND c_custkey = ?2 AND c_mktsegment = {BUILDING} AND l_orderkey = ?1 AND l_shipdate > {DAY}""",
    "lineitem": f"""
SELECT o_orderkey AS l_orderkey, o_orderdate, o_shippriority, ?2 AS l_linenumber, ?3 * (100 - ?4) AS revenue
FROM orders CROSS JOIN customer ON c_custkey = o_custkey
WHERE ?5 > {DAY} AND o_orderkey = ?1 AND o_orderdate < {DAY} AND c_mktsegment = {BUILDING}""",
}


class Sqlite:
    """Keeps the view in the table `kept`."""

    def __init__(self, tables: Tables, view: str) -> None:
        self._view, self._base = view, sqlite3.connect(":memory:", isolation_level=None)
        self._base.executescript(SCHEMA + KEPT[view])
        self._gone, self._come = ({name: _statements(name, view, sign) for name in PATHS} for sign in (-1, +1))
        Sqlite.apply(self, {name: [(row, 1) for row in rows] for name, rows in map(_rows, tables.items())})

    def prepare(self, batch: Tables) -> Changed:
        """The rows as tuples of Python, which SQLite takes."""
        return {name: [(row[:-1], row[-1]) for row in rows] for name, rows in map(_rows, batch.items())}

    def apply(self, batch: Changed) -> Rows | None:
        """Change the tables and the view in one transaction."""
        self._base.execute("BEGIN")
        self._carry_out(batch)
        self._base.execute("COMMIT")
        return None

    def _carry_out(self, batch: Changed) -> None:
        for name, changed in batch.items():
            net: Counter[tuple[int, ...]] = Counter()
            for row, diff in changed:
                net[row] += diff
            gone = [row for row, diff in net.items() if diff < 0]
            come = [row for row, diff in net.items() if diff > 0]
            self._change(name, gone, come)
        if self._view == "groups":
            self._base.execute("DELETE FROM kept WHERE n = 0")

    def _change(self, name: str, gone: Rows, come: Rows) -> None:
        """Take rows of a table out, and add others."""
        kept, table = self._gone[name]
        self._base.executemany(kept, gone)
        self._base.executemany(table, [row[: len(KEYS[name])] for row in gone])
        kept, table = self._come[name]
        self._base.executemany(kept, come)
        self._base.executemany(table, come)

    def contents(self) -> Columns:
        """The view's rows."""
        found = self._base.execute("SELECT * FROM kept")
        names = [column[0] for column in found.description]
        rows = np.array(found.fetchall(), np.int64).reshape(-1, len(names))
        return {name: rows[:, at] for at, name in enumerate(names) if name != "n"}


def _rows(table: tuple[str, object]) -> tuple[str, Rows]:
    name, rows = table
    return name, list(zip(*(column.tolist() for column in integers(rows).values()), strict=True))


def _statements(name: str, view: str, sign: int) -> tuple[str, str]:
    """What changes the view, and what changes the table, for a row that comes (+1) or goes (-1)."""
    path, keys = PATHS[name], " AND ".join(f"{key} = ?" for key in KEYS[name])
    places = {"customer": "?, ?", "orders": "?, ?, ?, ?", "lineitem": "?, ?, ?, ?, ?"}[name]
    table = f"INSERT INTO {name} VALUES ({places})" if sign > 0 else f"DELETE FROM {name} WHERE {keys}"
    if view == "groups":
        return (
            f"""
INSERT INTO kept SELECT l_orderkey, o_orderdate, o_shippriority, {sign} * count(*), {sign} * sum(revenue)
FROM ({path}) WHERE true GROUP BY l_orderkey, o_orderdate, o_shippriority
ON CONFLICT DO UPDATE SET n = n + excluded.n, revenue = revenue + excluded.revenue""",
            table,
        )
    if sign > 0:
        return f"INSERT INTO kept {path}", table
    return (
        f"DELETE FROM kept WHERE (l_orderkey, l_linenumber) IN (SELECT l_orderkey, l_linenumber FROM ({path}))",
        table,
    )
