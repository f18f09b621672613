"""Kernels of casts between numbers, booleans, dates and times, and between arrays of these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from halfjoin.engine.scalar import decimals, float_digits, short_decimals
from halfjoin.engine.scalar.arrow_types import arrow_type, decimal_type
from halfjoin.engine.scalar.casts_text import from_text, to_text
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.json_order import from_jsonb, to_canonical, to_checked
from halfjoin.engine.scalar.lifting import integers
from halfjoin.engine.scalar.over_elements import over_elements
from halfjoin.engine.scalar.precision import rounds, to_digits
from halfjoin.engine.scalar.rows import cast_rows
from halfjoin.engine.scalar.values import (
    Datum,
    Kernel,
    any_true,
    call,
    fail_where,
    from_numpy,
    mask_of,
    on_arrays,
    raw,
    valid,
)  # fmt: skip
from halfjoin.engine.updates.intervals import DAY, fields, intervals
from halfjoin.engine.updates.updates import Mask
from halfjoin.sql.functions.calendar import FIRST_DAY, LAST_DAY
from halfjoin.sql.functions.coercion import same_values
from halfjoin.sql.types import FLOATS, INTEGERS, SECONDS, STRINGS, Kind, SqlType, all_digits

_TENS, _WHOLE = 22, 1 << 53  # doubles have the powers of ten up to 10^22, and the integers up to 2^53
_UNSAFE_DATE = pc.CastOptions.unsafe(pa.date32())
_is_inf, _is_nan, _or = call("is_inf"), call("is_nan"), call("or")


def cast_kernel(source: SqlType, target: SqlType) -> Kernel | None:
    """The kernel of a cast from `source` to `target`. None if the values do not change."""
    if same_values(source, target):
        return None
    if not rounds(target):
        return _cast(source, target)
    convert, shorten = _cast(source, all_digits(target)), to_digits(target)
    return shorten if convert is None else lambda datum: shorten(convert(datum))


def _cast(source: SqlType, target: SqlType) -> Kernel | None:
    """The kernel, without the digits of the second."""
    a, b = source.kind, target.kind
    if b is Kind.ARRAY and a is Kind.ARRAY:
        return _array(source, target)
    if b is Kind.RECORD and a is b:
        return cast_rows([cast_kernel(one, other) for (_, one), (_, other) in zip(
            source.fields, target.fields, strict=True)], target)  # fmt: skip
    if b is Kind.JSONB and a is not b:
        return to_canonical
    if b is Kind.JSON:
        return None if a in (Kind.JSON, Kind.JSONB) else to_checked
    if a in STRINGS or a is Kind.UNKNOWN:
        return from_text(target) if a not in STRINGS or b not in STRINGS else to_text(source, target)
    if b in STRINGS:
        return to_text(source, target)
    if a is b and a in SECONDS:
        return None
    if a is Kind.JSONB:
        return from_jsonb(target)
    if a in INTEGERS:
        return _from_integer(source, target)
    if a is Kind.NUMERIC:
        return _from_numeric(source, target)
    if a in FLOATS:
        return _from_float(source, target)
    type = arrow_type(target)
    if a is Kind.DATE and b in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return _within(arrow_type(target), "date out of range for timestamp", _beyond_timestamps)
    if b is Kind.DATE:
        return lambda datum: pc.cast(datum, options=_UNSAFE_DATE)
    if b is Kind.INTERVAL:
        return _time_to_interval
    if a is Kind.INTERVAL:
        return _interval_to_time
    return lambda datum: datum.cast(type)


def _array(source: SqlType, target: SqlType) -> Kernel | None:
    """Cast the elements of an array. An element that fails makes its row fail."""
    assert source.element is not None and target.element is not None
    element = cast_kernel(source.element, target.element)
    if element is None:
        return None
    return over_elements(element, target)


def _from_integer(source: SqlType, target: SqlType) -> Kernel:
    type = arrow_type(target)
    if target.kind in INTEGERS:
        limit = 1 << (type.bit_width - 1)
        return _within(type, f"{target} out of range", lambda a: _or(pc.less(a, -limit), pc.greater_equal(a, limit)))
    if target.kind is Kind.NUMERIC:
        return decimals.of_integers(arrow_type(source), type)
    options = pc.CastOptions.unsafe(type)
    return lambda a: pc.cast(a, options=options)


def _within(type: Any, message: str, outside: Any) -> Kernel:
    """A safe cast. If it fails, it reports the rows whose values are `outside` the type."""

    def run(a: Datum) -> Datum:
        try:
            return a.cast(type)
        except pa.ArrowInvalid:
            raise Failed(message, _mask(outside, a)) from None

    return run


def _beyond_timestamps(a: Datum) -> Any:
    """The dates that no timestamp has: an int64 counts its microseconds."""
    days = pc.cast(a, pa.int32())
    return _or(pc.less(days, FIRST_DAY), pc.greater(days, LAST_DAY))


def _mask(outside: Any, a: Datum) -> Any:
    """The rows whose values are outside. None if the limits do not fit the type; then the rows are searched."""
    try:
        return mask_of(outside(a))
    except pa.ArrowInvalid:
        return None


def _from_numeric(source: SqlType, target: SqlType) -> Kernel:
    type, own = arrow_type(target), arrow_type(source)
    if target.kind is Kind.NUMERIC:
        return decimals.rescale(own, type)
    if target.kind in FLOATS:
        return _decimal_to_float(target)
    whole = decimal_type(min(own.precision - own.scale + 1, 76), 0)
    round_to = decimals.rescale(own, whole)
    limit = 1 << (type.bit_width - 1)
    bounds = [pa.scalar(bound, pa.decimal128(20, 0)) for bound in (-limit, limit)]

    def outside(a: Datum) -> Datum:
        wide = a.cast(decimal_type(max(whole.precision, 20), 0))
        low, high = (bound.cast(wide.type) for bound in bounds)
        return _or(pc.less(wide, low), pc.greater_equal(wide, high))

    convert = _within(type, f"{target} out of range", outside)

    def run(a: Datum) -> Datum:
        short = short_decimals.as_integers(a, type)
        return convert(round_to(a)) if short is None else short

    return run


def _decimal_to_float(target: SqlType) -> Kernel:
    """Cast through text, which Arrow rounds correctly. Arrow's direct cast may be off by one unit in the last place."""
    type = arrow_type(target)

    def run(a: Datum) -> Datum:
        quotients = _quotients(a) if target.kind is Kind.DOUBLE else None
        if quotients is not None:
            return quotients
        result = a.cast(pa.string()).cast(type)
        infinite = _is_inf(result)
        if any_true(infinite):
            fail_where(infinite, f"value out of range for type {target}")
        return result

    return run


