"""More than one row of a scalar subquery is an error of the expression that reads it, and goes when the rows go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import halfjoin
from halfjoin.errors import DataError, UnsupportedSQL

MORE = "more than one row returned by a subquery used as an expression"


@pytest.fixture
def engine() -> Iterator[halfjoin.Engine]:
    with halfjoin.Engine() as engine:
        engine.execute("CREATE TABLE a (k integer, x integer); CREATE TABLE b (k integer, x integer)")
        yield engine


def rows(engine: halfjoin.Engine) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in engine.query("SELECT * FROM v").to_pylist()), key=str)


READS = {
    "SELECT k, (SELECT b.x FROM b WHERE b.k = a.k) AS y FROM a": [(1, 3)],
    "SELECT k, (SELECT 1 FROM b WHERE b.k = a.k) AS y FROM a": [(1, 1)],
    "SELECT k, (SELECT b.x + a.x FROM b WHERE b.k = a.k) AS y FROM a": [(1, 8)],
    "SELECT k FROM a WHERE x > (SELECT b.x FROM b WHERE b.k = a.k)": [(1,)],
    "SELECT k, (SELECT b.x FROM b) AS y FROM a": [(1, 3)],
    "SELECT k FROM a WHERE (k, x) > (SELECT b.k, b.x FROM b WHERE b.k = a.k)": [(1,)],
}


@pytest.mark.parametrize("sql", READS)
def test_a_second_row_is_an_error_until_it_goes(engine: halfjoin.Engine, sql: str) -> None:
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    engine.apply({"a": [{"k": 1, "x": 5}], "b": [{"k": 1, "x": 3}]})
    assert rows(engine) == READS[sql]
    engine.apply({"b": [{"k": 1, "x": 4}]})
    with pytest.raises(DataError, match=MORE):
        rows(engine)
    engine.apply({"b": [{"k": 1, "x": 4, "__diff": -1}]})
    assert rows(engine) == READS[sql]


@pytest.mark.parametrize("sql", READS)
def test_a_second_null_is_an_error_until_it_goes(engine: halfjoin.Engine, sql: str) -> None:
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    engine.apply({"a": [{"k": 1, "x": 5}], "b": [{"k": 1, "x": None}]})
    alone = rows(engine)
    engine.apply({"b": [{"k": 1, "x": None}]})
    with pytest.raises(DataError, match=MORE):
        rows(engine)
    engine.apply({"b": [{"k": 1, "x": None, "__diff": -1}]})
    assert rows(engine) == alone


@pytest.mark.parametrize("sql", [
    "SELECT k, CASE WHEN x > 9 THEN (SELECT b.x FROM b WHERE b.k = a.k) END AS y FROM a",
    "SELECT k, coalesce(x, (SELECT b.x FROM b WHERE b.k = a.k)) AS y FROM a",
    "SELECT k, (SELECT max(b.x) FROM b WHERE b.k = a.k) AS y FROM a",
    "SELECT k, (SELECT b.x FROM b WHERE b.k = a.k ORDER BY b.x LIMIT 1) AS y FROM a",
    "SELECT k, (SELECT b.x FROM b WHERE b.k = a.k + 1) AS y FROM a",
])  # fmt: skip
def test_rows_that_nothing_reads_are_no_error(engine: halfjoin.Engine, sql: str) -> None:
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    engine.apply({"a": [{"k": 1, "x": 5}], "b": [{"k": 1, "x": 3}, {"k": 1, "x": 4}]})
    assert len(rows(engine)) == 1


def test_an_error_in_a_looked_up_side_is_the_views(engine: halfjoin.Engine) -> None:
    engine.execute("""CREATE MATERIALIZED VIEW v AS SELECT a.k, s.y FROM a
        LEFT JOIN (SELECT b.k, 10 / c.x AS y FROM b JOIN b AS c ON c.k = b.x) AS s ON s.k = a.k""")
    engine.apply({"a": [{"k": 1, "x": 5}], "b": [{"k": 1, "x": 7}, {"k": 7, "x": 0}]})
    with pytest.raises(DataError, match="division by zero"):
        rows(engine)
    engine.apply({"b": [{"k": 7, "x": 0, "__diff": -1}]})
    assert rows(engine) == [(1, None)]


REFUSED = {
    "SELECT (SELECT k, x FROM b) AS y FROM a": "subquery must return only one column",
    "SELECT k FROM a WHERE (k, x) IN (SELECT k FROM b)": "subquery has too few columns",
    "SELECT k FROM a WHERE k IN (SELECT k, x FROM b)": "subquery has too many columns",
    "SELECT k FROM a WHERE (k, x) = (SELECT k FROM b)": "subquery has too few columns",
    "SELECT a.k FROM a FULL JOIN b ON b.k = a.k AND EXISTS (SELECT 1 FROM b AS c WHERE c.k = a.x AND c.x = b.x)":
        "may read one side only",
    "SELECT a.k FROM a LEFT JOIN b ON mz_now() < a.x": "in the condition of an outer or semi-join",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_refused(engine: halfjoin.Engine, sql: str) -> None:
    with pytest.raises(UnsupportedSQL, match=REFUSED[sql]):
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
