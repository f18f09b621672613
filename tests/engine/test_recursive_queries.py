"""Recursive queries over large tables: they use the indexes that are there, and rows that went stay away."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.batch import looping
from tests.support.indexes import indexed_rows

REACHED = """WITH RECURSIVE r (x) AS (
    SELECT {}::bigint UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.x) SELECT x FROM r"""
BEGUN = """WITH RECURSIVE r (x) AS (
    SELECT dst FROM edge WHERE src = {0} UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.x) SELECT x FROM r"""
COUNTED = """WITH RECURSIVE r (x, d) AS (
    SELECT {}::bigint, 0 UNION ALL SELECT e.dst, r.d + 1 FROM r JOIN edge e ON e.src = r.x WHERE r.d < 4)
    SELECT x, d, count(*) AS n FROM r GROUP BY x, d"""
SCHEMA = "CREATE TABLE edge (src bigint, dst bigint, PRIMARY KEY (src, dst)); CREATE INDEX by_src ON edge (src)"


def walked(edges: set[tuple[int, int]], start: int) -> tuple[set[int], dict[tuple[int, int], int]]:
    """What is reached, and how many walks of up to 4 steps end where."""
    reached, new = {start}, {start}
    while new:
        new = {dst for src, dst in edges if src in new} - reached
        reached |= new
    counts, last = {(start, 0): 1}, {start: 1}
    for step in range(1, 5):
        now: dict[int, int] = {}
        for src, dst in edges:
            now[dst] = now.get(dst, 0) + last.get(src, 0)
        last = {x: n for x, n in now.items() if n}
        counts |= {(x, step): n for x, n in last.items()}
    return reached, counts


@pytest.mark.parametrize("cancel", [None, looping._CANCEL, 0])
@pytest.mark.parametrize("seed", range(6))
def test_a_recursive_query_has_the_edges_of_its_time(
    seed: int, cancel: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cancel`: rows that went are added up always (None), if they are many, or never (0)."""
    if cancel is None:
        monkeypatch.setattr(looping, "_at_once", lambda _: None)
    else:
        monkeypatch.setattr(looping, "_CANCEL", cancel)
    chosen, edges, past = random.Random(seed), set[tuple[int, int]](), list[set[tuple[int, int]]]()
    engine = hj.Engine(clock="own", retain=100)
    engine.execute(SCHEMA)
    for time in range(1, 13):
        rows: list[dict[str, Any]] = []
        for _ in range(chosen.randrange(1, 8)):
            edge = chosen.randrange(9), chosen.randrange(9)
            rows.append({"src": edge[0], "dst": edge[1], "__diff": -1 if edge in edges else 1})
            edges ^= {edge}
        engine.apply({"edge": rows}, time=time)
        past.append(set(edges))
        if time == 6:
            engine.compact()
        for as_of in {time, chosen.randrange(1, time + 1)}:
            start = chosen.randrange(9)
            reached, counts = walked(past[as_of - 1], start)
            found = engine.query(REACHED.format(start), as_of=as_of)["x"].to_pylist()
            assert sorted(found) == sorted(reached)
            found = engine.query(BEGUN.format(start), as_of=as_of)["x"].to_pylist()
            begun = [walked(past[as_of - 1], dst)[0] for src, dst in past[as_of - 1] if src == start]
            assert sorted(found) == sorted(set[int]().union(*begun))
            walks = engine.query(COUNTED.format(start), as_of=as_of).to_pylist()
            assert {(row["x"], row["d"]): row["n"] for row in walks} == counts


