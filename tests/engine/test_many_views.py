"""What a batch and a definition cost where there are hundreds of views: little for each that they do not touch."""

from __future__ import annotations

from contextlib import suppress

import pytest

import halfjoin as hj
from halfjoin.engine.batch.wiring import Wiring
from halfjoin.planner import wants
from halfjoin.planner.wants import Want, together
from halfjoin.sql.expr import Call, Column, Literal
from halfjoin.sql.types import BIGINT, BOOLEAN
from tests.support.counting import calls

SCHEMA = """
    CREATE TABLE orders (id bigint PRIMARY KEY, customer integer, status text);
    CREATE TABLE customers (id integer PRIMARY KEY, region text);
    CREATE TABLE other (id integer PRIMARY KEY)
"""
VIEW = """
    CREATE MATERIALIZED VIEW v{0} AS SELECT region, count(*) AS n FROM orders JOIN customers ON customers.id = customer
    WHERE status = 's{0}' GROUP BY region
"""


def made(views: int) -> hj.Engine:
    engine = hj.Engine()
    engine.execute(SCHEMA)
    for number in range(views):
        engine.execute(VIEW.format(number))
    engine.apply({"customers": [{"id": 1, "region": "x"}]})
    return engine


def calls_of(engine: hj.Engine, table: str, row: dict[str, object]) -> int:
    """The calls of the last of some batches of a row."""
    counts = [calls(lambda number=number: engine.apply({table: [{**row, "id": number}]}))  # type: ignore[misc]
              for number in range(12)]  # fmt: skip
    return sorted(counts)[len(counts) // 2]


@pytest.mark.parametrize(("table", "row", "most"), [
    ("other", {}, 18),  # nobody reads it
    ("orders", {"customer": 1, "status": "none"}, 43),  # all views read it, and no filter lets the row pass
])  # fmt: skip
def test_a_view_that_a_batch_does_not_concern_costs_few_calls(table: str, row: dict[str, object], most: int) -> None:
    few, many = (calls_of(made(views), table, row) for views in (10, 60))
    assert few < many <= few + 50 * most


def test_many_wants_are_summed_up_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    count, plain = 0, wants.is_narrower

    def compared(*given: object) -> bool:
        nonlocal count
        count += 1
        return plain(*given)  # type: ignore[arg-type]

    def want(number: int) -> Want:
        x, status = Column("x", BIGINT), Column("status", BIGINT)
        return Want(frozenset((Call(">", (x, Literal(number, BIGINT)), BOOLEAN),
                               Call("=", (status, Literal(number % 50, BIGINT)), BOOLEAN))))  # fmt: skip

    monkeypatch.setattr(wants, "is_narrower", compared)
    for numbers in (range(1_000), range(1_000, 0, -1)):
        count = 0
        (common,) = together(map(want, numbers))
        assert [(one.function, one.args[1]) for one in common.conditions if isinstance(one, Call)] == [
            (">", Literal(min(numbers), BIGINT))]  # fmt: skip
        assert count < 10_000


def test_the_wiring_follows_every_definition() -> None:
    engine = made(2)
    state = engine._state
    for statement in ("CREATE TABLE more (id integer)", VIEW.format(2), "DROP MATERIALIZED VIEW v1", "DROP TABLE more",
                      "ALTER MATERIALIZED VIEW v0 RENAME TO w0", "CREATE MATERIALIZED VIEW w AS SELECT region FROM w0",
                      "REFRESH PLAN v2", "CREATE MATERIALIZED VIEW bad AS SELECT nothing FROM orders"):  # fmt: skip
        before = state.wiring
        with suppress(hj.UnknownName):
            engine.execute(statement)
        fresh = Wiring(state.tables, state.maintained)
        assert [*state.wiring.collections] == [*fresh.collections]
        assert state.wiring.asked == fresh.asked and state.wiring.limited == fresh.limited
        assert all(state.above([name]) == fresh.above([name]) for name in (*state.tables, *state.maintained))
        assert before.holds(state.tables, state.maintained) == (statement[:7] == "REFRESH" or "bad" in statement)
