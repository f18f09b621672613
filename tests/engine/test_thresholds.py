"""A comparison with a constant lets the same partners pass, in place by a kernel or by Arrow from gathered values."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.join.at_once import Partners
from halfjoin.engine.join.condition import Condition
from halfjoin.engine.kernels import native
from halfjoin.engine.scalar import arrow_type, compile
from halfjoin.engine.scalar.threshold import threshold_of
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.sql.expr import Call, Column, Expr, Literal
from halfjoin.sql.types import BIGINT, BOOLEAN, DATE, INTEGER, SMALLINT, TEXT, SqlType

SEEDS = st.integers(0, 10**9)
LEAST, MOST = -(2**63), 2**63 - 1
DAYS = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2026, 2, 28)]
VALUES: dict[SqlType, list[Any]] = {
    SMALLINT: [-(2**15), -1, 0, 1, 2**15 - 1], INTEGER: [-(2**31), -1, 0, 2**31 - 1], BIGINT: [LEAST, -1, 0, 7, MOST],
    DATE: DAYS, TEXT: ["", "a", "aa", "b", "é", "\U0001f600", "fig"],
}  # fmt: skip
OPERATORS = ["<", "<=", "=", ">=", ">", "<>"]


def some_partners(random: np.random.Generator, type: SqlType) -> Partners:
    """Pairs with rows of a few runs, whose only column has values and NULLs, and an offset."""
    counts, runs = random.integers(1, 6, int(random.integers(1, 5))).tolist(), []
    for _ in counts:
        values = random.choice(np.array([*VALUES[type], None], object), 9).tolist()
        array = pa.array([None, *values], arrow_type(type))[1:]
        runs.append(make_run(Updates({"x": array}, constant(1, 9), constant(1, 9)), 2))
    length = sum(counts)
    return Partners(random.integers(0, 9, length), runs, random.integers(0, 9, length).astype(np.uint32), counts, True)


@given(SEEDS)
def test_a_kernel_compares_as_arrow_does(seed: int) -> None:
    random = np.random.default_rng(seed)
    type = list(VALUES)[int(random.integers(len(VALUES)))]
    partners = some_partners(random, type)
    value = random.choice(np.array([*VALUES[type], None], object))
    sides: list[Expr] = [Column("y", type), Literal(value, type)]
    expr = Call(str(random.choice(OPERATORS)), tuple(sides if random.random() < 0.5 else sides[::-1]), BOOLEAN)
    threshold = threshold_of(expr)
    assert threshold is not None
    values = pa.concat_arrays([run.updates.columns["x"].take(pa.array(rows)) for _, run, rows in partners.apart()])
    expected = partners.passing(compile(expr).evaluate({"y": values}, len(values)).values)
    found = Condition(compile(expr), (("x", "y"),), threshold).met(partners)
    if not native.on:
        assert found is None  # without kernels the caller goes another way
        return
    assert found is not None
    assert found.positions.tolist() == expected.positions.tolist() and found.rows.tolist() == expected.rows.tolist()
    assert found.counts == expected.counts and found.runs == expected.runs


@pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")
@pytest.mark.parametrize("row", [9, 2**32 - 1])
def test_a_row_beyond_its_run_is_refused(row: int) -> None:
    sources, one = [[pa.array(range(9))]], pa.array([4])
    with native.used(True), pytest.raises(IndexError, match="beyond its run"):
        native.meeting(sources, one, 1, np.zeros(1, np.int64), np.array([row], np.uint32), [1])


@pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")
def test_columns_of_other_types_have_no_kernel() -> None:
    place = np.zeros(1, np.int64), np.zeros(1, np.uint32), [1]
    with native.used(True):
        assert native.meeting([[pa.array([1])]], pa.array([1], pa.int32()), 1, *place) is None
        assert native.meeting([[pa.array([1], pa.uint64())]], pa.array([1], pa.uint64()), 1, *place) is None
        assert native.meeting([[pa.array([0.5])]], pa.array([1.0]), 1, *place) is None
        assert native.meeting([[pa.array([1])]], pa.array([1, 2]), 1, *place) is None


def test_other_predicates_are_no_thresholds() -> None:
    x, one = Column("x", INTEGER), Literal(1, INTEGER)
    assert threshold_of(x) is None
    assert threshold_of(Call("<", (x, x), BOOLEAN)) is None
    assert threshold_of(Call("<", (x, Literal(1, BIGINT)), BOOLEAN)) is None
    assert threshold_of(Call("is distinct from", (x, one), BOOLEAN)) is None