def _quotients(a: Datum) -> Datum | None:
    """Numerics as doubles, by one division, which rounds correctly if doubles have both of its numbers; None if not."""
    if isinstance(a, pa.Scalar) or not 0 <= a.type.scale <= _TENS:
        return None
    whole = integers(a)
    if len(whole.digits) > 1 or whole.bound > _WHOLE:
        return None
    return pa.array(whole.digits[0] / 10.0**a.type.scale, mask=~valid(a) if a.null_count else None)


def _from_float(source: SqlType, target: SqlType) -> Kernel:
    type = arrow_type(target)
    if target.kind is Kind.DOUBLE:
        return lambda a: a.cast(type)
    if target.kind is Kind.REAL:
        return _narrow
    if target.kind is Kind.NUMERIC:
        return _float_to_numeric(source, target)
    limit = float(1 << (type.bit_width - 1))
    rounding = call("round", pc.RoundOptions(0, "half_to_even"))

    def run(a: Datum) -> Datum:
        whole = rounding(a)
        inside = pc.and_(pc.greater_equal(whole, -limit), pc.less(whole, limit))  # false for NaN
        bad = pc.invert(inside)
        fail_where(bad, f"{target} out of range")
        return whole.cast(type)

    return run


def _narrow(a: Datum) -> Datum:
    result = pc.cast(a, pa.float32(), safe=False)
    infinite = _is_inf(result)
    if any_true(infinite):
        fail_where(pc.and_(infinite, pc.invert(_is_inf(a))), "value out of range: overflow")
    zero = pc.equal(result, pa.scalar(0, pa.float32()))
    if any_true(zero):
        fail_where(pc.and_(zero, pc.not_equal(a, 0.0)), "value out of range: underflow")
    return result


def _float_to_numeric(source: SqlType, target: SqlType) -> Kernel:
    """Cast through text with 15 significant digits (6 for real), as PostgreSQL does; most values by arithmetic."""
    digits, type, any_text = 6 if source.kind is Kind.REAL else 15, arrow_type(target), from_text(target)
    resize, wide = decimals.rescale(pa.decimal256(76, 38), type), pa.decimal256(76, 38)

    @on_arrays
    def run(a: Any) -> Datum:
        fail_where(_or(_is_nan(a), _is_inf(a)), f"cannot convert NaN or infinity to {target}")
        given = valid(a)
        values = np.where(given, raw(a), 0)
        found = float_digits.decimals_of(values.astype(np.float64), digits, type)
        if found is None:
            return through_text(values, given)
        made, unknown = found
        if len(unknown):
            some = np.zeros(len(made), np.bool_)
            some[unknown] = True
            try:
                rest = through_text(values[unknown], given[unknown])
            except Failed:  # which rows fail is told among all
                return through_text(values, given)
            made = pc.replace_with_mask(made, pa.array(some), rest)
        return made if given.all() else pc.if_else(pa.array(given), made, pa.scalar(None, type))

    def through_text(values: NDArray[Any], given: Mask) -> Any:
        texts = pa.array(np.char.mod(f"%.{digits - 1}e", values).tolist(), pa.string(), mask=~given)
        size = np.abs(values)
        if ((size == 0) | ((size >= 1e-23) & (size < 1e37))).all():  # 15 digits within 38 before and after the point
            return resize(texts.cast(wide))
        return any_text(texts)

    return run


@on_arrays
def _time_to_interval(a: Any) -> Datum:
    return intervals(0, 0, raw(a), ~valid(a))


@on_arrays
def _interval_to_time(a: Any) -> Datum:
    return from_numpy(fields(a)[2] % DAY, pa.time64("us"), ~valid(a))
