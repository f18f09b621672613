"""Aggregates in subqueries that belong to a query around them: views agree with the same query written without them."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

import halfjoin
from halfjoin.errors import UnsupportedSQL
from tests.oracle.joined import run

pytest_plugins = ("tests.support.postgres",)

SEEDS = range(int(os.environ.get("HALFJOIN_FUZZ", "40")))
CALLS = ("sum(o.x)", "count(o.x)", "max(o.x)", "min(o.x + 1)", "count(*) FILTER (WHERE o.x > 0)", "count(DISTINCT o.x)",
         "sum(o.x + (SELECT count(d.x) FROM d WHERE d.k = o.x))", "max((SELECT max(d.x) FROM d WHERE d.x < o.x))",
         "count(*) FILTER (WHERE EXISTS (SELECT 1 FROM d WHERE d.x = o.x))",
         "sum(CASE WHEN o.x IN (SELECT d.k FROM d) THEN 1 END)")
FORMS = (  # {call}: an aggregate over the rows of o
    "SELECT o.k, (SELECT {call}) AS y FROM a AS o GROUP BY o.k",
    "SELECT 7 AS k, (SELECT {call} + 1) AS y FROM a AS o",
    "SELECT o.k, {call} - (SELECT {call}) AS y FROM a AS o GROUP BY o.k",
    "SELECT o.k, 1 AS y FROM a AS o GROUP BY o.k HAVING EXISTS (SELECT 1 FROM b WHERE b.x = {call})",
    "SELECT o.k, 1 AS y FROM a AS o GROUP BY o.k HAVING o.k IN (SELECT b.k FROM b WHERE b.x < {call})",
    "SELECT o.k, (SELECT count(*) FROM b WHERE b.x = {call}) AS y FROM a AS o GROUP BY o.k",
    "SELECT o.k, (SELECT sum(b.x + 1) FROM b WHERE b.k = o.k HAVING {call} > count(*)) AS y FROM a AS o GROUP BY o.k",
    "SELECT o.k, (SELECT max(b.x) + {call} FROM b WHERE b.x <= {call}) AS y FROM a AS o GROUP BY o.k",
    "SELECT o.k, (SELECT (SELECT {call} + count(b.x))  FROM b) AS y FROM a AS o GROUP BY o.k",
    "SELECT o.k, (SELECT count(*) FROM b WHERE EXISTS (SELECT 1 FROM c WHERE c.x = {call} AND c.k = b.k)) AS y "
    "FROM a AS o GROUP BY o.k",
    "SELECT o.k, (SELECT b.x + {call} FROM b ORDER BY b.x DESC NULLS LAST LIMIT 1) AS y FROM a AS o GROUP BY o.k",
    "SELECT o.k, (SELECT count(*) FROM b JOIN c ON c.x = {call} AND c.k = b.k) AS y FROM a AS o GROUP BY o.k",
    "SELECT o.k, (SELECT count(c.k) FROM b LEFT JOIN c ON c.x = {call} AND c.k = b.k) AS y FROM a AS o GROUP BY o.k",
    "SELECT o.k, (WITH w AS (SELECT {call} AS s) SELECT s FROM w) AS y FROM a AS o GROUP BY o.k",
    "SELECT o.k, (SELECT {call} UNION ALL SELECT 1 WHERE false) AS y FROM a AS o GROUP BY o.k",
    "SELECT o.k, rank() OVER (ORDER BY (SELECT {call})) AS y FROM a AS o GROUP BY o.k",
    "SELECT o.k, (SELECT {call}) AS y FROM a AS o GROUP BY ROLLUP (o.k)",
    "SELECT o.k, (SELECT count(c.x) FROM c WHERE c.x = {call}) AS y FROM a AS o LEFT JOIN b ON b.k = o.x GROUP BY o.k",
)


def written(form: str, call: str) -> tuple[str, str]:
    """The view, and the same with the aggregate in a subquery in FROM."""
    start = form.index(" FROM a AS o")
    end = form.find(" HAVING", start)
    tail = form[start:] if end < 0 else form[start:end]
    grouped = "GROUP BY" in tail
    inner = f"(SELECT {'o.k, ' * grouped}{call} AS made{tail}) AS o"
    rest = form[:start].replace("{call}", "o.made") + f" FROM {inner}"
    if end >= 0:
        rest += form[end:].replace(" HAVING", " WHERE").replace("{call}", "o.made")
    return form.format(call=call), rest


@pytest.mark.parametrize("seed", SEEDS)
def test_an_aggregate_belongs_to_the_query_it_reads(seed: int) -> None:
    rng = random.Random(seed)
    assert not run(seed, [written(form, rng.choice(CALLS)) for form in rng.sample(FORMS, 3)])


def test_postgresql_means_the_same_by_them(postgres: Any) -> None:
    rng = random.Random(1)
    for name in "abcd":
        postgres.execute(f"CREATE TEMP TABLE {name} (k integer, x integer)")
        rows = [(rng.choice([0, 1, 2, None]), rng.choice([0, 1, 2, None])) for _ in range(12)]
        postgres.cursor().executemany(f"INSERT INTO {name} VALUES (%s, %s)", rows)
    for form in FORMS:
        for call in CALLS:
            answers = [sorted(map(repr, postgres.execute(sql).fetchall())) for sql in written(form, call)]
            assert answers[0] == answers[1], form


def test_the_nearest_query_that_is_read_has_the_aggregate() -> None:
    """`o` is read from two queries further in; `b.x` makes the sum the middle query's, though it reads `o`, too."""
    engine = _engine()
    sql = "SELECT k, (SELECT (SELECT {}) FROM b) AS y FROM o GROUP BY k"
    assert engine.query(sql.format("sum(o.v)")).to_pylist() == [{"k": 1, "y": 3}]
    assert engine.query("SELECT k, (SELECT (SELECT sum(b.x + k)) FROM b) AS y FROM o GROUP BY k").to_pylist() == [
        {"k": 1, "y": 6}]


