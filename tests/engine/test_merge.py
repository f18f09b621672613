"""MERGE with WHEN NOT MATCHED BY SOURCE and RETURNING, against a model in Python; changes in WITH."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import halfjoin as hj
from tests.support.kernels import both_ways  # noqa: F401

MERGE = (
    "MERGE INTO t USING s ON t.k = s.k "
    "WHEN NOT MATCHED BY SOURCE AND t.a > 4 THEN DELETE "
    "WHEN MATCHED AND s.y = 0 THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE AND t.a > 1 THEN UPDATE SET a = -t.a "
    "WHEN MATCHED AND s.y < 6 THEN UPDATE SET a = s.y "
    "WHEN NOT MATCHED BY TARGET AND s.y > 2 THEN INSERT VALUES (s.k, s.y * 10) "
    "RETURNING merge_action() AS act, s.k AS sk, t.k, a"
)


def _merged(t: dict[int, int], s: dict[int, int]) -> tuple[dict[int, int], Counter[tuple[object, ...]]]:
    made, shown = dict(t), Counter[tuple[object, ...]]()
    for k in t.keys() - s.keys():
        if t[k] > 4:
            shown["DELETE", None, k, made.pop(k)] += 1
        elif t[k] > 1:
            made[k] = -t[k]
            shown["UPDATE", None, k, made[k]] += 1
    for k, y in s.items():
        if k in t and y == 0:
            shown["DELETE", k, k, made.pop(k)] += 1
        elif k in t and y < 6:
            made[k] = y
            shown["UPDATE", k, k, y] += 1
        elif k not in t and y > 2:
            made[k] = y * 10
            shown["INSERT", k, k, y * 10] += 1
    return made, shown


@pytest.mark.parametrize("seed", range(20))
def test_merge_treats_all_three_kinds_of_rows(seed: int) -> None:
    random, engine = Random(seed), hj.Engine()
    engine.execute("CREATE TABLE t (k integer PRIMARY KEY, a integer); CREATE TABLE s (k integer, y integer)")
    t = {k: random.randint(0, 8) for k in random.sample(range(8), random.randint(0, 8))}
    s = {k: random.randint(0, 8) for k in random.sample(range(8), random.randint(0, 8))}
    engine.apply({"t": [{"k": k, "a": a} for k, a in t.items()], "s": [{"k": k, "y": y} for k, y in s.items()]})
    found = engine.execute(MERGE)
    assert found is not None
    made, shown = _merged(t, s)
    assert Counter(tuple(row.values()) for row in found.to_pylist()) == shown
    assert {row["k"]: row["a"] for row in engine.read("t").to_pylist()} == made
    assert found.schema.metadata[b"tag"].decode() == f"MERGE {shown.total()}"


def test_star_shows_the_source_first() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer PRIMARY KEY, a integer); CREATE TABLE s (x integer)")
    engine.execute("INSERT INTO t VALUES (1, 2); INSERT INTO s VALUES (3)")
    found = engine.execute("MERGE INTO t USING s ON k = x WHEN NOT MATCHED BY SOURCE THEN DELETE "
                           "WHEN NOT MATCHED THEN INSERT VALUES (x, 0) RETURNING *, merge_action()")  # fmt: skip
    assert found is not None and found.to_pylist() == [
        {"x": 3, "k": 3, "a": 0, "merge_action": "INSERT"}, {"x": None, "k": 1, "a": 2, "merge_action": "DELETE"}]


def test_changes_in_with_are_one_batch() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (k integer); CREATE TABLE log (k integer, n bigint)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT (SELECT count(*) FROM t) AS t, "
                   "(SELECT count(*) FROM log) AS l")  # fmt: skip
    engine.execute("SET TIME = 1; INSERT INTO t VALUES (1), (1), (2), (3)")
    engine.execute("SET TIME = 2; WITH gone AS (DELETE FROM t WHERE k < 3 RETURNING *) "
                   "INSERT INTO log SELECT k, (SELECT count(*) FROM t) FROM gone")  # fmt: skip
    assert engine.read("v").to_pylist() == [{"t": 1, "l": 3}]
    assert engine.read("v", as_of=1).to_pylist() == [{"t": 4, "l": 0}]
    assert engine.read("log").column("n").to_pylist() == [4, 4, 4]
    with pytest.raises(hj.InvalidRow, match="change the same row"):
        engine.execute("SET TIME = 3; WITH x AS (DELETE FROM t) UPDATE t SET k = 4")
    assert engine.read("t").column("k").to_pylist() == [3]


ROWS = """
    CREATE TABLE t (id integer PRIMARY KEY, a text, b integer DEFAULT 7); INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2);
    CREATE TABLE s (id integer, a text, b integer); INSERT INTO s VALUES (1, 'X', 10), (3, 'N', 30)
"""


@pytest.mark.parametrize(("whens", "rows"), [
    ("MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT (id, a, b) VALUES (id, a, b)",  # dbt writes it so
     {(1, "X", 1), (2, "y", 2), (3, "N", 30)}),
    ("NOT MATCHED AND b > 20 AND EXISTS (SELECT 1 FROM t WHERE t.b < s.id) THEN INSERT (id, a) "
     "VALUES (id, a || (SELECT max(a) FROM t)) WHEN MATCHED AND t.b = 1 THEN DELETE", {(2, "y", 2), (3, "Ny", 7)}),
    ("NOT MATCHED BY SOURCE AND a = 'y' THEN UPDATE SET b = b + (SELECT count(*) FROM s WHERE s.b > t.b)",
     {(1, "x", 1), (2, "y", 4)}),
])  # fmt: skip
def test_a_name_means_the_row_that_is_there(whens: str, rows: set[tuple[object, ...]]) -> None:
    engine = hj.Engine()
    engine.execute(ROWS)
    engine.execute(f"MERGE INTO t USING s ON t.id = s.id WHEN {whens}")
    assert {tuple(row.values()) for row in engine.read("t").to_pylist()} == rows


@pytest.mark.parametrize(("whens", "message"), [
    ("NOT MATCHED THEN INSERT VALUES (t.id, s.a, 1)", "unknown table or alias 't'"),
    ("NOT MATCHED AND t.a IS NULL THEN INSERT VALUES (s.id, s.a, 1)", "unknown table or alias 't'"),
    ("NOT MATCHED BY SOURCE THEN UPDATE SET b = s.b", "unknown table or alias 's'"),
    ("MATCHED THEN UPDATE SET a = a", "column a is ambiguous"),
])
def test_a_row_that_is_missing_has_no_columns(whens: str, message: str) -> None:
    engine = hj.Engine()
    engine.execute(ROWS)
    with pytest.raises(hj.HalfjoinError, match=message):
        engine.execute(f"MERGE INTO t USING s ON t.id = s.id WHEN {whens}")
