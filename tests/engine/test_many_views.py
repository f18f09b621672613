"""What a batch and a definition cost where there are hundreds of views: little for each that they do not touch."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.batch.wiring import Wiring
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.statements import replan
from halfjoin.engine.statements.forking import forked
from halfjoin.engine.system.counted import Counted
from halfjoin.planner import wants
from halfjoin.planner.drift import FEW, GROWTH
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
    ("orders", {"customer": 1, "status": "none"}, 22),  # all views read it, and no filter lets the row pass
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


def test_a_batch_plans_only_some_of_many_views_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, planned, plain = made(40), list[str](), replan.plan

    def counted(relation: Any, facts: Any, name: str) -> Any:
        planned.append(name)
        return plain(relation, facts, name)

    monkeypatch.setattr(replan, "plan", counted)
    rows = [{"id": number, "customer": 1, "status": "s1"} for number in range(FEW * GROWTH)]
    counts = list[int]()
    for batch in ({"orders": rows}, {"other": [{"id": 1}]}, {"other": [{"id": 2}]}, {"other": [{"id": 3}]}):
        engine.apply(batch)
        counts.append(len(planned))
    assert counts == [16, 32, 40, 40] and len({*planned}) == 40
    engine.execute("DROP MATERIALIZED VIEW v3")
    engine.apply({"orders": [{**row, "id": 1_000 + number} for number, row in enumerate(rows * GROWTH)]})
    engine.execute("DROP MATERIALIZED VIEW v39")  # it waits for a new plan
    for number in range(10, 13):
        engine.apply({"other": [{"id": number}]})
    assert len(planned) == 78 and not engine._state.outgrown
    assert forked(engine._state).outgrown is not engine._state.outgrown


def test_the_wiring_follows_every_definition() -> None:
    engine = made(2)
    state = engine._state
    for statement in ("CREATE TABLE more (id integer)", VIEW.format(2), "DROP MATERIALIZED VIEW v1", "DROP TABLE more",
                      "ALTER MATERIALIZED VIEW v0 RENAME TO w0", "CREATE MATERIALIZED VIEW w AS SELECT region FROM w0",
                      "REFRESH PLAN v2", "CREATE MATERIALIZED VIEW bad AS SELECT nothing FROM orders"):  # fmt: skip
        with suppress(hj.UnknownName):
            engine.execute(statement)
        fresh = Wiring(state.tables, state.maintained)
        assert [*state.wiring.collections] == [*fresh.collections]
        assert state.wiring.asked == fresh.asked and state.wiring.limited == fresh.limited
        assert all(state.above([name]) == fresh.above([name]) for name in (*state.tables, *state.maintained))


@pytest.mark.parametrize("change", [
    lambda one: one.update(c=3), lambda one: one.__setitem__("a", 0), lambda one: one.__delitem__("a"),
    lambda one: one.pop("a"), lambda one: one.popitem(), lambda one: one.clear(), lambda one: one.setdefault("c", 3),
    lambda one: one.__ior__({"c": 3}),
])  # fmt: skip
def test_each_change_of_a_dict_counts_also_for_what_is_derived_meanwhile(change: Any) -> None:
    known = Counted({"a": 1, "b": 2})
    before = known.changes
    change(known)
    assert known != {"a": 1, "b": 2}
    assert known.changes - before > 1  # what another thread derived after the first count is out of date as well


FILTERS = ("status = 's1'", "status IN ('s1', 's2') AND customer > 3", "customer BETWEEN 2 AND 4",
           "status = 's1' OR orders.id = 5", "customer = 3 AND status = 's3'", "status IS NULL", "status <> 's1'",
           "true")  # fmt: skip


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6), st.sampled_from(["s1", "s2", "s3", None])),
                         min_size=1, max_size=4), min_size=1, max_size=4))  # fmt: skip
def test_nodes_that_a_batch_concerns_are_due(batches: list[list[tuple[int, int, str | None]]]) -> None:
    engine, seen = hj.Engine(clock="own"), list[bool]()
    engine.execute(SCHEMA.replace(" PRIMARY KEY", ""))
    for number, condition in enumerate(FILTERS):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS SELECT region, count(*) AS n FROM orders "
                       f"JOIN customers ON customers.id = customer WHERE {condition} GROUP BY region")  # fmt: skip
    engine.execute("CREATE MATERIALIZED VIEW pairs AS SELECT a.id, b.status FROM orders a JOIN orders b ON b.id = a.id "
                   "WHERE a.status = 's1'")  # fmt: skip
    due = Wiring.due

    def noted(wiring: Wiring, changed: Any, closed: Any, values: Any) -> list[str]:
        found, nodes = due(wiring, changed, closed, values), engine._state.maintained
        assert found == [name for name in wiring.above({*changed, *closed}) if name in found]
        for name in wiring.above(changed):
            flow = nodes[name].dataflow
            read = flow.reads & changed
            seen.append(isinstance(flow, Dataflow) and bool(read) and flow.gates.open(read, values))
            assert name in found or not seen[-1]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Wiring, "due", noted)
        for time, rows in enumerate(batches):
            engine.apply({"orders": [{"id": id, "customer": one, "status": status} for id, one, status in rows],
                          "customers": [{"id": rows[0][1], "region": "x"}] if time % 2 else []}, time=time)  # fmt: skip
    assert any(seen)
    for number, condition in enumerate(FILTERS):
        assert engine.query(f"SELECT region, count(*) AS n FROM orders JOIN customers ON customers.id = customer "
                            f"WHERE {condition} GROUP BY region").sort_by("region") == (
            engine.read(f"v{number}").sort_by("region"))  # fmt: skip
