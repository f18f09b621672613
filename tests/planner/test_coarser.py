"""Groups of ROLLUP, CUBE and GROUPING SETS that a query makes of finer ones are those that a view makes of the rows."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import at_once
from halfjoin.planner.cutting import groups
from halfjoin.planner.reduces import coarser
from tests.oracle.answers import assert_same
from tests.oracle.rows import tuples

SCHEMA = """
    CREATE TABLE s (id bigint PRIMARY KEY, k integer, a text, b text, x numeric(8,2), f double precision);
    CREATE TABLE d (k integer PRIMARY KEY, n text, c text)
"""
SUMS = "sum(s.x) AS p, count(*) AS i, count(s.x) AS j, avg(s.f) AS m, stddev_samp(s.f) AS v, bool_or(s.x > 3) AS o"
JOINED = "FROM s JOIN d ON d.k = s.k GROUP BY"
QUERIES = (
    f"SELECT a, b, {SUMS} {JOINED} ROLLUP (a, b)", f"SELECT n, c, {SUMS} {JOINED} CUBE (n, c)",
    f"SELECT n, a, c, grouping(a) AS g, {SUMS} {JOINED} GROUPING SETS ((n, a, c), (n, c), (a, c), (c), ())",
    f"SELECT n, a, c, {SUMS} {JOINED} GROUPING SETS ((n, a), (c), ())",
    f"SELECT n, c, sum(s.x) AS p, max(s.x) AS t {JOINED} ROLLUP (n, c)",
    f"SELECT n, c, sum(s.x) AS p, count(DISTINCT s.x) AS t {JOINED} ROLLUP (n, c)",
)  # fmt: skip


def rows(first: int, last: int) -> list[dict[str, Any]]:
    """Rows with NULLs, and with keys that have no partner."""
    return [{"id": i, "k": i % 4 if i % 7 else None, "a": "xyz"[i % 3], "b": None if i % 5 == 0 else "pq"[i % 2],
             "x": i if i % 6 else None, "f": i / 3} for i in range(first, last)]  # fmt: skip


@pytest.mark.parametrize("least", [1, at_once.FROM])
@pytest.mark.parametrize("sql", QUERIES)
def test_answers_are_those_of_views_and_of_duckdb(sql: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "FROM", least)  # rows of finer groups that are added up together
    engine, duck = hj.Engine(), duckdb.connect()
    engine.execute(f"{SCHEMA}; CREATE MATERIALIZED VIEW v AS {sql}")
    assert_same(tuples(engine.query(sql)), tuples(engine.read("v")), sql)  # the group of all rows, of no rows
    engine.apply({"s": rows(0, 40), "d": [{"k": k, "n": f"n{k % 2}", "c": "c" if k else None} for k in range(3)]})
    engine.apply({"s": hj.deletes([{"id": i} for i in range(5, 12)])})
    engine.apply({"s": hj.upserts(rows(38, 60))})
    assert_same(tuples(engine.query(sql)), tuples(engine.read("v")), sql)
    for table in "sd":
        duck.register("rows", engine.read(table))
        duck.execute(f"CREATE TABLE {table} AS SELECT * FROM rows")
    assert_same(tuples(engine.query(sql)), duck.execute(sql).fetchall(), sql)


@pytest.mark.parametrize(("sql", "many"), [*zip(QUERIES, (2, 3, 4, 1, 0, 0), strict=True)])
def test_only_the_finest_groups_read_the_rows(sql: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, real = list[object](), coarser.rows_of

    def spy(*args: Any) -> Any:
        made.append(args)
        return real(*args)

    monkeypatch.setattr(groups, "rows_of", spy)
    engine = hj.Engine()
    engine.execute(f"{SCHEMA}; CREATE MATERIALIZED VIEW v AS {sql}")
    assert made == []  # a view keeps sums of the rows for each
    engine.query(sql)
    assert len(made) == many
