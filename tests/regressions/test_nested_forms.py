"""Queries in which forms meet that each alone is right."""

from __future__ import annotations

from collections import Counter

import pytest

import halfjoin as hj
from tests.oracle.rows import Bag, bag


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute("CREATE TABLE a (k integer); CREATE TABLE b (x integer, y integer)")
    engine.execute("INSERT INTO a VALUES (7); INSERT INTO b VALUES (1, 5), (1, 6), (2, 5)")
    return engine


def both(engine: hj.Engine, sql: str) -> Bag:
    """The rows of a query, which a view of it has, too."""
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    asked = bag(engine.query(sql))
    assert asked == bag(engine.read("v"))
    return asked


@pytest.mark.parametrize("keys", ["b.x", "x", "(b.x), b.x", "ROLLUP (b.x)", "b.x + 0, b.x"])
def test_a_subquery_is_no_key_for_its_name(engine: hj.Engine, keys: str) -> None:
    """Its name is that of a column, which GROUP BY means first."""
    found = both(engine, f"SELECT (SELECT a.k FROM a) + b.x AS x, count(*) AS n FROM b GROUP BY {keys}")
    assert found == Counter([(8, 2), (9, 1), *([(None, 3)] if "ROLLUP" in keys else [])])


def test_a_number_in_a_key_is_no_position(engine: hj.Engine) -> None:
    found = both(engine, "SELECT (SELECT a.k FROM a) AS m, b.x + 1 AS n FROM b GROUP BY b.x + 1")
    assert found == Counter([(7, 2), (7, 3)])


@pytest.mark.parametrize("keys", ["x", "(x)", "ROLLUP (x)", "1", "b.x"])
def test_two_outputs_with_the_name_of_a_column_leave_it_the_key(engine: hj.Engine, keys: str) -> None:
    found = bag(engine.query(f"SELECT x, max(y) AS x FROM b GROUP BY {keys}"))
    assert found == Counter([(1, 6), (2, 5), *([(None, 6)] if "ROLLUP" in keys else [])])


@pytest.fixture
def wide(engine: hj.Engine) -> hj.Engine:
    engine.execute("CREATE TABLE c (x integer, n integer); INSERT INTO c VALUES (1, 10), (3, 30)")
    return engine


def test_a_domain_has_columns_of_the_names_of_its_rows(wide: hj.Engine) -> None:
    """In a loop the rows of a query stand beside the copy of them that is the domain of its subquery."""
    wide.execute("CREATE VIEW g AS SELECT x, count(*) AS n FROM b GROUP BY x")
    found = both(wide, """WITH RECURSIVE r (n) AS (
        SELECT 0 FROM c, g AS o WHERE o.x <> ANY (SELECT DISTINCT o.x FROM g) UNION SELECT n FROM r) SELECT n FROM r""")
    assert found == Counter()


@pytest.mark.parametrize(("more", "condition"), [
    ("", "EXISTS (SELECT FROM c WHERE c.x = o.k GROUP BY c.n HAVING count(*) > 0) AND (o.k < 3 OR l.k = o.k)"),
    (", generate_series(1, o.k) AS s", "EXISTS (SELECT FROM c WHERE c.x = o.k GROUP BY c.n HAVING count(*) > 0)"),
    ("", "EXISTS (SELECT FROM c, generate_series(o.k, o.k) AS s WHERE c.x = s GROUP BY c.n HAVING count(*) > 0)"),
])
def test_a_domain_of_constant_rows_has_columns_of_their_names(wide: hj.Engine, more: str, condition: str) -> None:
    asked = f"""SELECT DISTINCT ON (o.k) o.k, l.k AS other, l.n
                FROM (SELECT k FROM (VALUES (1), (2)) AS v (k) GROUP BY k) AS o,
                LATERAL (SELECT o.k, count(*) AS n FROM b GROUP BY GROUPING SETS ((b.x, o.k), (b.x))) AS l{more}
                WHERE {condition} ORDER BY o.k, l.k, l.n"""
    assert both(wide, asked) == Counter([(1, 1, 1)])
    wide.execute("INSERT INTO c VALUES (2, 20); DELETE FROM c WHERE x = 1")
    assert bag(wide.read("v")) == bag(wide.query(asked)) == Counter([(2, 2, 1)])


@pytest.mark.parametrize("keys", ["ROLLUP (x = 1, y)", "GROUPING SETS ((x = 1, y), x = 1, ())", "CUBE (x = 1, y)"])
def test_keys_of_grouping_sets_may_be_conditions(engine: hj.Engine, keys: str) -> None:
    found = both(engine, f"SELECT x = 1 AS one, y, count(*) AS n FROM b GROUP BY {keys}")
    whole = [(True, 5, 1), (True, 6, 1), (False, 5, 1), (True, None, 2), (False, None, 1), (None, None, 3)]
    assert found == Counter([*whole, *([(None, 5, 2), (None, 6, 1)] if "CUBE" in keys else [])])


