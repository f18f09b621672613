"""Queries for groups that rows ask for have the answer, and the errors, that they have where all groups are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.statements import evaluating
from halfjoin.planner import asking_joins, known
from tests.planner.test_below_groups import ROWS, SCHEMA, answer

MORE = """;
    CREATE TABLE o (id bigint PRIMARY KEY, k smallint, w numeric(4, 1));
    CREATE INDEX ON o (k); CREATE INDEX ON t (k); CREATE INDEX ON t (x)
"""
CONDITIONS = ("o.id = 1", "o.id IN (1, 2, 99)", "o.k = 1", "o.id = 1 AND o.k < 3", "o.id = 1 AND 10 / o.k > 1",
              "o.id = 2 AND random() >= 0", "o.id > 1", "o.id = 1 OR o.k = 2", "o.id = NULL")  # fmt: skip
QUERIES = (
    *(f"SELECT o.id, (SELECT count(*) FROM t WHERE t.k = o.k) AS n FROM o WHERE {test}" for test in CONDITIONS),
    *(f"SELECT o.id, a.* FROM o JOIN totals a ON a.k = o.k WHERE {test}" for test in CONDITIONS),
    *(f"SELECT o.id, a.n FROM o LEFT JOIN totals a ON a.k = o.k AND a.n > 1 WHERE {test}" for test in CONDITIONS),
    "SELECT (SELECT sum(x) FROM t WHERE t.k = o.k) AS a, (SELECT max(s) FROM t WHERE t.x = o.id) AS b FROM o "
    "WHERE o.id = 1",
    "SELECT o.id, x.id AS t FROM o, LATERAL (SELECT id FROM t WHERE t.k = o.k ORDER BY x, id LIMIT 2) x WHERE o.id = 1",
    "SELECT o.id, x.m FROM o, LATERAL (SELECT max(x) AS m FROM t WHERE t.k = o.k AND t.x > o.id) x WHERE o.id = 1",
    "SELECT o.id, x.m FROM o, LATERAL (SELECT sum(10 / x) AS m FROM t WHERE t.k = o.k) x WHERE o.id = 1",
    "SELECT o.id, x.m FROM o, LATERAL (SELECT 10 / sum(x) AS m FROM t WHERE t.k = o.k) x WHERE o.id = 1",
    "SELECT o.id FROM o WHERE o.id = 1 AND 1 < (SELECT count(*) FROM loose WHERE loose.k = o.k)",
    "SELECT l.k, a.n FROM loose l JOIN totals a ON a.k = l.k WHERE l.k = 1",
    "SELECT o.id, a.n FROM totals a JOIN o ON a.k = o.w WHERE o.id = 1",
    "SELECT o.id, a.n, b.n AS m FROM o JOIN totals a ON a.k = o.k JOIN totals b ON b.k = a.k WHERE o.id IN (1, 2)",
    "SELECT o.id, r.place FROM o JOIN ranked r ON r.k = o.k WHERE o.id = 1",
    "SELECT o.id, q.n FROM o JOIN (SELECT k, n FROM totals UNION ALL SELECT k, x FROM t) q ON q.k = o.k WHERE o.id = 1",
    "SELECT p.id, q.n FROM (SELECT id, k AS z FROM o WHERE id = 1) p JOIN totals q ON q.k = p.z",
    "SELECT o.id, a.n FROM o FULL JOIN totals a ON a.k = o.k WHERE o.id = 1",
    "SELECT o.id, q.m FROM o JOIN (SELECT k, max(n) AS m FROM totals GROUP BY k) q ON q.k = o.k WHERE o.id = 1",
    "SELECT q.id, a.n FROM (SELECT id, k, (SELECT count(*) FROM t WHERE t.k = o.k) AS n FROM o) q JOIN totals a "
    "ON a.k = q.k WHERE q.id = 1",
    "SELECT o.id, (SELECT string_agg(s, ',' ORDER BY id) FROM t WHERE t.k = o.k) AS n FROM o WHERE o.id = 1",
    "SELECT o.id, ARRAY(SELECT x FROM t WHERE t.k = o.k ORDER BY id) AS n FROM o WHERE o.id = 1",
    "SELECT o.id FROM o WHERE o.id = 1 AND EXISTS (SELECT 1 FROM t JOIN loose l ON l.x = t.x WHERE t.k = o.k)",
    "SELECT o.id FROM o WHERE o.id < 2 AND NOT EXISTS (SELECT 1 FROM t JOIN loose l ON l.x = t.x WHERE t.k = o.k)",
    "SELECT o.id FROM o WHERE o.id = 1 AND EXISTS (SELECT 1 FROM t JOIN loose l ON l.x = 6 / t.x WHERE t.k = o.k)",
    "SELECT o.id FROM o WHERE o.id = 1 AND o.k NOT IN (SELECT l.k FROM t JOIN loose l ON l.x = t.x WHERE t.id = o.w)",
    "SELECT o.id, q.k AS a, q.x FROM o LEFT JOIN (SELECT t.k, l.x FROM t JOIN loose l ON l.x = t.x WHERE t.f IS NULL) "
    "q ON q.k = o.k WHERE o.id = 1",
    "SELECT o.id FROM o WHERE o.id = 1 AND EXISTS (SELECT 1 FROM t JOIN t l ON l.x = t.x WHERE t.k = o.k AND "
    "l.k < o.w)",
    "SELECT o.id FROM o WHERE o.id < 2 AND NOT EXISTS (SELECT 1 FROM t JOIN t l ON l.x = t.x WHERE t.k = o.k AND "
    "l.k < o.w)",
    "SELECT o.id, q.x FROM o LEFT JOIN LATERAL (SELECT t.k, l.x FROM t JOIN t l ON l.x = t.x WHERE l.k < o.w) q "
    "ON q.k = o.k WHERE o.id = 1",
    "SELECT o.id FROM o WHERE o.id = 1 AND EXISTS (SELECT 1 FROM totals a WHERE a.k = o.k AND a.n > 1)",
    "SELECT o.id FROM o WHERE o.id = 1 AND NOT EXISTS (SELECT 1 FROM totals a WHERE a.k = o.k AND a.total > 1)",
    "SELECT o.id, x.id AS t FROM o, LATERAL (SELECT id FROM t WHERE t.k = o.k AND t.x <= o.w ORDER BY x DESC, id "
    "LIMIT 1) x WHERE o.id = 1",
    "SELECT o.id, x.s FROM o LEFT JOIN LATERAL (SELECT s FROM t WHERE t.k IS NOT DISTINCT FROM o.k AND t.x > o.w "
    "ORDER BY x, id LIMIT 1) x ON true WHERE o.id < 2",
    "SELECT o.id, (SELECT count(*) FROM t WHERE t.k IS NOT DISTINCT FROM o.k AND t.x <> o.w) AS n FROM o WHERE "
    "o.id = 1",
    "SELECT o.id, (SELECT count(*) FROM t WHERE t.k IS NULL OR t.x <> o.w) AS n FROM o WHERE o.id = 1",
    *(f"SELECT o.id, u.x FROM o JOIN t u ON u.id = o.id JOIN o v ON v.id = u.x {more} WHERE v.w < 3 AND u.y > -5{test}"
      for more, test in (
          ("JOIN totals a ON a.k = o.k", ""), ("LEFT JOIN totals a ON a.k = u.k AND a.s = u.s", " AND a.n > 0"),
          ("LEFT JOIN totals a ON a.k = o.k", " AND 10 / a.n > 3"), ("JOIN totals a ON a.k = o.k AND a.s = u.s", ""),
          ("", " AND o.k IN (SELECT a.k FROM t a JOIN t b ON b.x = a.x AND b.y <> a.y)"),
          ("", " AND o.k NOT IN (SELECT a.k FROM t a JOIN t b ON b.x = a.x WHERE a.y > b.x)"),
          ("", " AND NOT EXISTS (SELECT 1 FROM t a JOIN loose b ON b.x = a.x WHERE a.k = u.k AND a.s = u.s)"),
          ("", " AND EXISTS (SELECT 1 FROM t a JOIN t b ON b.x = 6 / a.x WHERE a.k = o.k)"),
          ("", " AND EXISTS (SELECT 1 FROM t a WHERE a.k = o.k AND a.x <> u.x)"),
          ("JOIN loose l ON l.k = o.k", " AND l.k IN (SELECT a.k FROM t a JOIN t b ON b.x = a.x)"))),
)  # fmt: skip


@given(st.lists(ROWS, max_size=12), st.lists(st.sampled_from([None, 0, 1, 2, 3]), max_size=4))
def test_the_answers_and_errors_are_those_of_all_groups(rows: list[tuple[Any, ...]], keys: list[int | None]) -> None:
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA + MORE)
    engine.apply({
        "t": [{"id": id, "k": k, "s": s, "f": f, "y": y, "x": x} for id, (k, s, f, y, x) in enumerate(rows)],
        "loose": [{"k": k, "x": x} for k, _, _, _, x in rows],
        "o": [{"id": id, "k": k, "w": None if k is None else k} for id, k in enumerate(keys)],
    }, time=1)  # fmt: skip
    for small in (0, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(known, "_SMALL", small)
            patch.setattr(known, "SCANNED", 0.01)
            made = hj.Engine(clock="own")
            made.execute(SCHEMA + MORE)
            made.apply({name: engine.read(name) for name in ("t", "loose", "o")}, time=1)
            found = [answer(made, sql) for sql in QUERIES]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(evaluating, "asked_groups", lambda relation, *_: relation)
            assert found == [answer(engine, sql) for sql in QUERIES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking_joins, "_LARGE", 0)
        patch.setattr(asking_joins, "_SAVED", 0)
        made = hj.Engine(clock="own")
        made.execute(SCHEMA + MORE)
        made.apply({name: engine.read(name) for name in ("t", "loose", "o")}, time=1)
        assert found == [answer(made, sql) for sql in QUERIES]
    engine.close()


@pytest.fixture
def large() -> hj.Engine:
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA + MORE)
    numbers = np.arange(6000)
    engine.apply({"t": pa.table({"id": numbers, "k": pa.array(numbers // 3, pa.int32()), "x": numbers // 2 + 1}),
                  "o": pa.table({"id": numbers, "k": pa.array(numbers // 4, pa.int16())})}, time=1)  # fmt: skip
    return engine


@pytest.mark.parametrize(("sql", "asked"), [
    ("SELECT (SELECT count(*) FROM t WHERE t.k = o.k) AS n FROM o WHERE o.id = 7", True),
    ("SELECT (SELECT count(*) FROM t WHERE t.k = o.k) AS n, (SELECT max(x) FROM t WHERE t.x = o.id) AS m FROM o "
     "WHERE o.id IN (7, 8)", True),
    ("SELECT x.id FROM o, LATERAL (SELECT id FROM t WHERE t.k = o.k ORDER BY x, id LIMIT 2) x WHERE o.id = 1", True),
    ("SELECT x.id FROM o, LATERAL (SELECT id FROM t WHERE t.k = o.k AND t.x <= o.id ORDER BY x DESC LIMIT 1) x "
     "WHERE o.id = 7", True),
    ("SELECT o.id, a.n FROM o JOIN totals a ON a.k = o.k WHERE o.id IN (1, 2)", True),
    ("SELECT o.id, a.n FROM o JOIN totals a ON a.k = o.k WHERE o.id > 1", False),
    ("SELECT ARRAY(SELECT x FROM t WHERE t.k = o.k ORDER BY x) AS n FROM o WHERE o.id = 7", True),
    ("SELECT o.id FROM o WHERE o.id = 7 AND EXISTS (SELECT 1 FROM t JOIN o q ON q.id = t.x WHERE t.k = o.k)", True),
    ("SELECT o.id FROM o WHERE o.id = 7 AND EXISTS (SELECT 1 FROM totals a WHERE a.k = o.k AND a.n > 0)", True),
    ("SELECT (SELECT sum(10 / x) FROM t WHERE t.k = o.k) AS n FROM o WHERE o.id = 7", False),  # another group may fail
])  # fmt: skip
def test_groups_that_rows_ask_for_are_looked_up(large: hj.Engine, sql: str, asked: bool) -> None:
    said = next(line for line in large.explain(sql).splitlines() if line.startswith("as a query: "))
    assert ("scans" not in said and "looks up the keys of a subquery in " in said) is asked
    assert large.query(sql).num_rows > 0


def test_few_rows_of_a_join_ask_for_few_rows_of_a_subquery() -> None:
    """The pairs of a self join in a subquery, some fifty million,, are never all made."""
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE line (id bigint PRIMARY KEY, number bigint, shop bigint, house bigint);"
                   "CREATE TABLE shop (id bigint PRIMARY KEY, state text)")
    numbers = np.arange(200_000)
    engine.apply({"line": pa.table({"id": numbers, "number": numbers // 400, "shop": numbers // 40,
                                    "house": numbers % 3}),
                  "shop": pa.table({"id": numbers[:5000], "state": numbers[:5000].astype(str)})}, time=1)  # fmt: skip
    made = list[int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluating, "make_run", lambda rows, upper: made.append(len(rows)) or make_run(rows, upper))
        rows = engine.query("SELECT count(*) AS n FROM line JOIN shop ON shop.id = line.shop WHERE shop.state = '7' "
                            "AND number IN (SELECT a.number FROM line a JOIN line b USING (number) "
                            "WHERE a.house <> b.house)")
    assert rows.to_pylist() == [{"n": 40}] and max(made) < 200_000
