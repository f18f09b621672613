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