@pytest.mark.parametrize("sql", [
    "SELECT k FROM o WHERE EXISTS (SELECT 1 FROM b HAVING sum(o.v) > 1)",
    "SELECT k, s FROM o, LATERAL (SELECT sum(o.v) AS s) AS l",
    "SELECT o.k FROM o JOIN b ON (SELECT sum(o.v)) = b.x",
])
def test_places_without_aggregates_say_so(sql: str) -> None:
    with pytest.raises(UnsupportedSQL, match="belongs to that query, which does not allow it at this place"):
        _engine().query(sql)


def test_a_subquery_decides_to_whom_an_aggregate_belongs() -> None:
    """The first sum reads `o` only through its subquery; the second reads `b` through it."""
    engine = _engine()
    sql = "SELECT k, (SELECT {}) AS y FROM o GROUP BY k"
    assert engine.query(sql.format("sum((SELECT o.v + c.x FROM b AS c))")).to_pylist() == [{"k": 1, "y": 13}]
    of_b = "SELECT k, (SELECT sum((SELECT o.k + b.x)) FROM b) AS y FROM o GROUP BY k"
    assert engine.query(of_b).to_pylist() == [{"k": 1, "y": 6}]
    inner = "SELECT k, (SELECT sum(b.x + (SELECT sum(o.v))) FROM b) AS y FROM o GROUP BY k"
    assert engine.query(inner).to_pylist() == [{"k": 1, "y": 8}]


def test_an_outer_aggregate_does_not_see_an_inner_with() -> None:
    sql = "SELECT k, (WITH b AS (SELECT 1 AS x) SELECT sum(o.v + (SELECT x FROM b))) AS y FROM o GROUP BY k"
    with pytest.raises(UnsupportedSQL, match="which does not see b of the inner WITH") as caught:
        _engine().query(sql)
    assert caught.value.wrong


@pytest.mark.parametrize("sql", [
    "SELECT k, (SELECT v) AS y FROM o GROUP BY k",
    "SELECT k, (SELECT o.v) AS y FROM o GROUP BY k",
    "SELECT (SELECT count(*) FROM (SELECT v) AS l) AS y FROM o GROUP BY k",
    "SELECT (SELECT (SELECT v FROM b LIMIT 1) FROM o GROUP BY k) AS y FROM o",
])
def test_ungrouped_columns_are_named_in_subqueries(sql: str) -> None:
    """The last one would find a column of that name further out."""
    with pytest.raises(UnsupportedSQL, match=r'subquery uses ungrouped column "o\.v" from outer query') as caught:
        _engine().query(sql)
    assert caught.value.wrong


def _engine() -> halfjoin.Engine:
    engine = halfjoin.Engine()
    engine.execute("CREATE TABLE o (k integer, v integer)")
    engine.execute("CREATE TABLE b (x integer)")
    engine.apply({"o": [{"k": 1, "v": 1}, {"k": 1, "v": 2}], "b": [{"x": 5}]}, time=1)
    return engine
