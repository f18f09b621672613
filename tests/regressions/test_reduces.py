"""Reduces: defects that random histories found."""

from __future__ import annotations

import pytest

import halfjoin as hj
from tests.oracle.rows import bag

EMPTY = {
    "SELECT sum(v) AS n FROM t": {(None,): 1},
    "SELECT string_agg(s, ',') AS n FROM t": {(None,): 1},
    "SELECT array_agg(s ORDER BY v) AS n, max(s) AS m FROM t": {(None, None): 1},
    "SELECT v, sum(v) AS n, min(s) AS m FROM t GROUP BY v": {},
    "SELECT v, s, rank() OVER (PARTITION BY s ORDER BY v) AS n FROM t": {},
    "SELECT v, s FROM t ORDER BY s LIMIT 2": {},
}


@pytest.mark.parametrize("sql", EMPTY)
def test_a_view_over_nothing_at_closed_times(sql: str) -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (v int, s text); CREATE TABLE nothing (v int, s text)")
    engine.apply({"t": [{"v": 1, "s": "x", "__time": 0}, {"v": 1, "s": "x", "__time": 0, "__diff": -1}]}, close=False)
    engine.advance(to=3)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    assert bag(engine.read("v")) == EMPTY[sql]
    engine.execute(f"CREATE MATERIALIZED VIEW w AS {sql.replace('FROM t', 'FROM nothing')}")
    assert bag(engine.read("w")) == EMPTY[sql]
    engine.apply({"t": [{"v": 1, "s": "x", "__time": 5}]}, close=False)
    engine.apply({"t": [{"v": 1, "s": "x", "__time": 5, "__diff": -1}]}, time=6)
    assert bag(engine.read("v")) == EMPTY[sql]


def test_a_subquery_in_a_comparison_may_have_temporal_filters() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (v int); CREATE TABLE u (v int)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT v FROM t WHERE v > (SELECT count(*) FROM u WHERE mz_now() < v)"
                   " AND v < ALL (SELECT v + 5 FROM u WHERE v <= mz_now() AND mz_now() < 8)")  # fmt: skip
    engine.apply({"t": [{"v": 1}, {"v": 6}], "u": [{"v": 2}, {"v": 0}]}, time=0)
    engine.advance(to=10)
    assert [bag(engine.read("v", as_of=time)) for time in (0, 2, 8)] == [{}, {(1,): 1}, {(1,): 1, (6,): 1}]


def test_the_conditions_of_not_in_have_names_of_their_own() -> None:
    """Beside another use of the same table, which is `u#2` in the plan of a node."""
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (k int); CREATE TABLE u (x int, y int)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT u.y, count(*) AS n FROM"
                   " (SELECT k FROM t WHERE k NOT IN (SELECT x FROM u)) AS q CROSS JOIN u GROUP BY u.y")  # fmt: skip
    engine.apply({"t": [{"k": 1}, {"k": 2}, {"k": 2}], "u": [{"x": 1, "y": 5}, {"x": 3, "y": 6}]}, time=0)
    assert bag(engine.read("v")) == {(5, 2): 1, (6, 2): 1}
    engine.apply({"u": [{"x": None, "y": 5}]}, time=1)
    assert bag(engine.read("v")) == {}


def test_sums_survive_a_count_of_rows_that_is_0() -> None:
    """A group's rows add up to none, but not its values: it is an error until they do."""
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (k int, v int)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n, sum(v) AS s, max(v) AS m FROM t GROUP BY k")
    engine.apply({"t": [{"k": 1, "v": 5, "__diff": 1}, {"k": 1, "v": None, "__diff": -1}]}, time=0)
    with pytest.raises(hj.DataError, match=r"the rows do not cancel: some have negative counts.*k = 1"):
        engine.read("v")
    engine.apply({"t": [{"k": 1, "v": None, "__diff": 1}]}, time=1)
    assert bag(engine.read("v")) == {(1, 1, 5, 5): 1}


TWICE = {
    "SELECT a, b, count(*) AS n FROM q GROUP BY a, b": [(1, 1, 2), (2, 2, 1)],
    "SELECT a, b, max(v) AS n FROM q GROUP BY a, b": [(1, 1, 3), (2, 2, 2)],
    "SELECT a, b, rank() OVER (PARTITION BY a, b ORDER BY v) AS n FROM q": [(1, 1, 1), (1, 1, 2), (2, 2, 1)],
}


@pytest.mark.parametrize("sql", TWICE)
def test_a_column_may_be_two_keys_of_a_group(sql: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k int, v int); CREATE VIEW q AS SELECT k AS a, k AS b, v FROM t")
    engine.execute(f"CREATE MATERIALIZED VIEW w AS {sql}")
    engine.execute("INSERT INTO t VALUES (1, 2), (1, 4), (2, 2)")
    engine.execute("UPDATE t SET v = 3 WHERE v = 4")
    assert sorted(bag(engine.read("w"))) == TWICE[sql]


def test_an_aggregate_over_nothing_in_a_join_has_its_row() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k int); CREATE TABLE u (x int); CREATE TABLE w (x int)")
    engine.execute("""CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE EXISTS (
        SELECT 1 FROM u, (SELECT count(*) AS n, sum(w.x) AS s FROM w WHERE w.x < t.k) AS q
        WHERE q.n = u.x AND q.s IS NULL)""")
    engine.execute("INSERT INTO t VALUES (1), (2), (NULL); INSERT INTO u VALUES (0)")
    assert bag(engine.read("v")) == {(1,): 1, (2,): 1, (None,): 1}
    engine.execute("INSERT INTO w VALUES (1)")
    assert bag(engine.read("v")) == {(1,): 1, (None,): 1}
    engine.execute("DELETE FROM w")
    assert bag(engine.read("v")) == {(1,): 1, (2,): 1, (None,): 1}


@pytest.mark.parametrize("copies", [10_000_002, 2**31 - 1])
def test_a_window_over_too_many_copies_of_one_row_fails(copies: int) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k int, v int)")
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM t")
    engine.apply({"t": [{"k": 1, "v": 1, "__diff": copies}]})
    with pytest.raises(hj.DataError, match=r"a window over more than 10,000,000 copies of rows, for a row with k = 1"):
        engine.read("w")
    engine.apply({"t": [{"k": 1, "v": 1, "__diff": 1 - copies}]})
    assert bag(engine.read("w")) == {(1, 1): 1}
