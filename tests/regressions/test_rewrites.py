"""What is refused says why, and what it says to write instead works."""

from __future__ import annotations

import pytest

import halfjoin as hj

LIVES = "(SELECT count(*) FROM b WHERE b.x = l.x AND b.y = r.y) > 0"
CASES = [  # the refused view, the reason, a part of the remedy, the statements instead, and the answer
    (f"SELECT l.k AS a, r.k AS b FROM l FULL JOIN r ON {LIVES}",
     "a subquery in the condition of a FULL JOIN may read one side only", "write LEFT JOIN, and UNION ALL with NULLs",
     [f"SELECT l.k AS a, r.k AS b FROM l LEFT JOIN r ON {LIVES} UNION ALL SELECT NULL, r.k FROM r "
      f"WHERE NOT EXISTS (SELECT 1 FROM l WHERE {LIVES})"],
     [(1, 1), (1, 3), (2, None), (None, None)]),
    ("SELECT l.k, q.d > 3 AS u FROM l LEFT JOIN (SELECT m.k, m.k::numeric(38, 0) * m.k::numeric(38, 0) AS d FROM m "
     "JOIN r USING (k)) AS q ON l.k = q.k", "column d has more than 38 digits", "cast it to numeric(38, 10)",
     ["SELECT l.k, q.d > 3 AS u FROM l LEFT JOIN (SELECT m.k, (m.k::numeric(38, 0) * m.k::numeric(38, 0))::"
      "numeric(38, 10) AS d FROM m JOIN r USING (k)) AS q ON l.k = q.k"], [(1, False), (2, None), (None, None)]),
    ("SELECT k FROM l WHERE EXISTS (SELECT 1 FROM b HAVING sum(l.x) > 1)",
     "an aggregate over columns of an outer query only belongs to that query", "compute it in a subquery in FROM",
     ["SELECT k FROM l, (SELECT sum(x) AS s FROM l) AS q WHERE EXISTS (SELECT 1 FROM b HAVING q.s > 1)"],
     [(1,), (2,), (None,)]),
]  # fmt: skip


@pytest.mark.parametrize(("refused", "reason", "remedy", "instead", "answer"), CASES, ids=[case[1] for case in CASES])
def test_what_is_to_be_written_instead_works(
    refused: str, reason: str, remedy: str, instead: list[str], answer: list[tuple[object, ...]]
) -> None:
    engine = _engine()
    with pytest.raises(hj.UnsupportedSQL) as caught:
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {refused}")
    assert reason in caught.value.reason and remedy in (caught.value.remedy or "")
    for number, sql in enumerate(instead):
        engine.execute(f"CREATE MATERIALIZED VIEW instead{number} AS {sql}")
    _fill(engine)
    found = [tuple(row.values()) for row in engine.read(f"instead{len(instead) - 1}").to_pylist()]
    assert sorted(found, key=repr) == sorted(answer, key=repr)


@pytest.mark.parametrize(("query", "answer"), [
    ("SELECT count(DISTINCT t - s) AS n FROM m", [(1,)]),
    ("SELECT k FROM m GROUP BY k, t - s HAVING t - s > interval '1 hour'", [(1,)]),
    ("SELECT k FROM m ORDER BY t - s LIMIT 1", [(1,)]),
    ("SELECT l.k FROM l LEFT JOIN (SELECT t - s AS d, m.k FROM m JOIN r USING (k)) AS q ON l.k = q.k AND q.d > '1 hour'"
     " WHERE q.d IS NULL", [(2,), (None,)]),
])  # fmt: skip
def test_intervals_are_values_as_others(query: str, answer: list[tuple[object, ...]]) -> None:
    engine = _engine()
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    _fill(engine)
    found = [tuple(row.values()) for row in engine.read("v").to_pylist()]
    assert sorted(found, key=repr) == sorted(answer, key=repr)


@pytest.mark.parametrize(("condition", "found"), [
    ("r.y = 5 OR r.y = 5 AND r.k > l.k", [(1,), (2,), (None,)]),
    ("r.y = 5 AND l.k = 1 OR r.y = 5 AND l.k = 7", [(1,)]),
    ("r.y = 7 OR l.k = 1 AND 1 = 2", []),
])  # fmt: skip
def test_what_all_choices_ask_of_a_side_is_asked_of_it(condition: str, found: list[tuple[object, ...]]) -> None:
    engine = _engine()
    exists = f"EXISTS (SELECT 1 FROM r WHERE {condition})"
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT k FROM l WHERE {exists}")
    engine.execute(f"CREATE MATERIALIZED VIEW w AS SELECT k FROM l WHERE NOT {exists}")
    _fill(engine)
    there = [tuple(row.values()) for row in engine.read("v").to_pylist()]
    assert sorted(there, key=repr) == sorted(found, key=repr)
    gone = [tuple(row.values()) for row in engine.read("w").to_pylist()]
    assert sorted([*there, *gone], key=repr) == [(1,), (2,), (None,)]


def _engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute("CREATE TABLE l (k integer, x integer); CREATE TABLE r (k integer, y integer)")
    engine.execute("CREATE TABLE b (x integer, y integer); CREATE TABLE m (k integer, s timestamp, t timestamp)")
    return engine


def _fill(engine: hj.Engine) -> None:
    engine.apply({
        "l": [{"k": 1, "x": 1}, {"k": 2, "x": 2}, {"k": None, "x": 3}], "r": [{"k": 1, "y": 1}, {"k": 3, "y": 5}],
        "b": [{"x": 1, "y": 1}, {"x": 1, "y": 5}], "m": [{"k": 1, "s": "2024-01-01", "t": "2024-01-02"}],
    }, time=1)  # fmt: skip
