"""The query law: a query's answer is the contents of a view of it, as of every time, and its ORDER BY is obeyed."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from tests.oracle.choice import Seeded
from tests.oracle.queries import Queries
from tests.oracle.rows import bag
from tests.oracle.schema import TABLES, random_row

pytest_plugins = ("tests.support.postgres",)

TIMES = 3
QUERIES = 8


@pytest.mark.parametrize("seed", range(8))
def test_a_query_is_the_contents_of_its_view(seed: int) -> None:
    choices = Seeded(1000 + seed)
    engine, views = hj.Engine(retain=100), dict[str, str]()
    for table in TABLES:
        engine.execute(table.ddl)
    for number in range(QUERIES):
        sql = Queries(choices).query()
        try:
            engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
            views[f"v{number}"] = sql
        except hj.UnsupportedSQL:
            with pytest.raises(hj.UnsupportedSQL):
                engine.query(sql)
    assert len(views) > QUERIES // 2
    for time in range(1, TIMES + 1):
        batch = {}
        for table in TABLES:
            rows = [random_row(choices, table) for _ in range(choices.integer(0, 6))]
            kept = {row[0] if table.key else number: row for number, row in enumerate(rows)}
            batch[table.name] = table.arrow([(row, time, 1) for row in kept.values() if time == 1 or not table.key])
        engine.apply(batch, time=time)
        for name, sql in views.items():
            assert bag(engine.query(sql)) == bag(engine.read(name)), f"at {time}: {sql}"
    for time in range(1, TIMES):
        for name, sql in views.items():
            assert bag(engine.query(sql, as_of=time)) == bag(engine.read(name, as_of=time)), f"as of {time}: {sql}"


VALUES = {
    "integer": ["2", "-1", "0", "NULL", "2"], "double precision": ["'NaN'", "1.5", "'-Infinity'", "NULL", "'Infinity'"],
    "numeric(38,4)": ["1.5", "-12345678901234567890.5", "99999999999999999999.25", "NULL", "0"],
    "text": ["'b'", "'B'", "'ä'", "NULL", "''", "'a'"], "boolean": ["true", "false", "NULL"],
    "date": ["'2024-01-01'", "'1960-05-05'", "NULL"], "timestamp": ["'2024-01-01 10:00'", "NULL", "'1960-01-01'"],
    "time": ["'10:00'", "NULL", "'00:00:01'"], "bytea": [r"'\x00ff'", r"'\x01'", "NULL", r"'\x'"],
    "integer[]": ["ARRAY[1,2]", "ARRAY[1]", "NULL", "ARRAY[NULL]::integer[]", "ARRAY[]::integer[]", "ARRAY[0,9]"],
    "interval": ["interval '1 month'", "interval '29 days'", "interval '-1 hour'", "NULL", "interval '31 days'"],
}  # fmt: skip
ORDERS = ("", "DESC", "NULLS FIRST", "DESC NULLS LAST")
ASCENDING = {
    "integer": [-1, 0, 2, 2], "text": ["", "B", "a", "b", "ä"], "boolean": [False, True],
    "integer[]": [[], [0, 9], [1], [1, 2], [None]],
}  # fmt: skip


def answer(type: str, order: str, more: str = "") -> list[Any]:
    listed = ", ".join(f"({value}::{type})" for value in VALUES[type])
    return [str(x) for x in hj.Engine().query(f"SELECT x FROM (VALUES {listed}) v (x) ORDER BY x {order} {more}")
            .column(0).to_pylist()]  # fmt: skip


@pytest.mark.parametrize("type", VALUES)
def test_every_type_has_an_order(type: str) -> None:
    ascending = answer(type, "")
    assert ascending[-1] == "None" and len(ascending) == len(VALUES[type])
    if type in ASCENDING:
        assert ascending[:-1] == list(map(str, ASCENDING[type]))
    assert answer(type, "NULLS FIRST") == ["None", *ascending[:-1]]
    assert answer(type, "DESC") == ascending[::-1]
    assert answer(type, "DESC NULLS LAST") == [*ascending[:-1][::-1], "None"]
    for order in ORDERS:
        assert answer(type, order, "LIMIT 2 OFFSET 1") == answer(type, order)[1:3]


def test_postgresql_orders_values_alike(postgres: Any) -> None:
    for type, values in VALUES.items():
        listed = ", ".join(f"({number}, {value}::{type})" for number, value in enumerate(values))
        for order in ORDERS:
            sql = f"SELECT n FROM (VALUES {listed}) v (n, x) ORDER BY x {order}, n"
            expected = [n for (n,) in postgres.execute(sql).fetchall()]
            assert hj.Engine().query(sql).column(0).to_pylist() == expected, (type, order)


def test_ties_are_in_the_order_of_the_columns() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer, s text); INSERT INTO t VALUES (2, 'b'), (1, 'c'), (2, 'a'), (1, NULL)")
    for _ in range(2):
        assert engine.query("SELECT s, k FROM t ORDER BY k").to_pylist() == [
            {"s": "c", "k": 1}, {"s": None, "k": 1}, {"s": "a", "k": 2}, {"s": "b", "k": 2}]
        assert engine.query("SELECT s FROM t ORDER BY k DESC LIMIT 1").to_pylist() == [{"s": "a"}]
        assert engine.query("SELECT s FROM t LIMIT 2").to_pylist() == [{"s": "a"}, {"s": "b"}]


def test_a_plain_view_means_its_query() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer); INSERT INTO t VALUES (1), (1), (2)")
    engine.execute("CREATE VIEW p AS SELECT k, count(*) FROM t GROUP BY k")
    assert engine.query("SELECT * FROM p ORDER BY k").to_pylist() == [{"k": 1, "count": 2}, {"k": 2, "count": 1}]
    assert engine.query("SELECT max(count) AS m FROM p WHERE k = 2").to_pylist() == [{"m": 1}]


def test_rows_with_negative_counts_are_refused() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer)")
    engine.apply({"t": [{"k": 1, "__diff": -1}, {"k": 2}]})
    for sql in ("SELECT k FROM t", "SELECT k FROM t ORDER BY k LIMIT 1", "SELECT k FROM t WHERE k = 1 ORDER BY 1"):
        with pytest.raises(hj.DataError, match="holds a row -1 times"):
            engine.query(sql)
    assert engine.query("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 0}]


def test_a_query_needs_no_more_memory_than_the_engine_has() -> None:
    with hj.Engine(memory="64MB") as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.execute("INSERT INTO t SELECT * FROM generate_series(1, 300000)")
        with pytest.raises(hj.DataError, match="needs more memory"):
            engine.query("SELECT k, lpad('x', 300, 'y') AS s FROM t ORDER BY k")
        assert engine.query("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 300_000}]
