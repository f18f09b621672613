"""Results of aggregates from kept sums: exact, rounded once, and PostgreSQL's where that is exact, too."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.sql.functions.text_input import parse
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    SqlType,
    numeric,
)  # fmt: skip
from tests.support.aggregates import aggregate, decomposed, kept, results
from tests.support.quotients import quotient_decimals, rounded

pytest_plugins = ("tests.support.postgres",)

CONTEXT = Context(prec=300, rounding=ROUND_HALF_UP)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
OVERFLOW = "ERROR: value out of range: overflow"


def decimal(value: Fraction, scale: int) -> Decimal:
    """The fraction rounded to so many decimals, halves away from zero."""
    scaled = abs(value) * 10**scale
    whole = math.floor(scaled + Fraction(1, 2))
    return Decimal(whole if value >= 0 else -whole).scaleb(-scale, CONTEXT)


def nearest(value: Fraction) -> float | str:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return OVERFLOW


def exact_sum(values: list[float]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


def one(values: list[Any], name: str, type: SqlType) -> Any:
    return aggregate(name, [(value,) for value in values], type)


@given(st.lists(FINITE, min_size=1, max_size=6))
@example([1.7976931348623157e308, 9.9792015476736e291])  # the sum is halfway to the power of two above
@example([1.7976931348623157e308, 9.9792015476735e291])
@example([9007199254740992.0, 1.0])
@example([9007199254740992.0, 1.0, 5e-324])
@example([5e-324, 0.0])
@example([1e-323, 5e-324, 0.0])
@example([2.2250738585072014e-308, -5e-324, 0.0])
def test_float_sums_and_averages_round_once(values: list[float]) -> None:
    total = exact_sum(values)
    assert one([*values, None], "sum", DOUBLE) == nearest(total)
    assert one([*values, None], "avg", DOUBLE) == nearest(total / len(values))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
@example([3.4028234663852886e38, 3.4028234663852886e38])
@example([3.4028234663852886e38, 1.0])
@example([16777216.0, 1.0])
@example([1.401298464324817e-45, 1.401298464324817e-45])
def test_sums_of_reals_are_reals_rounded_once(values: list[float]) -> None:
    total = exact_sum(values)
    got = one(values, "sum", REAL)
    if isinstance(got, str):
        assert abs(total) >= Fraction(2) ** 128 - Fraction(2) ** 103
        return
    with np.errstate(over="ignore"):
        nearby = [np.nextafter(np.float32(got), np.float32(side)) for side in (-np.inf, np.inf)]
    assert all(abs(Fraction(got) - total) <= abs(Fraction(float(near)) - total) for near in nearby if np.isfinite(near))
    assert one(values, "avg", REAL) == nearest(total / len(values))


@pytest.mark.parametrize(("values", "total"), [
    ([1.0, math.nan], math.nan), ([1.0, math.inf], math.inf), ([-math.inf, 1e308], -math.inf),
    ([math.inf, -math.inf], math.nan), ([math.inf, math.inf], math.inf), ([math.inf, 1e308, 1e308], math.inf),
])  # fmt: skip
@pytest.mark.parametrize("name", ["sum", "avg"])
def test_nan_and_infinities_are_as_in_arithmetic(name: str, values: list[float], total: float) -> None:
    got = one(values, name, DOUBLE)
    assert got == total or (math.isnan(got) and math.isnan(total))
    assert math.isnan(one(values, "var_pop", DOUBLE))


def test_an_infinity_that_goes_leaves_the_finite_sum() -> None:
    rows = [(1.5,), (math.inf,), (math.nan,), (math.inf,), (math.nan,)]
    assert aggregate("sum", rows, DOUBLE, diff=[1, 1, 1, -1, -1]) == 1.5


@pytest.mark.parametrize(("type", "digits", "room"), [
    (SMALLINT, 4, 27), (INTEGER, 9, 22), (BIGINT, 18, 20), (numeric(12, 2), 12, 22), (numeric(38, 20), 38, 20),
    (numeric(70, 30), 70, 30),
], ids=str)  # fmt: skip
@given(data=st.data())
def test_exact_sums_and_averages_are_exact(type: SqlType, digits: int, room: int, data: st.DataObject) -> None:
    scale = type.scale or 0
    whole = data.draw(st.lists(st.integers(-(10**digits) + 1, 10**digits - 1), min_size=1, max_size=6))
    values: list[Any] = [Decimal(v).scaleb(-scale, CONTEXT) for v in whole] if type.scale is not None else whole
    total = Fraction(sum(whole), 10**scale)
    got = one(values, "sum", type)
    if isinstance(got, str):
        assert got == "ERROR: numeric field overflow" and type.precision in (38, 70) and abs(sum(whole)) >= 10**digits
    else:
        assert got == total
    decimals = quotient_decimals(total, Fraction(len(whole)), scale)
    assert Fraction(one(values, "avg", type)) == rounded(total / len(whole), min(decimals, room))


@pytest.mark.parametrize(("count", "least"), [(2**31 - 1, 7), (2**31, 7), (2**40 + 3, -5), (3, -7)])
def test_averages_of_many_rows(count: int, least: int) -> None:
    total = Fraction(least * (count - 1) + 1, count)
    decimals = quotient_decimals(total * count, Fraction(count), 0)
    got = aggregate("avg", [(least,), (1,)], INTEGER, diff=[count - 1, 1])
    assert Fraction(got) == rounded(total, min(decimals, 22))
    assert aggregate("avg", [(float(least),), (1.0,)], DOUBLE, diff=[count - 1, 1]) == nearest(total)


def test_an_average_below_the_least_float_rounds_once() -> None:
    rows, more_than_half = [(5e-324,), (0.0,)], [2**60 + 1, 2**60]
    assert aggregate("avg", rows, DOUBLE, diff=more_than_half) == 5e-324  # rounded to 53 bits first, it is a half
    assert aggregate("avg", rows, DOUBLE, diff=[1, 1]) == 0


@pytest.mark.parametrize(("rows", "diff", "type", "wanted"), [
    ([2**31 - 1], [2**32], INTEGER, (2**31 - 1) * 2**32),
    ([2**31 - 1], [2**33], INTEGER, "ERROR: bigint out of range"),
    ([-(2**31)], [2**32], INTEGER, -(2**63)),
    ([-(2**31), -1], [2**32, 1], INTEGER, "ERROR: bigint out of range"),
    ([2**63 - 1], [2**62], BIGINT, Decimal((2**63 - 1) * 2**62)),
    ([Decimal("9" * 38), Decimal(1)], [1, 1], numeric(38, 0), "ERROR: numeric field overflow"),
    ([Decimal("9" * 38), Decimal(1)], [1, -1], numeric(38, 0), "NULL"),
    ([Decimal("9" * 38), Decimal(1)], [-1, -1], numeric(38, 0), "ERROR: numeric field overflow"),
])  # fmt: skip
def test_a_result_that_does_not_fit_is_an_error(rows: list[Any], diff: list[int], type: SqlType, wanted: Any) -> None:
    got = aggregate("sum", [(value,) for value in rows], type, diff=diff)
    assert got == (None if wanted == "NULL" else wanted)


def test_only_the_groups_that_overflow_fail() -> None:
    made = decomposed("sum", INTEGER)
    groups = [kept(made, [(5,)], [INTEGER], [diff]) for diff in (1, 2**62, 0, 3)]
    arrays = [pa.concat_arrays([group[i] for group in groups]) for i in range(2)]
    assert results(made, arrays) == [5, "ERROR: bigint out of range", None, 15]


NOTHING = ["sum", "avg", "var_pop", "var_samp", "stddev", "bit_and", "bit_or", "bit_xor"]


@pytest.mark.parametrize("name", NOTHING)
@pytest.mark.parametrize("rows", [[], [(None,)]], ids=["no rows", "only NULL"])
def test_nothing_is_null_but_count_is_zero(name: str, rows: list[Any]) -> None:
    assert aggregate(name, rows, INTEGER) is None
    assert aggregate("count", rows, INTEGER) == (0 if rows else None)  # no row of sums: the reader fills in a 0


@pytest.mark.parametrize(("values", "all_true", "any_true"), [
    ([True, True, None], True, True), ([True, False], False, True), ([False, None], False, False), ([None], None, None),
])  # fmt: skip
def test_booleans(values: list[bool | None], all_true: bool | None, any_true: bool | None) -> None:
    assert one(values, "bool_and", BOOLEAN) is all_true
    assert one(values, "every", BOOLEAN) is all_true
    assert one(values, "bool_or", BOOLEAN) is any_true


@pytest.mark.parametrize("type", [SMALLINT, INTEGER, BIGINT], ids=str)
@given(data=st.data())
def test_bits_are_those_of_the_values(type: SqlType, data: st.DataObject) -> None:
    most = {SMALLINT: 2**15, INTEGER: 2**31, BIGINT: 2**63}[type] - 1
    values = data.draw(st.lists(st.integers(-most - 1, most), min_size=1, max_size=6))
    gone = data.draw(st.lists(st.integers(-most - 1, most), max_size=3))
    rows = [(value,) for value in values + gone + gone]
    diff = [1] * (len(values) + len(gone)) + [-1] * len(gone)
    for name, operate in (("bit_and", np.bitwise_and), ("bit_or", np.bitwise_or), ("bit_xor", np.bitwise_xor)):
        assert aggregate(name, rows, type, diff=diff) == operate.reduce(np.array(values)), name


def variance(values: list[Fraction]) -> Fraction:
    mean = sum(values) / len(values)
    return Fraction(sum((value - mean) ** 2 for value in values))


def root(value: Fraction, scale: int) -> Decimal:
    return decimal(Fraction(math.isqrt(value * 10 ** (2 * scale + 80) // 1)) / 10 ** (scale + 40), scale)


@given(st.lists(st.integers(-(10**11), 10**11), min_size=2, max_size=6))
def test_exact_variances_round_once(whole: list[int]) -> None:
    values = [Decimal(value).scaleb(-2) for value in whole]
    spread, n = variance([Fraction(value) for value in values]), len(values)
    for name, divisor in (("var_pop", n), ("variance", n - 1)):
        decimals = quotient_decimals(spread * n, Fraction(n * divisor), 4)
        square = rounded(spread / divisor, decimals)
        assert Fraction(one(values, name, numeric(12, 2))) == rounded(spread / divisor, min(decimals, 17))
        deviation = {"var_pop": "stddev_pop", "variance": "stddev"}[name]
        assert one(values, deviation, numeric(12, 2)) == root(square, min(decimals, 21))
    assert one(values[:1], "var_samp", numeric(12, 2)) is None
    assert one(values[:1], "var_pop", numeric(12, 2)) == 0


@given(st.lists(FINITE, min_size=2, max_size=6))
@example([1e9 + 0.1, 1e9 + 0.2, 1e9 + 0.3])
@example([1e-200, 2e-200])
def test_float_variances_round_once(values: list[float]) -> None:
    spread, n = variance(list(map(Fraction, values))), len(values)
    assert one(values, "var_pop", DOUBLE) == nearest(spread / n)
    assert one(values, "var_samp", DOUBLE) == nearest(spread / (n - 1))
    got = one(values, "stddev_samp", DOUBLE)
    square = spread / (n - 1)
    below, above = (Fraction(math.nextafter(got, side)) for side in (0, math.inf))
    assert ((Fraction(got) + below) / 2) ** 2 <= square <= ((Fraction(got) + above) / 2) ** 2 or got == 0 == square


def test_a_variance_of_close_values_keeps_its_digits() -> None:
    values = [1e15 + 0.125, 1e15 + 0.25, 1e15 + 0.375]
    assert one(values, "var_samp", DOUBLE) == 0.015625  # squares in floats would give 0 or noise


def test_negative_counts_have_no_root() -> None:
    assert aggregate("stddev_pop", [(1,), (3,)], INTEGER, diff=[3, -1]) == (
        "ERROR: cannot take square root of a negative number")  # fmt: skip


PAIRS = ("covar_pop", "covar_samp", "corr", "regr_count", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy",
         "regr_slope", "regr_intercept", "regr_r2")  # fmt: skip
CASES: list[list[tuple[float | None, float | None]]] = [
    [(1, 2), (2, 3), (4, 7), (5, None), (None, 1)], [(1, 1)], [(1, 1), (1, 2)], [(1, 1), (2, 1)], [(3, 3), (3, 3)],
    [(None, 1)], [(1, math.nan), (2, 3)], [(math.inf, 1), (2, 3)], [(1, math.inf), (1, 3)], [(math.nan, 1), (2, 1)],
    [(0.1, 10.5), (0.2, -3.25), (0.7, 8), (-0.4, 2)], [(-1, 5), (-2, 6), (-4, 9)], [(1e150, 1), (2e150, 2), (0, 1)],
]  # fmt: skip


def literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"


def of_postgres(postgres: Any, call: str, rows: list[Any], *types: SqlType) -> Any:
    """PostgreSQL's answer over some rows, or the text of its error."""
    import psycopg

    columns = ", ".join(f"column{i + 1}::{type} AS {'xyz'[i]}" for i, type in enumerate(types))
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
    try:
        return postgres.execute(f"SELECT {call} FROM (SELECT {columns} FROM (VALUES {values}) AS v) AS t").fetchone()[0]
    except psycopg.errors.NumericValueOutOfRange as error:
        return f"ERROR: {error.diag.message_primary}"


