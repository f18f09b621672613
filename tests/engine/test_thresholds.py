"""A comparison with a constant lets the same partners pass, in place by a kernel or by Arrow from gathered values."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.kernels import native
from halfjoin.engine.scalar import arrow_type, compile, mask_of
from halfjoin.engine.scalar.threshold import threshold_of
from halfjoin.engine.updates.updates import Updates, where_true
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
        sides.append(native.side(index, True, [], [tested], [], (ones, ones, None, None)))
        starts.append(len(expected))
        expected += where_true(mask_of(compile(expr).evaluate({"y": tested}, 9).values)).tolist()
    with native.used(True):
        made = native.half_joins([pa.array([0])], ones[:1], ones[:1], [native.Link(
            sides, (0,), 0, True, (), [threshold.constant], (threshold.allowed,), [])], size=1, growth=8,
            closed=0, least=0, most=100, most_bytes=0, apart=True)  # fmt: skip
        left = Updates({"y": tested, "at": pa.array(range(9))}, ones, ones).meeting(["y"], [threshold.constant],
                                                                                    (threshold.allowed,))  # fmt: skip
    assert (made.rows.tolist() if isinstance(made, native.Pairs) else list[int]()) == expected
    assert left is not None  # of the last run
    last = left.columns["at"].to_pylist()
    assert last == expected[len(expected) - len(last) :] and len(expected) - len(last) == starts[-1]


def test_other_predicates_are_no_thresholds() -> None:
    x, one = Column("x", INTEGER), Literal(1, INTEGER)
    assert threshold_of(x) is None
    assert threshold_of(Call("<", (x, x), BOOLEAN)) is None
    assert threshold_of(Call("<", (x, Literal(1, BIGINT)), BOOLEAN)) is None
    assert threshold_of(Call("is distinct from", (x, one), BOOLEAN)) is None