@pytest.mark.parametrize(("items", "rows"), [
    ("b, LATERAL (SELECT b.x AS k WHERE b.y = 5) AS g FULL JOIN c ON g.k = c.x",
     [(1, 5, 1, 1), (1, 5, None, 3), (1, 6, None, 1), (1, 6, None, 3), (2, 5, 2, None), (2, 5, None, 1),
      (2, 5, None, 3)]),
    ("b, generate_series(b.x, 1) AS g (k) RIGHT JOIN c ON g.k = c.x",
     [(1, 5, 1, 1), (1, 5, None, 3), (1, 6, 1, 1), (1, 6, None, 3), (2, 5, None, 1), (2, 5, None, 3)]),
    ("b, c RIGHT JOIN LATERAL (SELECT b.x AS k) AS g ON g.k = c.x",
     [(1, 5, 1, 1), (1, 6, 1, 1), (2, 5, 2, None)]),
    ("b JOIN (LATERAL (SELECT b.x AS k) AS g LEFT JOIN c ON g.k = c.x) ON c.x IS NULL", [(2, 5, 2, None)]),
    ("b LEFT JOIN (LATERAL (SELECT b.x AS k) AS g JOIN c ON g.k = c.x) ON true",
     [(1, 5, 1, 1), (1, 6, 1, 1), (2, 5, None, None)]),
])  # fmt: skip
def test_lateral_among_outer_joins_reads_what_is_further_left(
    wide: hj.Engine, items: str, rows: list[tuple[object, ...]]
) -> None:
    assert both(wide, f"SELECT b.x, b.y, g.k, c.x AS other FROM {items}") == Counter(rows)


def test_lateral_in_an_outer_join_does_not_read_the_side_that_may_be_missing(wide: hj.Engine) -> None:
    for items in (
        "b RIGHT JOIN LATERAL (SELECT b.x) AS g ON true",
        "c, b FULL JOIN generate_series(1, b.x) AS g ON true",
        "c, b FULL JOIN a ON a.k = c.x",
        "c, LATERAL (SELECT c.x) AS b (x) RIGHT JOIN a ON a.k = c.x",
    ):
        with pytest.raises(hj.UnknownName, match=r"unknown table or alias '[bc]'"):
            wide.query(f"SELECT 1 FROM {items}")


def test_lateral_reads_its_rows_in_values_below(engine: hj.Engine) -> None:
    found = both(
        engine, "SELECT b.y, q.z FROM b, LATERAL (SELECT v.z FROM (VALUES (b.x), (9)) AS v (z)) AS q WHERE b.y = 6"
    )
    assert found == Counter([(6, 1), (6, 9)])


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ("ARRAY[(SELECT max(b.y) FROM b WHERE b.x = a.k - 5), 0]", [[5, 0]]),
        ("ARRAY[(SELECT b.y FROM b WHERE b.x = a.k)]", [[None]]),
        ("ARRAY[[(SELECT max(y) FROM b), 1], [2, 3]]", [[[6, 1], [2, 3]]]),
        ("ARRAY[ARRAY(SELECT y FROM b ORDER BY y), ARRAY[7, 8, 9]]", [[[5, 5, 6], [7, 8, 9]]]),
    ],
)
def test_a_subquery_is_an_element_of_an_array(engine: hj.Engine, value: str, rows: list[object]) -> None:
    assert engine.query(f"SELECT {value} AS v FROM a").column("v").to_pylist() == rows
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {value} AS v FROM a")
    assert engine.read("v").column("v").to_pylist() == rows


def test_a_subquery_of_several_rows_is_no_element(engine: hj.Engine) -> None:
    with pytest.raises(hj.DataError, match="more than one row"):
        engine.query("SELECT ARRAY[(SELECT y FROM b)] AS v")


def test_a_call_in_from_reads_aggregates_of_the_query_around(engine: hj.Engine) -> None:
    found = both(
        engine,
        """SELECT x, (SELECT max(u) FROM unnest(ARRAY[min(b.y), max(b.y), 3]) AS u) AS m,
                                   (SELECT count(*) FROM generate_series(4, max(b.y))) AS n,
                                   (SELECT s FROM abs(-min(b.y)) AS s) AS s FROM b GROUP BY x""",
    )
    assert found == Counter([(1, 6, 3, 5), (2, 5, 2, 5)])


