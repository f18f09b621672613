"""A query with known keys reads the rows that it finds, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange import blocks
from halfjoin.engine.join.known import KnownRows
from halfjoin.engine.linear.operators import LinearOperator
from halfjoin.engine.updates.updates import Updates

ROWS = 50_000
LINES = 3  # of an order

QUERIES = {  # with the rows that each finds, in all its tables
    "SELECT * FROM orders WHERE k = 77": 1,
    "SELECT * FROM orders WHERE k IN (5, 6, NULL, 6.0)": 2,
    "SELECT * FROM orders WHERE k = $1": 1,
    "SELECT * FROM orders WHERE k = ANY ($1)": 2,
    "SELECT * FROM orders WHERE k = 77 OR k = 78": 2,
    "SELECT * FROM orders WHERE k = 77 OR name IN ('n77', 'n78')": 2,
    "SELECT * FROM orders WHERE (k = 77 OR customer = 9 OR k = 9 AND name = 'n9') AND name <> 'n8'": 11,
    "SELECT line.* FROM orders JOIN line ON line.o = orders.k WHERE orders.k = 77 OR orders.name = 'n77'": 1 + LINES,
    "SELECT line.* FROM orders JOIN line ON line.o = orders.k WHERE orders.k = 77": 1 + LINES,
    "SELECT line.* FROM orders LEFT JOIN line ON line.o = orders.k WHERE orders.k = 77": 1 + LINES,
    "SELECT l.* FROM orders o JOIN line l ON l.o = o.k WHERE o.customer = 9": 10 + 10 * LINES,
    "SELECT count(*) AS n, sum(price) AS total FROM line WHERE o = 77": LINES,
    "SELECT k FROM orders WHERE name = 'n77' ORDER BY k LIMIT 3": 1,
    "SELECT * FROM priced WHERE k = 77": LINES,
    "SELECT k FROM orders WHERE k = 77 AND 10 / (k - 77 + 1) > 0": 1,
    "SELECT o.k FROM orders o JOIN (VALUES (1), (2)) v (x) ON o.k = v.x": 2,
    "SELECT o.k FROM orders o JOIN unnest(ARRAY[1, 2]) v (x) ON o.k = v.x": 2,
    "SELECT * FROM orders WHERE k IN (VALUES (1), (2), (1))": 5,
    "SELECT * FROM line WHERE o IN (SELECT k FROM orders WHERE customer = 9)": 10 + 10 * LINES,
    "SELECT o.k FROM orders o WHERE EXISTS (SELECT 1 FROM line l WHERE l.o = o.k AND l.o = 77)": LINES + 1,
}  # fmt: skip
SCANNED = {
    "SELECT * FROM orders WHERE k > 49998": "scans orders", "SELECT * FROM line WHERE price = 1": "scans line",
    "SELECT k FROM orders WHERE k = 77 OR name > 'n99'": "scans orders",
    "SELECT k FROM orders WHERE k::double precision = 77": "scans orders",  # two bigints may be one double
}  # fmt: skip
PARAMS = {"SELECT * FROM orders WHERE k = $1": [77], "SELECT * FROM orders WHERE k = ANY ($1)": [[77, 78]]}


def filled(folder: Path | None = None, **more: Any) -> hj.Engine:
    engine = hj.Engine(folder, clock="own", retain=100, **more)
    engine.execute("CREATE TABLE orders (k bigint PRIMARY KEY, customer integer, name text)")
    engine.execute("CREATE TABLE line (o bigint, price integer)")
    engine.execute("CREATE INDEX ON orders (customer); CREATE INDEX ON orders (name); CREATE INDEX ON line (o)")
    engine.execute("CREATE MATERIALIZED VIEW priced AS SELECT o.k, o.name, l.price FROM orders o JOIN line l "
                   "ON l.o = o.k")  # fmt: skip
    engine.execute("CREATE INDEX ON priced (k)")
    keys = np.arange(ROWS)
    engine.apply({
        "orders": pa.table({"k": keys, "customer": pa.array(keys % (ROWS // 10), pa.int32()),
                            "name": [f"n{key}" for key in keys.tolist()]}),
        "line": pa.table({"o": keys.repeat(LINES), "price": pa.array(np.arange(ROWS * LINES), pa.int32())}),
    }, time=1)  # fmt: skip
    engine.apply({"orders": hj.deletes(pa.table({"k": [3]}))}, time=2)
    engine.apply({"line": pa.table({"o": [4], "price": pa.array([7], pa.int32())})}, time=3)
    return engine


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """Counts the rows that operators see and that are copied out of runs."""
    count, operate, take, select = 0, LinearOperator.__call__, Updates.take, Updates.filter

    def operated(self: LinearOperator, updates: Updates, errors: list[Updates]) -> Updates:
        nonlocal count
        count += len(updates)
        return operate(self, updates, errors)

    def taken(self: Updates, rows: Any) -> Updates:
        nonlocal count
        count += len(rows)
        return take(self, rows)

    def filtered(self: Updates, mask: Any) -> Updates:
        nonlocal count
        count += len(self)
        return select(self, mask)

    monkeypatch.setattr(LinearOperator, "__call__", operated)
    monkeypatch.setattr(Updates, "take", taken)
    monkeypatch.setattr(Updates, "filter", filtered)

    def since() -> int:
        nonlocal count
        found, count = count, 0
        return found

    yield since


def test_a_lookup_examines_the_rows_that_it_finds(examined: Callable[[], int]) -> None:
    engine = filled()
    for sql, found in QUERIES.items():
        params = PARAMS.get(sql)
        for time in (None, 1, 2):
            examined()
            engine.query(sql, params, as_of=time)
            assert examined() <= 8 * found + 8, (sql, time)


def test_few_keys_that_conditions_leave_are_looked_up(examined: Callable[[], int]) -> None:
    engine, condition = filled(), "SELECT k FROM orders WHERE customer < {}"
    for many, found in ((5, 50 * LINES), (ROWS // 10 - 1, (ROWS - 10) * LINES)):
        examined()
        line = engine.query(f"SELECT * FROM line WHERE o IN ({condition.format(many)})")
        assert line.num_rows in range(found - 2 * LINES, found + 2)  # an order has gone, another one has one line more
        if many == 5:  # all orders are read, and copied since one has gone, but few lines
            assert examined() <= 3 * ROWS + 30 * found


def test_a_query_without_a_fitting_index_scans(
    examined: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "FEW", 1 << 40)  # a scan passes over blocks of larger tables
    engine = filled()
    for sql, said in SCANNED.items():
        examined()
        engine.query(sql)
        assert examined() >= ROWS, sql
        assert f"as a query: {said}" in engine.explain(sql)


def test_explain_says_how_a_query_begins() -> None:
    engine = filled()
    for sql, said in {
        "SELECT * FROM orders WHERE k = 77": "looks up 1 key in orders(k)",
        "SELECT * FROM orders WHERE k IN (5, 6)": "looks up 2 keys in orders(k)",
        "SELECT * FROM priced WHERE k = 77": "looks up 1 key in priced(k)",
        "SELECT l.* FROM orders o JOIN line l ON l.o = o.k WHERE o.name = 'x'": "looks up 1 key in orders(name)",
        "SELECT k FROM orders WHERE k = 77 UNION ALL SELECT price FROM line":
            "looks up 1 key in orders(k), scans line",
        "SELECT count(*) AS n FROM line": "scans line",
        "SELECT k FROM orders WHERE k = 77 OR name = 'n8' OR k IN (NULL, 78)":
            "looks up 2 keys in orders(k), looks up 1 key in orders(name)",
    }.items():  # fmt: skip
        assert f"as a query: {said}" in engine.explain(sql).splitlines(), sql
        assert engine.execute(f"EXPLAIN {sql}") is not None


def test_lookups_by_one_index_are_one_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, asked, find = filled(), list[int](), KnownRows.__call__
    engine.execute("CREATE INDEX ON line (o, price)")

    def noted(self: KnownRows, *args: Any) -> Iterator[Updates]:
        asked.append(len(self.codes))
        return find(self, *args)

    monkeypatch.setattr(KnownRows, "__call__", noted)
    pairs = [f"o = {key} AND price = {key * LINES}" for key in range(100)] + ["o = NULL AND price = 1"]
    assert engine.query(f"SELECT o FROM line WHERE {' OR '.join(pairs)}").num_rows == 100
    assert asked == [100]  # pair by pair, each asks whether those before it find a row, too


def test_lookups_find_rows_in_files(tmp_path: Path) -> None:
    with filled(tmp_path / "w") as engine:
        expected = {sql: engine.query(sql, PARAMS.get(sql)).num_rows for sql in QUERIES}
        engine.flush()
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        for sql, rows in expected.items():
            assert engine.query(sql, PARAMS.get(sql)).num_rows == rows, sql
