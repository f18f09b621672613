"""Queries for some groups have the answer, and the errors, that they have where all groups are made."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.statements import evaluating
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.parse.parse import parse_query

SCHEMA = """
    CREATE TABLE t (id bigint PRIMARY KEY, k integer, s text, f double precision, y numeric(6, 2), x bigint);
    CREATE TABLE loose (k integer, x bigint);
    CREATE VIEW totals AS SELECT k, s, sum(x) AS total, count(*) AS n, min(y) AS least FROM t GROUP BY k, s;
    CREATE VIEW ranked AS SELECT id, k, s, row_number() OVER (PARTITION BY k ORDER BY x, id) AS place FROM t;
    CREATE VIEW few AS SELECT DISTINCT k, f FROM t WHERE x > 0;
    CREATE VIEW days AS SELECT x / 2 * 2 AS even, avg(x) AS mean FROM t GROUP BY x / 2 * 2
"""
CONDITIONS = ("k = 1", "k IN (1, 3)", "k < 2", "2 >= k", "k <> 1", "k IS NULL", "k = 1 AND n > 1", "k = 1 OR n = 1",
              "s = 'a' AND k = 1", "k = 1 AND s IS NULL")  # fmt: skip
QUERIES = (
    *(f"SELECT * FROM totals WHERE {condition}" for condition in CONDITIONS),
    "SELECT k, max(total) AS m FROM totals GROUP BY k HAVING k = 1",
    "SELECT * FROM (SELECT k AS a, sum(n) AS b FROM totals WHERE s IS NOT NULL GROUP BY k) q WHERE a = 1",
    "SELECT * FROM (SELECT k, n FROM totals UNION ALL SELECT k, 0 FROM t UNION ALL SELECT k, x FROM loose) q "
    "WHERE k = 1",
    "SELECT * FROM ranked WHERE k = 1 AND place <= 2", "SELECT * FROM ranked WHERE k = 1",
    "SELECT * FROM ranked WHERE id = 3", "SELECT * FROM few WHERE f = 0", "SELECT * FROM few WHERE f > -1 AND k = 1",
    "SELECT y, count(*) AS n FROM t GROUP BY y HAVING y = 1.5", "SELECT * FROM days WHERE even = 2",
    "SELECT k, count(*) AS n FROM loose GROUP BY k HAVING k = 1",
    "SELECT a.k, a.n FROM totals a JOIN t ON t.k = a.k WHERE a.k = 1 AND t.id = 2",
    "SELECT * FROM (SELECT k, sum(10 / x) AS q FROM t GROUP BY k) q WHERE k = 1",
    "SELECT * FROM (SELECT k, 10 / sum(x) AS q FROM t GROUP BY k) q WHERE k = 1",
    "SELECT * FROM (SELECT k, count(*) AS n FROM t GROUP BY k HAVING 10 / sum(x) > 1) q WHERE k = 1",
    "SELECT * FROM (SELECT k, 10 / sum(x) AS q FROM t GROUP BY k) q WHERE k = 1 AND q > 2",
    "SELECT * FROM (SELECT k, count(*) AS n FROM (SELECT k FROM t ORDER BY x, id LIMIT 3) u GROUP BY k) q WHERE k = 1",
    "SELECT * FROM (SELECT k, count(*) AS n FROM t LEFT JOIN (SELECT id AS i FROM t WHERE x > 1) u ON i = id "
    "GROUP BY k) q WHERE k = 1",
    "SELECT * FROM (SELECT k, string_agg(s, ',' ORDER BY id) AS q FROM t GROUP BY k) q WHERE k = 1",
    "SELECT * FROM (SELECT k, array_agg(x ORDER BY id) AS q, bool_and(x > 1) AS b, every(f IS NULL) AS e, "
    "any_value(k) AS v, bit_or(x) AS o FROM t GROUP BY k) q WHERE k = 1",
    "SELECT * FROM (SELECT k, array_agg(10 / x) AS q FROM t GROUP BY k) q WHERE k = 1",
    "SELECT * FROM (SELECT k, stddev(x) AS q, var_pop(f) AS v, regr_slope(f, x) AS r, bit_xor(x) AS o FROM t GROUP BY k"
    ") q WHERE k = 1",
    *(f"WITH y AS (SELECT k, s, sum(x) AS m FROM t GROUP BY k, s) SELECT a.k, a.m, b.m AS o FROM y a {join} "
      f"WHERE {test}"
      for join in ("JOIN y b ON b.s = a.s", "LEFT JOIN y b ON b.s = a.s", "LEFT JOIN y b ON b.k = a.k AND b.s <> a.s")
      for test in ("a.k = 1 AND b.k = 1 + 1", "a.k IN (1, 2) AND b.k > 0 AND b.k < 3", "a.k = 1", "b.k IS NULL",
                   "a.k = 1 AND a.s = 'a' AND b.s = 'b'", "a.k = 1 AND 10 / b.m > 2")),
    *(f"SELECT a.k, a.s, a.n, b.f, b.k AS l FROM totals a {join} WHERE {test}"
      for join in ("JOIN few b ON b.k = a.k", "LEFT JOIN few b ON b.k = a.k", "FULL JOIN few b ON b.k = a.k",
                   "LEFT JOIN few b ON b.k = a.k AND b.k = a.n", "LEFT JOIN few b ON a.k = a.n AND b.k = a.n",
                   "LEFT JOIN few b ON b.k = a.k AND 10 / b.k > 3")
      for test in ("a.k = 1", "b.k = 1", "a.k IS NULL", "b.k IS NULL", "a.k IN (1, 2) AND 10 / b.k > 3", "a.n = 1",
                   "a.k = 1 AND coalesce(b.f, 0) = 0")),
    "SELECT a.k, a.n FROM totals a WHERE a.k = 1 AND NOT EXISTS (SELECT 1 FROM few b WHERE b.k = a.k AND b.f = 0)",
    "SELECT a.k, a.n FROM totals a WHERE a.k < 3 AND EXISTS (SELECT 1 FROM few b WHERE b.k = a.k AND b.f = 0)",
    "SELECT a.k, a.n FROM totals a WHERE a.k = 1 AND a.n NOT IN (SELECT b.k FROM few b)",
    "SELECT a.k, b.k AS l, c.n FROM totals a LEFT JOIN few b ON b.k = a.k LEFT JOIN totals c ON c.k = b.k AND "
    "c.s = a.s WHERE a.k = 1",
    "SELECT a.k, c.n FROM t a LEFT JOIN (SELECT b.k, c.n FROM few b JOIN totals c ON c.k = b.k) c ON c.k = a.k "
    "WHERE c.k IS NULL",
)  # fmt: skip
ROWS = st.tuples(
    st.sampled_from([None, 0, 1, 2, 3]), st.sampled_from([None, "a", "b"]), st.sampled_from([0.0, -0.0, 1.5, None]),
    st.sampled_from([None, Decimal("1.50"), Decimal("1.5"), Decimal("-2")]), st.integers(-1, 4),
)  # fmt: skip


def answer(engine: hj.Engine, sql: str) -> Any:
    """The rows in any order, or the error."""
    try:
        return sorted(map(str, engine.query(sql).to_pylist()))
    except hj.DataError as problem:
        return str(problem).partition(", for a row")[0]


@given(st.lists(ROWS, max_size=12))
def test_the_answers_and_errors_are_those_of_all_groups(rows: list[tuple[Any, ...]]) -> None:
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA)
    engine.apply({
        "t": [{"id": id, "k": k, "s": s, "f": f, "y": y, "x": x} for id, (k, s, f, y, x) in enumerate(rows)],
        "loose": [{"k": k, "x": x} for k, _, _, _, x in rows],
    }, time=1)  # fmt: skip
    found = [answer(engine, sql) for sql in QUERIES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluating, "below_groups", lambda relation, checked: relation)
        whole = hj.Engine(clock="own")
        whole.execute(SCHEMA)
        whole.apply({name: engine.read(name) for name in ("t", "loose")}, time=1)
        assert found == [answer(whole, sql) for sql in QUERIES]


def test_a_group_of_a_random_number_is_not_drawn_again() -> None:
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA)
    engine.apply({"t": [{"id": id} for id in range(200)]}, time=1)
    sql = "SELECT (random() * 3)::integer AS r, count(*) AS n FROM t GROUP BY (random() * 3)::integer"
    found = engine.query(f"SELECT * FROM ({sql}) q WHERE r = 1").to_pylist()
    assert [row["r"] for row in found] == [1] and found[0]["n"] < 200


def by_key(engine: hj.Engine, sql: str) -> bool:
    """Whether a query reads nothing but rows of the keys that it names."""
    bound = bind_query(parse_query(sql), engine._state.catalog, sql)
    return evaluating.prepare(engine._state, bound.relation).by_key


@pytest.mark.parametrize(("sql", "known"), [
    ("SELECT * FROM totals WHERE k = 1", True), ("SELECT * FROM ranked WHERE k = 1 AND place = 1", True),
    ("SELECT k, count(*) AS n FROM t GROUP BY k HAVING k IN (1, 2)", True),
    ("SELECT * FROM totals WHERE n = 1", False), ("SELECT * FROM totals WHERE k + 1 = 2", False),
    ("SELECT * FROM (SELECT k, sum(10 / x) AS q FROM t GROUP BY k) q WHERE k = 1", False),  # another group may fail
    ("SELECT k, count(*) AS n FROM loose GROUP BY k HAVING k = 1", False),  # another group may be below zero
    ("SELECT k, string_agg(s, '') AS n FROM t GROUP BY k HAVING k = 1", True),
    ("SELECT k, stddev(x) AS n, corr(f, x) AS m, bit_xor(x) AS o FROM t GROUP BY k HAVING k = 1", True),
    ("SELECT k, string_agg(s, '') AS n, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) AS m FROM t GROUP BY k "
     "HAVING k = 1", False),
])  # fmt: skip
def test_a_query_for_a_group_is_a_lookup(sql: str, known: bool) -> None:
    engine = hj.Engine(clock="own")
    engine.execute(SCHEMA + "; CREATE INDEX by_k ON t (k); CREATE INDEX loose_by_k ON loose (k)")
    assert by_key(engine, sql) == known