@pytest.mark.parametrize(("value", "rows"), [
    ("(SELECT sum(c.n * min(b.y)) FROM c)", [(1, 200), (2, 200)]),
    ("(SELECT count(*) FILTER (WHERE c.n > max(b.y) * 5) FROM c)", [(1, 0), (2, 1)]),
    ("(SELECT sum(c.n) FILTER (WHERE c.x < max(b.x) + grouping(b.x)) FROM c)", [(1, None), (2, 10)]),
    ("(SELECT max(c.n + (SELECT max(a.k + min(b.y) + c.x) FROM a)) FROM c)", [(1, 45), (2, 45)]),
])
def test_an_aggregate_may_read_those_of_the_query_around(wide: hj.Engine, value: str, rows: list[object]) -> None:
    assert both(wide, f"SELECT x, {value} AS v FROM b GROUP BY x") == Counter(rows)
    for wrong in ("(SELECT max(max(b.y)) FROM c)", "(SELECT max(max(c.n)) FROM c)"):
        with pytest.raises(hj.UnsupportedSQL, match="aggregate function calls cannot be nested"):
            wide.query(f"SELECT x, {wrong} FROM b GROUP BY x")


def test_a_subquery_with_a_window_may_be_a_key(engine: hj.Engine) -> None:
    key = "x IN (SELECT rank() OVER (ORDER BY y) FROM b)"
    assert both(engine, f"SELECT {key} AS f, count(*) AS n FROM b GROUP BY {key}") == Counter([(True, 2), (False, 1)])
    with pytest.raises(hj.UnsupportedSQL, match="window functions are not allowed in GROUP BY"):
        engine.query("SELECT count(*) FROM b GROUP BY rank() OVER (ORDER BY y)")


@pytest.mark.parametrize("query", [
    "SELECT DISTINCT ON ((SELECT max(c.n) FROM c WHERE c.x = b.x)) x, y FROM b "
    "ORDER BY (SELECT max(c.n) FROM c WHERE c.x = b.x), y DESC",
    "SELECT DISTINCT ON (x IN (SELECT x FROM c)) x, y FROM b ORDER BY x IN (SELECT x FROM c), y DESC",
    "SELECT DISTINCT ON ((SELECT max(c.n) FROM c WHERE c.x = b.x)) x, y, (SELECT max(c.n) FROM c WHERE c.x = b.x) AS m "
    "FROM b ORDER BY m, y DESC",
])
def test_a_subquery_of_distinct_on_is_the_same_in_order_by(wide: hj.Engine, query: str) -> None:
    more = [10, None] if "AS m" in query else []
    assert both(wide, query) == Counter([(1, 6, *more[:1]), (2, 5, *more[1:])])


def test_a_subquery_of_distinct_is_the_same_in_order_by(wide: hj.Engine) -> None:
    value = "(SELECT max(c.n) FROM c WHERE c.x = b.x)"
    asked = f"SELECT DISTINCT {value} AS v FROM b ORDER BY {value} NULLS FIRST LIMIT 1"
    assert both(wide, asked) == Counter([(None,)])


@pytest.mark.parametrize("window", [
    "ORDER BY (SELECT max(c.n) FROM c WHERE c.x = b.x) NULLS FIRST", "ORDER BY x IN (SELECT x FROM c)",
    "ORDER BY NOT EXISTS (SELECT FROM c WHERE c.x = b.x) DESC",
])  # fmt: skip
def test_a_window_of_the_clause_may_have_subqueries(wide: hj.Engine, window: str) -> None:
    calls = "rank() OVER w AS r, count(*) OVER (w GROUPS 1 PRECEDING) AS n"
    found = both(wide, f"SELECT x, y, {calls} FROM b WINDOW w AS ({window})")
    assert found == Counter([(2, 5, 1, 1), (1, 5, 2, 3), (1, 6, 2, 3)])


def test_a_window_of_the_clause_may_have_aggregates(wide: hj.Engine) -> None:
    found = both(wide, "SELECT x, rank() OVER w AS r FROM b GROUP BY x WINDOW w AS (ORDER BY sum(y) DESC, x)")
    assert found == Counter([(1, 1), (2, 2)])
    assert bag(wide.query("SELECT rank() OVER w FROM b WINDOW w AS (ORDER BY sum(y))")) == Counter([(1,)])
    order = "ORDER BY (SELECT max(c.n) FROM c WHERE c.x = b.x), count(*)"
    found = bag(wide.query(f"SELECT x, rank() OVER w FROM b GROUP BY x WINDOW w AS ({order})"))
    assert found == Counter([(1, 1), (2, 2)])