def test_a_recursive_query_uses_the_indexes_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, numbers = hj.Engine(), np.arange(1, 20_000)
    engine.execute(SCHEMA)
    engine.apply({"edge": pa.table({"src": numbers, "dst": numbers // 2})})
    engine.apply({"edge": [{"src": 9000, "dst": 4500, "__diff": -1}, {"src": 9000, "dst": 77}]})
    engine.query(REACHED.format(1))  # the first one makes the index
    made = indexed_rows(monkeypatch)
    found = engine.query(REACHED.format(9000))["x"].to_pylist()
    assert sorted(found) == [0, 1, 2, 4, 9, 19, 38, 77, 9000]
    assert sum(made) < 200


def test_a_recursive_query_looks_up_the_rows_with_which_it_begins() -> None:
    engine, numbers = hj.Engine(), np.arange(1, 20_000)
    engine.execute(SCHEMA)
    engine.apply({"edge": pa.table({"src": numbers, "dst": numbers // 2})})
    assert engine.explain(BEGUN.format(18)).splitlines()[-1] == "as a query: looks up 1 key in edge(src)"
    assert sorted(engine.query(BEGUN.format(18))["x"].to_pylist()) == [0, 1, 2, 4, 9]
    joined = BEGUN.replace("edge WHERE src = {0}", "edge JOIN (VALUES (18), (3)) v (s) ON src = s WHERE src > 0")
    assert sorted(engine.query(joined)["x"].to_pylist()) == [0, 1, 2, 4, 9]


@pytest.mark.parametrize("query", [  # the step of each does not add up, so that its working table begins once
    "WITH RECURSIVE r (x) AS (SELECT dst FROM edge WHERE src = 18 UNION SELECT s.x FROM r CROSS JOIN LATERAL "
    "(SELECT e.dst AS x FROM edge e WHERE e.src = r.x UNION ALL SELECT r.x + 100 WHERE r.x = 4) s) SELECT x FROM r",
    "WITH ITERATIVE (RETURN AT RECURSION LIMIT 2) r (x) AS (SELECT dst FROM edge WHERE src = 18 ITERATE "
    "SELECT e.dst FROM r JOIN edge e ON e.src = r.x) SELECT x FROM r",
])  # fmt: skip
def test_a_working_table_begins_with_rows_that_are_looked_up(query: str) -> None:
    engine, numbers = hj.Engine(), np.arange(1, 20_000)
    engine.execute(SCHEMA)
    engine.apply({"edge": pa.table({"src": numbers, "dst": numbers // 2})})
    assert "looks up 1 key in edge(src)" in engine.explain(query).splitlines()[-1]
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert sorted(engine.query(query)["x"].to_pylist()) == sorted(engine.read("v")["x"].to_pylist()) != []


NUMERICS = {
    "SELECT 1.5 AS x UNION ALL SELECT x + 1 FROM w WHERE x < 4": ["1.5", "2.5", "3.5", "4.5"],
    "SELECT n AS x FROM t UNION ALL SELECT x * 2 FROM w WHERE x < 20": ["2.25", "4.50", "9.00", "18.00", "36.00"],
    "SELECT 8.0 AS x UNION ALL SELECT x / 2 FROM w WHERE x > 2": ["8", "4", "2"],
    "SELECT 1::numeric(38, 10) AS x UNION ALL SELECT (x * 1.5)::numeric(38, 10) FROM w WHERE x < 3": [
        "1", "1.5", "2.25", "3.375"],
}


@pytest.mark.parametrize("sql", NUMERICS)
def test_numerics_may_grow_from_round_to_round(sql: str) -> None:
    engine, whole = hj.Engine(), f"WITH RECURSIVE w AS ({sql}) SELECT x FROM w"
    engine.execute("CREATE TABLE t (n numeric(6, 2)); INSERT INTO t VALUES (2.25)")
    expected = [Decimal(one) for one in NUMERICS[sql]]
    assert engine.query(whole)["x"].to_pylist() == expected
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {whole}; INSERT INTO t VALUES (30)")
    assert sorted(engine.read("v")["x"].to_pylist()) == sorted([*expected, *([Decimal(30)] if " t " in sql else [])])


def test_numerics_that_get_ever_more_digits_are_refused_with_a_cast() -> None:
    with pytest.raises(hj.UnsupportedSQL, match=r"cast it in both parts: ::numeric\(38, 10\)"):
        hj.Engine().query("WITH RECURSIVE w AS (SELECT 1.5 AS x UNION ALL SELECT x * 1.5 FROM w) SELECT x FROM w")