def alike(got: Any, wanted: Any, close: float = 1e-9) -> bool:
    if isinstance(got, float) and isinstance(wanted, float):
        return math.isclose(got, wanted, rel_tol=close, abs_tol=close) or (math.isnan(got) and math.isnan(wanted))
    if isinstance(got, Decimal) and isinstance(wanted, Decimal):
        last = max(int(value.as_tuple().exponent) for value in (got, wanted))  # the digits that both have
        return abs(got - wanted) <= Decimal(1).scaleb(last)
    return bool(got == wanted)


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_pairs_are_postgresqls(name: str, postgres: Any) -> None:
    for rows in CASES:
        got = aggregate(name, rows, DOUBLE, DOUBLE)
        assert alike(got, of_postgres(postgres, f"{name}(x, y)", rows, DOUBLE, DOUBLE)), rows


ROWS: list[tuple[SqlType, list[Any]]] = [
    (SMALLINT, [7, -3, None, 7, 32767]), (INTEGER, [2**31 - 1, 2**31 - 1, -5, None]), (INTEGER, [-3]),
    (BIGINT, [2**63 - 1, 2**63 - 1, 12, None]), (BIGINT, [-(2**63)] * 3), (REAL, [0.1, 0.25, 1e10, None]),
    (DOUBLE, [0.1, 0.2, 0.7, 1e6, None, -3.5]), (DOUBLE, [1e308, 1e308]), (DOUBLE, [math.inf, 1.5]), (DOUBLE, [None]),
    (numeric(10, 2), [Decimal("0.01"), Decimal("99999999.99"), Decimal("-12.50"), None]),
    (numeric(38, 10), [Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.0000000001"), Decimal("3")]),
]  # fmt: skip


@pytest.mark.parametrize("name", ["count", "sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "bit_and",
                                  "bit_or", "bit_xor"])  # fmt: skip
def test_answers_are_postgresqls(name: str, postgres: Any) -> None:
    for type, values in ROWS:
        if name.startswith("bit") and type not in (SMALLINT, INTEGER, BIGINT):
            continue
        got = one(values, name, type)
        wanted = of_postgres(postgres, f"{name}(x)", [(value,) for value in values], type)
        if type is REAL and name == "sum":
            assert math.isclose(got, wanted, rel_tol=1e-6)
        elif name not in ("count", "sum") and isinstance(wanted, str):  # its sum overflows, though the result fits
            assert got == (1e308 if name == "avg" else 0)
        else:
            assert alike(got, wanted), (type, values, got, wanted)


INTERVALS = [
    ["1 mon 2 days 03:00:00", "-2 mons 00:00:01.5", None], ["1 mon", "1 day"], ["10 days", "-3 days", "5 days"],
    ["1 mon -00:00:01"], ["-1 mons 00:00:01"],
]  # fmt: skip


@pytest.mark.parametrize("name", ["sum", "avg"])
@pytest.mark.parametrize("texts", INTERVALS)
def test_intervals_add_up_field_by_field(name: str, texts: list[str | None], postgres: Any) -> None:
    def interval(text: str | None) -> Any:
        if text is None:
            return None
        months, days, micros = cast(tuple[int, int, int], parse(text, INTERVAL))
        return pa.MonthDayNano([months, days, 1000 * micros])

    got = one([interval(text) for text in texts], name, INTERVAL)
    wanted = of_postgres(postgres, f"{name}(x)::text", [(text,) for text in texts], INTERVAL)
    assert got == interval(wanted)


def test_an_interval_sum_that_does_not_fit_is_an_error() -> None:
    months = pa.MonthDayNano([2**31 - 1, 0, 0])
    assert aggregate("sum", [(months,)], INTERVAL, diff=[2]) == "ERROR: interval out of range"
    micros = pa.MonthDayNano([0, 0, -(2**62)])
    assert aggregate("sum", [(micros,), (pa.MonthDayNano([0, 1, 0]),)], INTERVAL, diff=[2**60, 1]) == (
        "ERROR: interval out of range")  # fmt: skip
    assert aggregate("sum", [(micros,), (micros,), (months,)], INTERVAL, diff=[2**60, -(2**60), 1]) == months


def test_an_average_that_its_type_does_not_hold_is_an_overflow() -> None:
    """Few rows are left of many copies that cancel, so the average is far above all values."""
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (g integer, x bigint); CREATE MATERIALIZED VIEW v AS "
                       "SELECT g, avg(x) AS a FROM t GROUP BY g")  # fmt: skip
        rows = [{"g": g, "x": 2, "__diff": 1} for g in range(1, 90)]
        many = [{"g": 0, "x": 1 << 62, "__diff": 1 << 30}, {"g": 0, "x": 1, "__diff": 1 - (1 << 30)}]
        for time, batch in enumerate((many, rows), 1):
            engine.apply({"t": batch}, time=time)
            with pytest.raises(hj.DataError, match="numeric field overflow in avg"):
                engine.read("v")
        engine.apply({"t": [one | {"__diff": -one["__diff"]} for one in many]}, time=3)
        assert engine.read("v")["a"].to_pylist() == [Decimal(2)] * 89
