"""Kernels from kept sums to sums, averages and bits. Spreads and regressions have their own module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from halfjoin.engine.kernels import computing, native
from halfjoin.engine.scalar import kept, quotients
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.division import OVERFLOW, division, quotient_units
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.intervals import length
from halfjoin.engine.scalar.lifting import FIELD_WORDS
from halfjoin.engine.scalar.moments import checked, scaled
from halfjoin.engine.scalar.repeated import once
from halfjoin.engine.scalar.spread import SPREAD
from halfjoin.engine.scalar.values import Datum, Kernel, from_numpy, on_arrays, raw, valid
from halfjoin.engine.scalar.wide import Ints, Wide
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.types import WORKING_DIGITS, Kind

Mask = NDArray[np.bool_]

_BIGINT_DIGITS = 19
FEW = 16  # so few groups are computed faster one by one


def _nothing(count: Any, total: Any) -> tuple[Mask, Ints]:
    """Where there is no value, so that the result is NULL; and the counts, 1 there."""
    nothing: Mask = ~(valid(count) & valid(total)) | (raw(count) == 0)
    return nothing, np.where(nothing, 1, raw(count))


def _few(count: Any, total: Any) -> list[tuple[int, int] | None] | None:
    """The sums and counts of a few groups of integers; None for a group without values. None: there are too many."""
    if len(total) > FEW:
        return None
    pairs = zip(total.to_pylist(), count.to_pylist(), strict=True)
    return [(kept.exact(value) or 0, number) if number and value is not None else None for value, number in pairs]


def _sum_of_integers(expr: Call) -> Kernel:
    type = arrow_type(expr.type)

    @on_arrays
    def run(count: Any, total: Any) -> Datum:
        made = computing.decimals(count, total, type) if native.on and expr.type.kind is not Kind.BIGINT else None
        if made is not None:
            return made
        few = _few(count, total) if expr.type.kind is not Kind.BIGINT else None
        if few is not None and (found := quotients.few_decimals([one and one[0] for one in few], type)) is not None:
            return found
        nothing, _ = _nothing(count, total)
        numbers, _ = kept.read(total)
        if expr.type.kind is Kind.BIGINT:
            values, outside = numbers.narrow()
            _fail(outside & ~nothing, "bigint out of range")
            return from_numpy(values, type, nothing)
        return _numeric(numbers, type, nothing)

    return lambda count, total, *digits: run(count, total)  # the type tells the digits


def _average_of_integers(expr: Call) -> Kernel:
    type, scale = arrow_type(expr.type), expr.args[3]
    assert isinstance(scale, Literal) and isinstance(scale.value, int)
    digits = scale.value
    types = pa.decimal256(WORKING_DIGITS, digits), pa.decimal128(_BIGINT_DIGITS, 0)
    divide = division(types, type)

    @on_arrays
    def run(count: Any, total: Any) -> Datum:
        made = computing.decimals(count, total, type, digits)
        if made is not None:
            return made
        few = _few(count, total)
        if few is not None:
            rounded = [one and quotient_units((one[0], digits), (one[1], 0), type.scale) for one in few]
            if (found := quotients.few_decimals(rounded, type)) is not None:
                return found
        nothing, counts = _nothing(count, total)
        sums = _numeric(kept.read(total)[0], types[0], nothing)
        return divide(sums, from_numpy(counts, pa.int64()).cast(types[1]))

    return lambda count, total, *_: run(count, total)


def _numeric(numbers: Wide, type: Any, nothing: Mask) -> Any:
    array, outside = quotients.decimals(numbers, type)
    _fail(outside & ~nothing, OVERFLOW)
    if not nothing.any():
        return array
    return pa.Array.from_buffers(type, len(array), [pa.array(~nothing).buffers()[1], array.buffers()[1]])


def _of_floats(divide: bool) -> Callable[[Call], Kernel]:
    """A sum or an average: NaN and infinities as in float arithmetic, else the exact number rounded once."""

    def build(expr: Call) -> Kernel:
        bits = 32 if expr.type.kind is Kind.REAL else 64
        dtype = np.float32 if bits == 32 else np.float64

        @on_arrays
        def run(count: Any, total: Any) -> Datum:
            nothing, counts = _nothing(count, total)
            numbers, special = kept.read(total)
            values, outside = quotients.floats(numbers, counts if divide else None, bits)
            if special is not None:
                nan, plus, minus = special != 0
                odd = [nan | (plus & minus), plus, minus]
                values = np.select(odd, [np.nan, np.inf, -np.inf], values)
                outside &= ~np.logical_or.reduce(odd)
            _fail(outside & ~nothing, "value out of range: overflow")
            return pa.array(values.astype(dtype), mask=nothing if nothing.any() else None)

        return run

    return build


_GIVEN: dict[str, Callable[[Ints, Ints], Mask]] = {
    "bit_and of bits": lambda having, counts: having == counts,
    "bit_or of bits": lambda having, counts: having != 0,
    "bit_xor of bits": lambda having, counts: having & 1 != 0,
}


def _bits(expr: Call) -> Kernel:
    """The integer of the bits that are given by their count and the count of values."""
    type, given = arrow_type(expr.type), _GIVEN[expr.function]
    width = type.bit_width

    @on_arrays
    def run(count: Any, total: Any) -> Datum:
        nothing, counts = _nothing(count, total)
        result = np.zeros(len(total), np.uint64)
        for bit, having in enumerate(kept.read(total)[0].fields(width, 2)):
            result |= given(having.narrow()[0], counts).astype(np.uint64) << np.uint64(bit)
        return from_numpy(result.astype(f"u{width // 8}").view(f"i{width // 8}"), type, nothing)

    return run


def _intervals(divide: bool) -> Callable[[Call], Kernel]:
    """A sum or an average of intervals: months, days and microseconds by themselves."""

    def build(expr: Call) -> Kernel:
        @on_arrays
        def run(count: Any, total: Any) -> Datum:
            nothing, counts = _nothing(count, total)
            fields = [field.narrow() for field in kept.read(total)[0].fields(3, FIELD_WORDS)]
            outside = np.logical_or.reduce([wrong for _, wrong in fields])
            _fail(outside & ~nothing, "interval out of range")
            micros, days, months = (np.where(nothing, 0, values) for values, _ in fields)
            sums = checked(months, days, micros, nothing)
            return scaled(sums, pa.array(counts.astype(np.float64)), "/") if divide else sums

        return run

    return build


def _fail(bad: Mask, message: str) -> None:
    if bad.any():
        raise Failed(message, bad)


def _next(expr: Call) -> Kernel:
    """One more."""
    return lambda number: pc.add(number, 1)


_SLOW: dict[str, Callable[[Call], Kernel]] = {
    "avg of integers": _average_of_integers,
    "sum of floats": _of_floats(divide=False),
    "avg of floats": _of_floats(divide=True),
    "sum of intervals": _intervals(divide=False),
    "avg of intervals": _intervals(divide=True),
    **dict.fromkeys(_GIVEN, _bits),
    **SPREAD,
}


def _once(build: Callable[[Call], Kernel]) -> Callable[[Call], Kernel]:
    return lambda expr: once(build(expr))


SUMS: dict[str, Callable[[Call], Kernel]] = {
    "next round": _next,
    "length of interval": lambda _: length,
    "sum of integers": _sum_of_integers,
    **{name: _once(build) for name, build in _SLOW.items()},
}
