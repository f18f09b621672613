"""Queries whose joins compare what may fail of several tables: each table is found by a key, and what fails is an error
only for rows that are complete."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest

import halfjoin as hj
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements import changing, querying
from halfjoin.engine.statements.evaluating import planned_query
from halfjoin.planner.plan import Join
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.parse.parse import parse_query
from tests.oracle.answers import assert_same
from tests.oracle.rows import tuples

SCHEMA = """
    CREATE TABLE t (x integer, y integer); CREATE TABLE s (k integer, y integer); CREATE TABLE u (a integer, b integer)
"""
SUMS = "SELECT t.x, s.k, u.b FROM t JOIN s ON s.k = t.y JOIN u ON u.a = t.x + s.y"
QUERIES = (
    SUMS,
    "SELECT t.x, u.b, v.b AS c FROM t, s, u, u AS v WHERE s.k = t.y AND u.a = t.x + s.y AND v.a = u.b - s.k",
    "SELECT count(*) AS n FROM t, s, u WHERE s.k = t.y AND u.a + u.b = t.x * s.y",
    "SELECT t.x, u.b FROM t JOIN s ON s.k = t.y JOIN u ON u.a = t.x + s.y AND u.b IS NOT DISTINCT FROM t.x - s.k",
    "SELECT t.x FROM t JOIN s ON s.k = t.y WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.x + s.y AND u.b > 1)",
    "SELECT z.x, u.b FROM (SELECT t.x + s.y AS x, coalesce(s.y, t.y) AS y FROM t JOIN s ON s.k = t.y) z "
    "JOIN u ON u.a = z.x JOIN s AS r ON r.k = u.b + z.y",
)  # fmt: skip


def _plan(engine: hj.Engine, sql: str) -> list[Join]:
    state: State = closed(engine._state)
    made = planned_query(state, bind_query(parse_query(sql), state.catalog, sql).relation, daring=True)
    return [node for node in made.nodes if isinstance(node, Join)]


def _filled(rows: int, seed: int) -> tuple[hj.Engine, Any]:
    engine, other, draw = hj.Engine(), duckdb.connect(), random.Random(seed)
    for run in (engine.execute, other.execute):
        run(SCHEMA)
    for name in "tsu":
        values = ", ".join(f"({draw.choice(['NULL', draw.randrange(9)])}, {draw.randrange(5)})" for _ in range(rows))
        for run in (engine.execute, other.execute):
            run(f"INSERT INTO {name} VALUES {values}")
    return engine, other


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sql", QUERIES)
def test_answers_are_duckdbs(sql: str, seed: int) -> None:
    engine, other = _filled(30, seed)
    assert_same(tuples(engine.query(sql)), other.execute(sql).fetchall(), sql)


@pytest.mark.parametrize("sql", QUERIES[:4])
def test_no_table_is_met_by_every_row(sql: str) -> None:
    engine, _ = _filled(300, 1)
    paths = [branch.paths[branch.fill] for join in _plan(engine, sql) for branch in join.branches]
    assert all(stage.half_join.probe for path in paths for stage in path.stages)


def test_what_fails_is_an_error_of_complete_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[bool]()

    def prepare(state: State, relation: Any, *, daring: bool = False) -> Any:
        tried.append(daring)
        return made(state, relation, daring=daring)

    made = querying.prepare
    monkeypatch.setattr(querying, "prepare", prepare)
    engine = hj.Engine()
    engine.execute(f"{SCHEMA}; INSERT INTO t VALUES (2147483647, 1), (1, 2); INSERT INTO s VALUES (1, 5), (2, 3)")
    assert engine.query(SUMS).to_pylist() == [] and tried == [True, False]  # no row of u completes the one that fails
    engine.execute("INSERT INTO u VALUES (4, 7)")
    with pytest.raises(hj.DataError, match=r"integer out of range in u\.a = t\.x \+ s\.y"):
        engine.query(SUMS)
    engine.execute("DELETE FROM s WHERE k = 1")
    tried.clear()
    assert engine.query(f"{SUMS} WHERE true").to_pylist() == [{"x": 1, "k": 2, "b": 7}] and tried == [True]


LESS = "s.k = t.y AND u.a = t.x + s.y AND u.b > t.x"
CHANGES = (
    f"INSERT INTO w SELECT t.x, s.k, u.b FROM t, s, u WHERE {LESS}",
    f"INSERT INTO w SELECT t.x, max(u.b), count(*) FROM t, s, u WHERE {LESS} GROUP BY t.x",
    f"UPDATE w SET k = u.b FROM t, s, u WHERE {LESS} AND w.x = t.x",
    f"DELETE FROM w USING t, s, u WHERE {LESS} AND w.x = t.x",
    f"CREATE TABLE made AS SELECT t.x FROM t, s, u WHERE {LESS}",
)


@pytest.mark.parametrize("sql", CHANGES)
def test_changes_dare_and_try_again(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[bool]()

    def prepare(state: State, relation: Any, *, daring: bool = False) -> Any:
        tried.append(daring)
        return made(state, relation, daring=daring)

    made = changing.prepare
    monkeypatch.setattr(changing, "prepare", prepare)
    engine = hj.Engine()
    engine.execute(f"{SCHEMA}; CREATE TABLE w (x integer, k integer, b integer)")
    engine.execute("INSERT INTO s VALUES (1, 5), (2, 3); INSERT INTO t VALUES (1, 2)")
    engine.execute("INSERT INTO u SELECT g, 7 FROM generate_series(1, 100) g")

    def run() -> list[bool]:
        engine.execute("DROP TABLE IF EXISTS made; DELETE FROM w")
        engine.execute("INSERT INTO w VALUES (1, 1, 1), (2147483645, 1, 1)")
        tried.clear()
        engine.execute(sql)
        return tried[:]

    assert run() == [True]
    engine.execute("INSERT INTO t VALUES (2147483645, 1)")
    assert run() == [True, False]  # no row of u is complete with the one that fails
    engine.execute("INSERT INTO u VALUES (4, 2147483646)")
    with pytest.raises(hj.DataError, match=r"integer out of range in u\.a = t\.x \+ s\.y"):
        run()


def test_a_change_that_is_remembered_tries_again() -> None:
    engine = hj.Engine()
    engine.execute(f"{SCHEMA}; CREATE TABLE w (x integer, k integer, b integer)")
    engine.execute("INSERT INTO s VALUES (1, 5), (2, 3); INSERT INTO t VALUES (1, 2)")
    engine.execute("INSERT INTO u SELECT g, 7 FROM generate_series(1, 100) g")
    for bound in range(5, 12):
        engine.execute(f"{CHANGES[0]} AND t.y < {bound}")
        if bound == 8:
            engine.execute("INSERT INTO t VALUES (2147483645, 1)")
    assert engine.query("SELECT * FROM w").to_pylist() == [{"x": 1, "k": 2, "b": 7}] * 7
