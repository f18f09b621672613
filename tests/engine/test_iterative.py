"""WITH ITERATIVE as SQL: what it refuses, its words as names, its limits, and loops of all kinds inside each other."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj


@pytest.fixture
def engine() -> hj.Engine:
    made = hj.Engine(clock="own")
    made.execute("CREATE TABLE t (a bigint, b bigint)")
    made.apply({"t": [{"a": 1, "b": 2}, {"a": 2, "b": 3}, {"a": 3, "b": 1}]}, time=1)
    return made


def rows(engine: hj.Engine, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in engine.query(query).to_pylist())


ITERATIVE = {
    "r AS (SELECT a FROM t)": "r in WITH ITERATIVE needs a start and a step",
    "r AS (SELECT a FROM r ITERATE SELECT a FROM r)": "the start of r reads r",
    "r AS (SELECT a FROM t ITERATE SELECT a FROM s), s AS (TABLE r ITERATE SELECT a FROM s)": "start of s reads r",
    "r AS (SELECT a FROM t ITERATE SELECT a, b FROM t)": "different numbers of columns",
    "r AS (SELECT 1 AS a ITERATE SELECT a + 1.5 FROM r)": "a column of r is integer in its first part",
    "(RETURN ROUNDS) r AS (SELECT a FROM t ITERATE SELECT a FROM r)": "takes a limit of rounds",
    "(ERROR ROUNDS AS n) r AS (SELECT a FROM t ITERATE SELECT a FROM r)": "takes a limit of rounds",
    "(RETURN ROUNDS AS n AT RECURSION LIMIT 0) r AS (TABLE t ITERATE SELECT a FROM r)": "takes a limit of rounds",
    "r AS (SELECT a FROM t ITERATE SELECT a FROM r), r AS (SELECT a FROM t ITERATE SELECT a FROM r)": "two queries r",
    "(RETURN ROUNDS AS a) r AS (SELECT a FROM t ITERATE SELECT a FROM r)": "appears twice",
}


@pytest.mark.parametrize("text", ITERATIVE)
def test_what_is_no_iteration_is_refused(text: str, engine: hj.Engine) -> None:
    for run in (engine.query, lambda text: engine.execute(f"CREATE MATERIALIZED VIEW v AS {text}")):
        if "ROUNDS AS a" not in text or run != engine.query:
            with pytest.raises(hj.HalfjoinError, match=ITERATIVE[text]):
                run(f"WITH ITERATIVE {text} SELECT * FROM r")


def test_the_words_of_iteration_are_names_elsewhere(engine: hj.Engine) -> None:
    for text in (
        "WITH iterative AS (SELECT a FROM t) SELECT a FROM iterative",
        "WITH iterative (a) AS (SELECT a FROM t) SELECT a FROM iterative",
        "SELECT iterate.a FROM t iterate", "SELECT a iterate FROM t",
        "WITH ITERATIVE r AS (SELECT x.a FROM t x ITERATE SELECT iterate.a AS iterate FROM r iterate) SELECT a FROM r",
        "WITH ITERATIVE r AS (VALUES (1), (2), (3) ITERATE (SELECT * FROM r)) SELECT * FROM r",
        "WITH ITERATIVE r (a) AS ((SELECT a AS b FROM t) ITERATE TABLE r) SELECT a FROM r",
        "WITH ITERATIVE r AS (WITH s AS (TABLE t) SELECT a FROM s ITERATE WITH s AS (TABLE r) SELECT a FROM s) TABLE r",
    ):  # fmt: skip
        assert [row[0] for row in rows(engine, text)] == [1, 2, 3], text
    with pytest.raises(hj.HalfjoinError):
        engine.query("WITH r AS (SELECT a FROM t ITERATE SELECT a FROM r) SELECT a FROM r")


def test_an_error_limit_is_an_error_at_the_limit(engine: hj.Engine) -> None:
    engine.execute("""
        CREATE MATERIALIZED VIEW v AS
        WITH ITERATIVE (ERROR AT RECURSION LIMIT 5) r AS (SELECT a FROM t ITERATE SELECT least(a + 1, 5) AS a FROM r)
        SELECT a FROM r""")
    with pytest.raises(hj.DataError, match="changes after 5 rounds still"):
        engine.read("v")
    engine.execute("SET TIME = 2; DELETE FROM t WHERE a = 1")
    assert rows(engine, "TABLE v") == [(5,), (5,)]


ITERATED = "(WITH ITERATIVE i AS ({} ITERATE SELECT least(a + 1, 5) AS a FROM i) SELECT a FROM i) AS x"
RECURRED = "(WITH RECURSIVE r AS ({} UNION SELECT a + 1 FROM r WHERE a < 4) SELECT a FROM r) AS x"
MUTUAL = ("(WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 3) m (a bigint) AS "
          "({} UNION SELECT least(a + 1, 9) FROM m) SELECT a FROM m) AS x")  # fmt: skip
ITERATIVE_LOOP = "WITH ITERATIVE o AS (SELECT a FROM t ITERATE SELECT DISTINCT a FROM {}) TABLE o"
MUTUAL_LOOP = "WITH MUTUALLY RECURSIVE o (a bigint) AS (SELECT a FROM t UNION SELECT a FROM {}) TABLE o"
RECURSIVE_LOOP = "WITH RECURSIVE o AS (SELECT a FROM t UNION SELECT a FROM {}) TABLE o"
INSIDE = {
    "recursive in iterative": (ITERATIVE_LOOP, RECURRED, [1, 2, 3, 4]),
    "mutual in iterative": (ITERATIVE_LOOP, MUTUAL, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    "iterative in recursive": (RECURSIVE_LOOP, ITERATED, [1, 2, 3, 5]),
    "iterative in mutual": (MUTUAL_LOOP, ITERATED, [1, 2, 3, 5]),
    "recursive in mutual": (MUTUAL_LOOP, RECURRED, [1, 2, 3, 4]),
}


@pytest.mark.parametrize("name", INSIDE)
def test_loops_of_all_kinds_stand_inside_each_other(name: str, engine: hj.Engine) -> None:
    around, inside, expected = INSIDE[name]
    query = around.format(inside.format("SELECT a FROM o"))
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert rows(engine, query) == rows(engine, "TABLE v") == [(a,) for a in expected]
    engine.execute("SET TIME = 2; BEGIN; DELETE FROM t; INSERT INTO t VALUES (4, 4); COMMIT")
    assert rows(engine, query) == rows(engine, "TABLE v") != []
