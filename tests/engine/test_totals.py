"""Exact sums: the same bytes in any order, any split, with retractions; equal to Python's integers and fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar.kept import exact
from halfjoin.engine.scalar.wide import Wide
from halfjoin.errors import DataError

INT64 = st.integers(-(2**63), 2**63 - 1)
ODD = st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, math.nan, math.inf,
                       -math.inf])  # fmt: skip
VALUES: dict[str, tuple[Any, st.SearchStrategy[Any], int]] = {  # the arguments' type, their values and number
    "count": (pa.int32(), st.integers(-5, 5), 1),
    "integers": (pa.int64(), st.one_of(INT64, st.integers(-9, 9)), 1),
    "floats": (pa.float64(), st.one_of(st.floats(), ODD), 1),
    "intervals": (pa.month_day_nano_interval(), st.builds(
        lambda months, days, micros: pa.MonthDayNano([months, days, 1000 * micros]), st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**31), 2**31 - 1), st.integers(-(2**53), 2**53)), 1),
    "integer products": (pa.decimal256(50, 3), st.decimals(-(10**46), 10**46, places=3), 2),
    "float products": (pa.float64(), st.one_of(st.floats(), ODD), 2),
    "bits": (pa.int64(), INT64, 1),
}  # fmt: skip
WEIGHTS = st.one_of(st.integers(-3, 3), st.integers(-(2**62), 2**62))
FIRST = np.array([0])


@st.composite
def rows_of(draw: st.DrawFn, kind: str) -> list[tuple[Any, ...]]:
    """Some rows: the arguments, then the weight."""
    _, values, count = VALUES[kind]
    weights = st.integers(-3, 3) if kind == "count" else WEIGHTS
    return draw(st.lists(st.tuples(*[st.none() | values] * count, weights), min_size=1, max_size=8))


def lifted(kind: str, rows: list[tuple[Any, ...]]) -> Totals:
    type, _, count = VALUES[kind]
    arrays = [pa.array([row[i] for row in rows], type) for i in range(count)]
    return Totals.lifted(kind, arrays, np.array([row[-1] for row in rows], np.int64))


KINDS = pytest.mark.parametrize("kind", VALUES)


@KINDS
@given(data=st.data())
def test_order_and_splits_do_not_show(kind: str, data: st.DataObject) -> None:
    rows = data.draw(rows_of(kind))
    wanted = lifted(kind, rows).added(FIRST).kept()
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    state: Any = pa.nulls(1, wanted.type)
    for part in (shuffled[:cut], shuffled[cut:]):
        state = Totals.concat([Totals.read(kind, state), lifted(kind, part)]).added(FIRST).kept()
    assert state == wanted


@KINDS
@given(data=st.data())
def test_a_retraction_leaves_no_trace(kind: str, data: st.DataObject) -> None:
    rows, more = data.draw(rows_of(kind)), data.draw(rows_of(kind))
    back = [(*row[:-1], -row[-1]) for row in more]
    before = lifted(kind, rows).added(FIRST)
    after = Totals.concat([before, lifted(kind, more), lifted(kind, data.draw(st.permutations(back)))]).added(FIRST)
    assert after.kept() == before.kept()
    assert lifted(kind, rows + [(*row[:-1], -row[-1]) for row in rows]).added(FIRST).kept() in (
        pa.array([b""]), pa.array([0]))  # fmt: skip


@KINDS
@given(data=st.data())
def test_segments_and_running_sums_are_sums(kind: str, data: st.DataObject) -> None:
    rows = data.draw(rows_of(kind))
    starts = sorted({0, *data.draw(st.lists(st.integers(0, len(rows) - 1)))})
    ends = [*starts[1:], len(rows)]
    alone = [lifted(kind, rows[start:end]).added(FIRST).kept()[0] for start, end in zip(starts, ends, strict=True)]
    assert lifted(kind, rows).added(np.array(starts)).kept().to_pylist() == [one.as_py() for one in alone]
    running = [lifted(kind, rows[start : i + 1]).added(FIRST).kept()[0].as_py()
               for start, end in zip(starts, ends, strict=True) for i in range(start, end)]  # fmt: skip
    assert lifted(kind, rows).running(np.array(starts)).kept().to_pylist() == running


@KINDS
@given(data=st.data())
def test_taking_and_joining_keep_each_sum(kind: str, data: st.DataObject) -> None:
    rows, more = data.draw(rows_of(kind)), data.draw(rows_of(kind))
    both = Totals.concat([lifted(kind, rows), Totals.read(kind, lifted(kind, more).kept())])
    one_by_one = [lifted(kind, [row]).kept()[0].as_py() for row in rows + more]
    assert both.kept().to_pylist() == one_by_one
    positions = data.draw(st.lists(st.integers(0, len(both) - 1)))
    assert both.take(np.array(positions, np.int64)).kept().to_pylist() == [one_by_one[i] for i in positions]


EXACT = (pa.int16(), pa.int32(), pa.int64(), pa.decimal128(38, 0), pa.decimal256(76, 0))


@pytest.mark.parametrize("type", EXACT, ids=str)
@given(data=st.data())
def test_integers_add_up_exactly(type: Any, data: st.DataObject) -> None:
    most = 10**type.precision - 1 if pa.types.is_decimal(type) else 2 ** (type.bit_width - 1) - 1
    whole = st.integers(-most, most)
    rows = data.draw(st.lists(st.tuples(st.none() | whole, st.none() | whole, INT64), min_size=1, max_size=9))
    a, b, diff = zip(*rows, strict=True)
    made = Decimal if pa.types.is_decimal(type) else int
    arrays = [pa.array([None if v is None else made(v) for v in column], type) for column in (a, b)]
    weights = np.array(diff)
    sums = Totals.lifted("integers", arrays, weights).added(FIRST).kept()
    products = Totals.lifted("integer products", arrays, weights).added(FIRST).kept()
    there = [(x, y, d) for x, y, d in rows if x is not None and y is not None]
    assert exact(sums[0].as_py()) == sum(x * d for x, _, d in there)
    assert exact(products[0].as_py()) == sum(x * y * d for x, y, d in there)


FINITE = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([5e-324, 1.7976931348623157e308]))


@given(st.lists(st.tuples(FINITE, FINITE, INT64), min_size=1, max_size=9))
def test_floats_add_up_exactly(rows: list[tuple[float, float, int]]) -> None:
    x, y, diff = zip(*rows, strict=True)
    arrays, weights = [pa.array(x), pa.array(y)], np.array(diff)
    sums = Totals.lifted("floats", arrays[:1], weights).added(FIRST).kept()
    products = Totals.lifted("float products", arrays, weights).added(FIRST).kept()
    assert Fraction(exact(sums[0].as_py()) or 0, 2**1074) == sum(Fraction(v) * d for v, d in zip(x, diff, strict=True))
    total = sum(Fraction(v) * Fraction(w) * d for v, w, d in rows)
    assert Fraction(exact(products[0].as_py()) or 0, 2**2148) == total


def test_floats_are_the_same_from_slices_and_reals() -> None:
    values = pa.array([1.0, None, 0.1, -2.5, math.nan, 1e300], pa.float64())
    part = values.slice(1, 3)
    assert Totals.lifted("floats", [part], np.ones(3, np.int64)).kept() == Totals.lifted(
        "floats", [pa.array([None, 0.1, -2.5])], np.ones(3, np.int64)).kept()  # fmt: skip
    real = Totals.lifted("floats", [pa.array([0.1], pa.float32())], np.ones(1, np.int64)).kept()
    wide = Totals.lifted("floats", [pa.array([float(np.float32(0.1))])], np.ones(1, np.int64)).kept()
    assert real == wide


def test_a_running_float_would_forget() -> None:
    state: Any = pa.nulls(1, pa.binary())
    for value, diff in ((1e16, 1), (1.0, 1), (1e16, -1)):
        row = Totals.lifted("floats", [pa.array([value])], np.array([diff]))
        state = Totals.concat([Totals.read("floats", state), row]).added(FIRST).kept()
    assert state == Totals.lifted("floats", [pa.array([1.0])], np.array([1])).kept()


def test_a_row_adds_nothing_if_any_argument_is_null() -> None:
    arrays = [pa.array([1, 2, None]), pa.array([None, 3, 4])]
    for kind, wanted in (("count", 1), ("integers", b"\x00\x02"), ("integer products", b"\x00\x06")):
        assert Totals.lifted(kind, arrays, np.ones(3, np.int64)).added(FIRST).kept().to_pylist() == [wanted]
    assert Totals.lifted("count", [], np.array([2, -1])).kept().to_pylist() == [2, -1]


@pytest.mark.parametrize(("diff", "fits"), [([2**62, 2**62 - 1], True), ([2**62, 2**62], False), ([-(2**63)], True)])
def test_a_count_that_is_too_large_is_told(diff: list[int], fits: bool) -> None:
    total = Totals.lifted("count", [], np.array(diff, np.int64)).added(FIRST)
    if fits:
        assert total.kept().to_pylist() == [sum(diff)]
    else:
        with pytest.raises(DataError, match="out of the range of bigint"):
            total.kept()


@KINDS
def test_no_rows_make_no_sums(kind: str) -> None:
    none = Totals.lifted(kind, [pa.array([], VALUES[kind][0])] * VALUES[kind][2], np.empty(0, np.int64))
    empty = np.empty(0, np.int64)
    for sums in (none, none.added(empty), none.running(empty), none.take(empty), Totals.concat([none, none])):
        assert len(sums) == 0 and len(sums.kept()) == 0
    assert len(Totals.read(kind, none.kept())) == 0


def test_digits_carry_before_they_overflow() -> None:
    many = Wide.of(np.full(5, 2**62)).times(Wide.of(np.full(5, 2**31)))
    assert many.bound < 2**63
    total = many.added(FIRST)
    assert total.bound < 2**63
    assert exact(Totals("integers", total).kept()[0].as_py()) == 5 * 2**93
