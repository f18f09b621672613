"""A comparison with a constant lets the same partners pass, in place by a kernel or by Arrow from gathered values."""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.kernels import joining, native
from halfjoin.engine.scalar import arrow_type, compile, mask_of
from halfjoin.engine.scalar.threshold import has_threshold, threshold_at, threshold_of
from halfjoin.engine.updates.updates import Updates, constant, where_true
from halfjoin.sql.expr import Call, Column, Expr, Literal
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TEXT,
    SqlType,
    numeric,
)

SEEDS = st.integers(0, 10**9)
LEAST, MOST = -(2**63), 2**63 - 1
DAYS = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2026, 2, 28)]
VALUES: dict[SqlType, list[Any]] = {
    SMALLINT: [-(2**15), -1, 0, 1, 2**15 - 1], INTEGER: [-(2**31), -1, 0, 2**31 - 1], BIGINT: [LEAST, -1, 0, 7, MOST],
    DATE: DAYS, TEXT: ["", "a", "aa", "b", "é", "\U0001f600", "fig"],
    DOUBLE: [-math.inf, -1.5, -0.0, 0.0, 5e-324, 0.1, math.inf, math.nan], REAL: [-math.inf, -0.0, 0.0, 0.5, math.nan],
    numeric(5, 2): [Decimal(one) for one in ("-999.99", "-0.01", "0.00", "0.05", "0.06", "999.99")],
    numeric(38, 0): [Decimal(one) for one in (-(10**38) + 1, -1, 0, 2**64, 10**38 - 1)],
}  # fmt: skip
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt, "<>": operator.ne,
}  # fmt: skip
OPERATORS = list(COMPARE)


@pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")
@given(SEEDS)
def test_a_kernel_compares_as_arrow_does(seed: int) -> None:
    """Values and NULLs of a few runs, behind an offset."""
    random = np.random.default_rng(seed)
    type = list(VALUES)[int(random.integers(len(VALUES)))]
    value = random.choice(np.array([*VALUES[type], None], object))
    both: list[Expr] = [Column("y", type), Literal(value, type)]
    expr = Call(str(random.choice(OPERATORS)), tuple(both if random.random() < 0.5 else both[::-1]), BOOLEAN)
    threshold = threshold_of(expr)
    assert threshold is not None
    sides, expected, starts, ones = list[object](), list[int](), list[int](), np.ones(9, np.int64)
    index = np.zeros(9, np.int64), np.arange(9).astype(np.uint32), None, 0, 0
    for _ in range(int(random.integers(1, 5))):
        values = random.choice(np.array([*VALUES[type], None], object), 9).tolist()
        tested = pa.array([None, *values], arrow_type(type))[1:]
        sides.append(joining.side(index, True, [], [tested], [], (ones, ones, None, None)))
        starts.append(len(expected))
        expected += where_true(mask_of(compile(expr).evaluate({"y": tested}, 9).values)).tolist()
    with native.used(True):
        made = joining.half_joins([pa.array([0])], ones[:1], ones[:1], [joining.Link(
            sides, (0,), 0, True, (), [threshold.constant], (threshold.allowed,), [])], size=1, growth=8,
            closed=0, least=0, most=100, most_bytes=0, apart=True)  # fmt: skip
        rows = Updates({"y": tested, "at": pa.array(range(9))}, ones, ones)
        left = rows.meeting(["y"], [threshold.constant], (threshold.allowed,), ["at"])
    assert (made.rows.tolist() if isinstance(made, joining.Pairs) else list[int]()) == expected
    assert left is not None and list(left.columns) == ["at"]  # of the last run
    last = left.columns["at"].to_pylist()
    assert last == expected[len(expected) - len(last) :] and len(expected) - len(last) == starts[-1]


@pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")
@given(SEEDS)
def test_numerics_of_other_digits_compare_as_in_arrow(seed: int) -> None:
    """A constant between two values of the column, or with as many decimals, or with none."""
    random = np.random.default_rng(seed)
    text = f"{random.integers(-999, 1000)}.{random.integers(0, 1000)}"[: int(random.integers(3, 9))].rstrip(".")
    value = Decimal(text)
    literal = Literal(value, numeric(max(1, len(value.as_tuple().digits), -int(value.as_tuple().exponent)),
                                     max(0, -int(value.as_tuple().exponent))))  # fmt: skip
    cents = pa.array([None, *(Decimal(int(one)).scaleb(-2) for one in random.integers(-99_999, 100_000, 30)),
                      round(value, 2), None], pa.decimal128(5, 2))  # fmt: skip
    expr = Call(str(random.choice(OPERATORS)), (Column("y", numeric(5, 2)), literal), BOOLEAN)
    threshold, ones = threshold_of(expr), np.ones(len(cents), np.int64)
    assert threshold is not None
    with native.used(True):
        found = Updates({"y": cents}, ones, ones).meeting(["y"], [threshold.constant], (threshold.allowed,))
    assert found is not None
    wanted = mask_of(compile(expr).evaluate({"y": cents}, len(cents)).values)
    assert found.columns["y"].to_pylist() == cents.filter(pa.array(wanted)).to_pylist()


@pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")
@pytest.mark.parametrize("type", [numeric(5, 2), numeric(38, 3), SMALLINT, INTEGER, BIGINT])
@pytest.mark.parametrize("function", OPERATORS)
def test_numerics_at_the_ends_of_a_type_and_beyond(type: SqlType, function: str) -> None:
    kind = arrow_type(type)
    scale, most = (kind.scale, 10**kind.precision - 1) if type.precision else (0, 2 ** (kind.bit_width - 1) - 1)
    units = [-most if type.precision else -most - 1, -1, 0, 1, most]
    exact = [Decimal(f"{unit}e-{scale}") for unit in units]
    column = pa.array([None, *(exact if type.precision else units)], kind)
    for value in (Decimal(f"{unit}e-{scale}") for end in units for unit in (f"{end - 1}", f"{end}.3", f"{end + 1}")):
        given = pa.array([value], pa.decimal256(60, 8))
        threshold = threshold_at(Column("y", type), function, given, numeric(60, 8))
        assert threshold is not None
        for test, wanted in ((threshold, True), (threshold.negated, False)):
            with native.used(True):
                found = Updates({"y": column}, np.ones(6, np.int64), np.ones(6, np.int64)).meeting(
                    ["y"], [test.constant], (test.allowed,))  # fmt: skip
            assert found is not None
            assert [Decimal(one) for one in found.columns["y"].to_pylist()] == [
                one for one in exact if COMPARE[function](one, value) is wanted]


def test_wide_numerics_have_no_threshold() -> None:
    assert threshold_of(Call("<", (Column("x", numeric(50, 2)), Literal(Decimal(1), numeric(4))), BOOLEAN)) is None
    assert not has_threshold(numeric(50, 2), numeric(4))


@pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")
@given(SEEDS)
def test_several_conditions_leave_the_same_rows_in_blocks(seed: int) -> None:
    """More rows than a block has, and columns behind an offset; times that are one number stay one."""
    random = np.random.default_rng(seed)
    length = int(random.integers(1, 9000))
    x = pa.array(random.integers(-3, 3, length + 1), mask=random.random(length + 1) < 0.1).slice(1)
    y = pa.array(random.integers(-3, 3, length + 1).astype(np.int8)).slice(1)
    tests = [Call(str(random.choice(OPERATORS)), (Column("x", BIGINT), Literal(int(random.integers(-3, 3)), BIGINT)),
                  BOOLEAN) for _ in range(int(random.integers(1, 4)))]  # fmt: skip
    masks = [mask_of(compile(test).evaluate({"x": x}, length).values) for test in tests]
    small, allowed = int(random.integers(-3, 3)), int(random.integers(1, 7))
    at = y.to_numpy()
    masks.append(((at < small) & (allowed & 1 > 0)) | ((at == small) & (allowed & 2 > 0))
                 | ((at > small) & (allowed & 4 > 0)))  # fmt: skip
    thresholds = [one for one in map(threshold_of, tests) if one is not None]
    rows = Updates({"x": x, "y": y, "at": pa.array(range(length))}, constant(7, length), np.arange(length))
    with native.used(True):
        constants = [*(one.constant for one in thresholds), pa.array([small], pa.int8())]
        found = rows.meeting([*("x" for _ in thresholds), "y"], constants,
                             (*(one.allowed for one in thresholds), allowed))  # fmt: skip
    wanted = rows.take(where_true(np.logical_and.reduce(masks)))
    assert found is not None
    assert found.table(changes=True).equals(wanted.table(changes=True))
    assert found.time.strides == (0,) and (len(found) == length or found.diff.strides != (0,))


def test_other_predicates_are_no_thresholds() -> None:
    x, one = Column("x", INTEGER), Literal(1, INTEGER)
    assert threshold_of(x) is None
    assert threshold_of(Call("<", (x, x), BOOLEAN)) is None
    assert threshold_of(Call("<", (x, Literal(1, BIGINT)), BOOLEAN)) is None
    assert threshold_of(Call("is distinct from", (x, one), BOOLEAN)) is None
