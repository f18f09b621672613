"""Where a path computes columns: after lookups that drop rows, before those that multiply them."""

from __future__ import annotations

import pytest

from halfjoin.planner.linear import Extend, Linear
from halfjoin.planner.plan import Path
from halfjoin.sql.expr import Column
from tests.support.plan_facts import World

DDL = """
    CREATE TABLE items (id bigint PRIMARY KEY, place bigint, price numeric(9,2), note text);
    CREATE TABLE places (place bigint PRIMARY KEY, land bigint, tax numeric(4,2));
    CREATE TABLE visits (place bigint, day date)
"""


def computes(operator: Linear) -> list[str]:
    """The columns that an operator computes."""
    return [column.name for step in operator.steps if isinstance(step, Extend) for column, expr in step.items
            if not isinstance(expr, Column)]  # fmt: skip


def where(sql: str, alias: str) -> list[list[str]]:
    """What the path of an input computes: at its source, after each stage, at the end."""
    (branch,) = World(DDL).plan(sql).branches
    path: Path = next(path for path in branch.paths if path.alias == alias)
    return [computes(path.source), *(computes(stage.then) for stage in path.stages), computes(path.final)]


@pytest.mark.parametrize(
    ("select", "joins", "alias", "found"),
    [
        ("price * 2 AS p", "", "items", [[], [], ["p"]]),  # an item without its place is not computed
        ("price * 2 AS p", "", "places", [[], [], ["p"]]),
        ("price * tax AS p", "", "items", [[], [], ["p"]]),
        ("price * 2 AS p", "JOIN visits USING (place)", "items", [[], ["p"], [], []]),  # once for all visits
        ("upper(note) AS p", "", "items", [["p"], [], []]),  # a text may be long
        ("price / 3 AS p", "", "items", [[], [], ["p"]]),
        ("10 / place AS p", "", "items", [[], [], ["p"]]),  # it fails on complete rows
        ("price * 2 AS p, upper(note) AS q", "", "items", [["q"], [], ["p"]]),
        ("price * 2 AS p, tax + 1 AS q", "", "items", [[], [], ["p", "q"]]),
    ],
)
def test_a_column_is_computed_where_there_are_few_rows(
    select: str, joins: str, alias: str, found: list[list[str]]
) -> None:
    assert where(f"SELECT id, {select} FROM items JOIN places USING (place) {joins}", alias) == found


def test_presence_drops_rows_too() -> None:
    sql = "SELECT id, price * 2 AS p FROM items WHERE EXISTS (SELECT FROM visits WHERE visits.place = items.place)"
    assert where(sql, "items")[0] == [] and where(sql, "items")[-1] == ["p"]


def test_a_left_join_may_multiply_rows() -> None:
    sql = "SELECT id, price * 2 AS p, day FROM items LEFT JOIN visits ON visits.place = items.place"
    assert where(sql, "items")[0] == ["p"]


def test_rows_that_choose_their_order_have_the_same_columns() -> None:
    sql = "SELECT x.a < z.a AS p FROM e x, e y, e z WHERE x.b = y.a AND y.b = z.a AND z.b = x.a"
    for path in World("CREATE TABLE e (a bigint, b bigint)", {"e": 1_000_000}).plan(sql).branches[0].paths:
        assert path.stages[0].otherwise and computes(path.final) == []
        for order in (path.stages, *path.stages[0].otherwise):
            assert [name for stage in order for name in computes(stage.then)] == ["p"]
