"""Exact arithmetic, comparison and rounding of decimals up to 76 digits.

Arrow's kernels are exact if their result type has room for every result of the argument types. If it does not, the
rows are computed one by one; there are few rows of such numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.kernels import computing
from halfjoin.engine.scalar.arrow_types import arrow_type, decimal_type
from halfjoin.engine.scalar.division import OVERFLOW, division, each_row
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.literals import scalar_of
from halfjoin.engine.scalar.short_decimals import with_places
from halfjoin.engine.scalar.values import Datum, Kernel, call, fail_where, mask_of
from halfjoin.engine.scalar.widened import widened
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.types import STORED_DIGITS, WORKING_DIGITS

_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_ZERO = pa.array([Decimal(0)], pa.decimal128(1, 0))
_NAMES = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked", "neg": "negate", "abs": "abs"}


def to(datum: Datum, type: Any) -> Datum:
    """Cast a datum to a type that holds all its values."""
    return widened(datum, type)


def arithmetic(expr: Call) -> Kernel:
    """The kernel of an operator on numerics."""
    types = [arrow_type(arg.type) for arg in expr.args]
    result = arrow_type(expr.type)
    operator = expr.function
    if operator in ("neg", "abs"):
        compute = call(_NAMES[operator])
        return lambda a: to(compute(a), result)
    if operator == "/":
        return division(types, result)
    if operator == "%":
        return _remainder(types, result)
    (p1, s1), (p2, s2) = ((type.precision, type.scale) for type in types)
    needed = p1 + p2 + 1 if operator == "*" else max(p1 - s1, p2 - s2) + max(s1, s2) + 1
    if needed > WORKING_DIGITS:
        return row_by_row(operator, result)
    compute = call(_NAMES[operator])
    if needed <= STORED_DIGITS:
        return _short(expr, types, result, lambda a, b: to(compute(a, b), result))
    wide = [pa.decimal256(type.precision, type.scale) for type in types]
    return lambda a, b: to(compute(to(a, wide[0]), to(b, wide[1])), result)


def _short(expr: Call, types: Sequence[Any], result: Any, otherwise: Kernel) -> Kernel:
    """The kernel of an operator whose results all fit into 128 bits."""
    operator, scales = expr.function, [type.scale for type in types]
    scale = sum(scales) if operator == "*" else max(scales)
    digits = (0, 0) if operator == "*" else (scale - scales[0], scale - scales[1])
    first, second = [_one(scalar_of(arg)) if isinstance(arg, Literal) else None for arg in expr.args]
    if result.bit_width != 128 or result.scale != scale or (first is not None and second is not None):
        return otherwise

    def run(a: Datum, b: Datum) -> Datum:
        left, right = a if first is None else first, b if second is None else second
        if isinstance(left, pa.Array) and isinstance(right, pa.Array) and [left.type, right.type] == types:
            made = computing.arithmetic(operator, left, right, digits, len(right if second is None else left), result)
            if made is not None:
                return made
        return otherwise(a, b)

    return run


def _one(scalar: pa.Scalar) -> pa.Array:
    return pa.array([scalar.as_py()], scalar.type)


def _remainder(types: Sequence[Any], result: Any) -> Kernel:
    scale = max(t.scale for t in types)
    precision = max(t.precision - t.scale for t in types) + scale
    if precision > WORKING_DIGITS:
        return row_by_row("%", result)
    common = decimal_type(precision, scale)
    compute = call("remainder_checked")

    def run(a: Datum, b: Datum) -> Datum:
        fail_where(pc.equal(b, pa.scalar(0, b.type)), "division by zero")
        return to(compute(to(a, common), to(b, common)), result)

    return run


_EXACTLY: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _EXACT.multiply,
    "%": _EXACT.remainder,
}


def row_by_row(operator: str, result: Any) -> Kernel:
    """The operator in Python's decimals, for types whose results may exceed 76 digits. Rows that do not fit fail."""
    compute = _EXACTLY[operator]
    unit = Decimal(1).scaleb(-result.scale)
    return each_row(lambda x, y: compute(x, y).quantize(unit, context=_EXACT), result)


def of_integers(given: Any, type: Any) -> Kernel:
    """Integers of a type as decimals. Those with too many digits fail."""
    whole = pa.decimal128(19, 0)
    resize, fits = rescale(whole, type), type.precision - type.scale >= len(str(1 << given.bit_width - 1))

    def run(a: Datum) -> Datum:
        if fits and type.bit_width == 128 and isinstance(a, pa.Array) and a.type == given:
            made = computing.arithmetic("+", a, _ZERO, (type.scale, 0), len(a), type)
            if made is not None:
                return made
        return resize(a.cast(whole))

    return run


def rescale(type: Any, result: Any) -> Kernel:
    """Round to the result's decimals, halves away from zero. Values with too many digits before the point fail."""
    before, room = type.precision - type.scale, result.precision - result.scale
    if result.scale >= type.scale and room >= before:
        return lambda a: widened(a, result)
    drops = result.scale < type.scale
    wide = decimal_type(min(type.precision + 1, WORKING_DIGITS), type.scale) if drops else type
    rounding = call("round", pc.RoundOptions(result.scale, "half_towards_infinity"))
    limit = pa.scalar(Decimal(10) ** room, decimal_type(room + 1, 0)) if room < WORKING_DIGITS else None

    def run(a: Datum) -> Datum:
        if drops:
            short = with_places(a, result.scale, "half_towards_infinity", result)
            if short is not None:
                return short
            a = rounding(to(a, wide))
        try:
            return a.cast(result)
        except pa.ArrowInvalid:
            raise Failed(OVERFLOW, _beyond(a, limit)) from None

    return run


def _beyond(a: Datum, limit: Any) -> Any:
    """The rows whose absolute value is at least the limit; None if it cannot be compared."""
    if limit is None:
        return None
    scale = a.type.scale
    before = max(a.type.precision - scale, limit.type.precision)
    common = decimal_type(min(before + scale, WORKING_DIGITS), scale)
    try:
        return mask_of(pc.greater_equal(pc.abs(to(a, common)), limit.cast(common)))
    except pa.ArrowInvalid:
        return None


def storable(type: Any, constants: Sequence[object]) -> list[object]:
    """The constants that the type holds exactly. A value of the type cannot equal any other constant."""
    kept = []
    for value in constants:
        try:
            pa.scalar(value, type)
        except pa.ArrowInvalid:
            continue
        kept.append(value)
    return kept
