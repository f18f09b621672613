"""A table function of constants is an input of its own: its rows look others up, and the answer is that of VALUES."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import halfjoin as hj
from halfjoin.engine.statements import evaluating
from halfjoin.planner.known import scans
from tests.oracle.rows import bag

DDL = """
CREATE TABLE t (k bigint PRIMARY KEY, a integer, b integer);
CREATE TABLE u (a integer, y bigint);
CREATE INDEX ON u (a);
"""
JOINS = [
    "t JOIN {} AS x (i) ON t.k = x.i", "{} AS x (i) JOIN u ON u.a = x.i",
    "{} AS x (i), t, u WHERE t.a = u.a AND t.k = x.i",
    "t JOIN u ON t.a = u.a JOIN {} AS x (i) ON u.y = x.i AND t.b = x.i", "{} AS x (i) JOIN t ON t.a = x.i AND x.i > 0",
    "t JOIN {} AS x (i) ON t.b = x.i LEFT JOIN u ON u.a = x.i", "u JOIN {} AS x (i) ON u.a = x.i WHERE 6 / u.y >= 1",
    "{} AS x (i) JOIN t ON t.k = x.i WHERE 6 / t.b >= 1 AND x.i < 5",
]  # fmt: skip


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """The collections that each query scans."""
    found = list[list[str]]()
    prepare = evaluating.prepare

    def noted(*args: object, **options: bool) -> evaluating.Evaluation:
        made = prepare(*args, **options)  # type: ignore[arg-type]
        found.append(list(scans(made.plan)))
        return made

    monkeypatch.setattr(evaluating, "prepare", noted)
    for user in ("querying", "changing"):
        monkeypatch.setattr(f"halfjoin.engine.statements.{user}.prepare", noted)
    yield found


def outcome(engine: hj.Engine, sql: str) -> object:
    try:
        return bag(engine.query(sql))
    except hj.DataError as error:
        return error.reason


@pytest.mark.parametrize("seed", range(12))
def test_its_rows_are_those_of_values(seed: int) -> None:
    pick, engine = random.Random(seed), hj.Engine()
    engine.execute(DDL)
    written = [str(pick.choice([0, 1, 2, 2, 3, "NULL"])) for _ in range(pick.randrange(1, 5))]
    function = f"unnest(ARRAY[{', '.join(written)}]::integer[])"
    values = f"(VALUES {', '.join(f'({one}::integer)' for one in written)})"
    shown = ["t.k, i" if "t." in join else "y, i" for join in JOINS]
    for number, join in enumerate(JOINS):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS SELECT {shown[number]} FROM {join.format(function)}")
    for _ in range(3):
        engine.apply({
            "t": hj.upserts([{"k": k, "a": pick.choice([0, 1, 2, None]), "b": pick.choice([0, 1, 2, None])}
                             for k in pick.sample(range(8), 4)]),
            "u": [{"a": pick.choice([0, 1, 2, None]), "y": pick.choice([0, 1, 2])} for _ in range(4)],
        })  # fmt: skip
        engine.execute("DELETE FROM u WHERE y = 2 AND a = 1")
        for number, join in enumerate(JOINS):
            made = outcome(engine, f"SELECT {shown[number]} FROM {join.format(function)}")
            assert made == outcome(engine, f"SELECT * FROM v{number}"), join
            if "/" not in join:  # VALUES looks up rows that fail before they are joined
                assert made == outcome(engine, f"SELECT {shown[number]} FROM {join.format(values)}"), join


@pytest.mark.parametrize(("condition", "failing"), [
    ("6 / t.b > 1", [2]), ("6 / (t.b - x.i) > 1", [3]), ("6 / (x.i - 1) > 1", [1]), ("6 / (t.a + t.b) > 0", []),
])  # fmt: skip
def test_what_may_fail_fails_for_the_rows_that_are_joined(condition: str, failing: list[int]) -> None:
    engine = hj.Engine()
    engine.execute(DDL + "INSERT INTO t VALUES (1, 1, 2), (2, 2, 0), (3, 3, 3), (4, 0, 0)")
    sql = f"SELECT t.k FROM t JOIN unnest($1::bigint[]) AS x (i) ON t.k = x.i WHERE {condition}"
    found = [key for key in (1, 2, 3) if isinstance(outcome(engine, sql.replace("$1", f"ARRAY[{key}]")), str)]
    assert found == failing


@pytest.mark.parametrize("sql", [
    "SELECT t.* FROM t JOIN unnest($1::bigint[]) AS x (i) ON t.k = x.i",
    "SELECT t.* FROM unnest($1::bigint[], $1::bigint[]) AS x (i, j), t WHERE t.k = x.i",
    "SELECT t.a FROM generate_series(1, 3) AS x (i) JOIN t ON t.k = x.i",
    "UPDATE t SET b = x.i FROM unnest($1::bigint[]) AS x (i) WHERE t.k = x.i",
    "DELETE FROM t USING unnest($1::bigint[]) AS x (i) WHERE t.k = x.i",
])  # fmt: skip
def test_its_rows_are_looked_up(begun: list[list[str]], sql: str) -> None:
    engine = hj.Engine()
    engine.execute(DDL + "INSERT INTO t SELECT i, i, i FROM generate_series(1, 5000) AS s (i)")
    begun.clear()
    engine.execute(sql, ([7, 9, None],) if "$1" in sql else None)
    assert begun == [[]]
