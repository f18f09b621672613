"""What the planner computes of constants is what the evaluator would have computed for each row."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.literals import scalar_of
from halfjoin.planner.guards import Beside, guards
from halfjoin.planner.rules.fold_constants import fold
from halfjoin.sql.expr import FLIPPED, Cast, Column, Literal, columns_of
from halfjoin.sql.functions import resolve
from halfjoin.sql.types import DATE, TIMESTAMP, TIMESTAMPTZ, SqlType
from tests.support.plan_facts import World
from tests.support.scalar_sql import expression

days = st.one_of(st.dates(), st.dates(date(2023, 12, 28), date(2024, 3, 2))).map(str)
clocks = st.times().map(str)
moments = st.one_of(
    days.map("date '{}'".format),
    *(st.tuples(days, clocks).map(lambda parts, kind=kind: f"{kind} '{parts[0]} {parts[1]}'")  # type: ignore[misc]
      for kind in ("timestamp", "timestamptz")),
)  # fmt: skip
counts = st.one_of(st.integers(-40, 40), st.integers(-4_000_000, 4_000_000))
intervals = st.tuples(counts, counts, counts).map(
    lambda parts: f"interval '{parts[0]} months {parts[1]} days {parts[2]} seconds'")  # fmt: skip
numerics = st.decimals(-(10**20), 10**20, places=3).map("({})".format)
edges = st.sampled_from([0, 1, -1, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 99])
integers = st.tuples(edges, st.sampled_from(["smallint", "integer", "bigint"])).filter(
    lambda one: abs(one[0] + 0.5) < 2 ** {"smallint": 15, "integer": 31, "bigint": 63}[one[1]]).map(
    lambda one: f"({one[0]})::{one[1]}")  # fmt: skip
calls = st.one_of(
    st.tuples(moments, st.sampled_from("+-"), intervals),
    st.tuples(intervals, st.just("+"), moments),
    st.tuples(days.map("date '{}'".format), st.sampled_from("+-"), counts.map("({})".format)),
    st.tuples(numerics, st.sampled_from("+-*"), numerics),
    st.tuples(integers, st.sampled_from("+-*"), integers),
).map(" ".join)


@given(calls)
def test_a_computed_call_has_the_value_of_the_evaluator(text: str) -> None:
    expr = expression(text)
    found, result = fold(expr), compile(expr).evaluate({}, 1)
    if isinstance(found, Literal):
        assert result.failures is None and found.type == expr.type
        assert scalar_of(found).equals(result.values[0]), text


@pytest.mark.parametrize(("text", "value"), [
    ("date '1994-01-31' + interval '1 month'", "timestamp '1994-02-28 00:00:00'"),
    ("timestamptz '2024-02-29 10:00+02' - interval '1 year 1 hour'", "timestamptz '2023-02-28 07:00:00+00'"),
    ("3 + date '2023-12-30'", "date '2024-01-02'"),
    ("0.06 - 0.010", "0.050"),
    ("1.5 * 2.25", "3.375"),
    ("2147483647 * 2", None),  # out of range for each row
    ("date '9999-12-31' + interval '1 day'", None),
    ("date '0001-01-01' - interval '1 month'", None),
    ("1 / 0", None),
    ("NULL::date + 1", None),
])  # fmt: skip
def test_constants(text: str, value: str | None) -> None:
    found = fold(expression(text))
    assert found == (expression(text) if value is None else fold(expression(value)))
    assert isinstance(found, Literal) is (value is not None)


@pytest.mark.parametrize("type", [TIMESTAMP, TIMESTAMPTZ], ids=str)
def test_days_that_are_compared_as_timestamps_are_compared_as_days(type: SqlType) -> None:
    day, first = Column("d", DATE), date(2024, 2, 28)
    rows = pa.array([None, *(first + timedelta(days=number) for number in range(4))])
    for comparison, clock in product(FLIPPED, ("", " 00:00:01")):
        moment = fold(expression(f"{type} '2024-02-29{clock}'"))
        for args in ((Cast(day, type), moment), (moment, Cast(day, type))):
            expr = resolve(comparison, args)
            found = fold(expr)
            assert (Cast(day, type) in getattr(found, "args", ())) is bool(clock) and columns_of(found) == {"d"}
            values = [compile(one).evaluate({"d": rows}, len(rows)).values for one in (expr, found)]
            assert values[0].equals(values[1]), (comparison, args)


def test_a_computed_constant_is_looked_up_and_tells_who_is_concerned() -> None:
    table, constant = "CREATE TABLE t (day date, k bigint)", "date '2024-01-31' + interval '1 month'"
    with hj.Engine() as engine:
        engine.execute(f"{table}; CREATE INDEX ON t (day)")
        engine.apply({"t": [{"day": date(2020, 1, 1) + timedelta(days=k), "k": k} for k in range(3000)]}, time=1)
        sql = f"SELECT k FROM t WHERE day = {constant}"
        assert engine.query(sql)["k"].to_pylist() == [1520] and "scans" not in str(engine.execute(f"EXPLAIN {sql}"))
    (branch,) = World(table).plan(f"SELECT k FROM t WHERE day >= {constant}").branches
    assert guards(branch.paths[0]) == (Beside(Column("day", DATE), Literal(date(2024, 2, 29), DATE), low=True),)


def test_a_date_beyond_all_timestamps_is_compared() -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (day date)")
        engine.apply({"t": [{"day": "300000-01-01"}]}, time=1)
        for comparison, found in ((">", 1), ("<", 0)):
            sql = f"SELECT 1 AS x FROM t WHERE day {comparison} date '2024-01-01' + interval '1 day'"
            assert engine.query(sql).num_rows == found
