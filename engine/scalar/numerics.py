"""Kernels of roots, powers and logarithms of numerics, and of functions of whole numbers.

Python's decimals compute more digits than the result has, and are rounded once; so the answer is the same everywhere.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, Overflow
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.casts_text import to_text
from halfjoin.engine.scalar.division import OVERFLOW, quotient_units
from halfjoin.engine.scalar.each import Bad, each
from halfjoin.engine.scalar.json_order import order_key
from halfjoin.engine.scalar.values import Datum, Kernel, call
from halfjoin.engine.updates.intervals import DAY
from halfjoin.sql.expr import Call
from halfjoin.sql.functions import decimal_places as places
from halfjoin.sql.functions.decimal_places import Number, decimals_of_quotient
from halfjoin.sql.types import TEXT, Kind, SqlType

_WIDE = Context(prec=130, rounding=ROUND_HALF_UP)
_EXACT = Context(prec=200)
_LARGEST_EXPONENT = 180  # e to this power has more digits than a numeric


def of_numeric(compute: Callable[..., Decimal], decimals: Callable[..., int] | None = None) -> Callable[[Call], Kernel]:
    """A kernel of numerics: the function's value, rounded to the type's decimals, or to `decimals` if fewer."""

    def build(expr: Call) -> Kernel:
        type = arrow_type(expr.type)
        unit = Decimal(1).scaleb(-type.scale)
        limit = Decimal(10) ** (type.precision - type.scale)

        def run(*args: Decimal) -> Decimal:
            try:
                exact = compute(*args)
            except Overflow:
                raise Bad(OVERFLOW) from None
            if exact.copy_abs() >= limit:
                raise Bad(OVERFLOW)
            value = exact.quantize(unit, context=_WIDE)
            if decimals is not None and (fewer := decimals(*args)) < type.scale:
                value = exact.quantize(Decimal(1).scaleb(-fewer), context=_WIDE)
            if value.copy_abs() >= limit:
                raise Bad(OVERFLOW)
            return value.copy_abs() if value == 0 else value  # no negative zero

        return each(run, type)

    return build


def sqrt(x: Decimal) -> Decimal:
    """The square root."""
    if x < 0:
        raise Bad("cannot take square root of a negative number")
    return _WIDE.sqrt(x)


def exp(x: Decimal) -> Decimal:
    """e to the power of x."""
    if x > _LARGEST_EXPONENT:
        raise Bad(OVERFLOW)
    return _WIDE.exp(max(x, Decimal(-2 * _LARGEST_EXPONENT)))


def ln(x: Decimal) -> Decimal:
    """The natural logarithm."""
    _above_zero(x)
    return _WIDE.ln(x)


def log(first: Decimal, second: Decimal | None = None) -> Decimal:
    """The logarithm to base 10, or of the second to the base of the first."""
    _above_zero(first)
    if second is None:
        return _WIDE.log10(first)
    _above_zero(second)
    if first == 1:
        raise Bad("division by zero")
    return _WIDE.divide(_WIDE.ln(second), _WIDE.ln(first))


def power(base: Decimal, exponent: Decimal) -> Decimal:
    """The base to the power of the exponent."""
    if base == 0:
        if exponent < 0:
            raise Bad("zero raised to a negative power is undefined")
        return Decimal(exponent == 0)
    if base < 0 and exponent != exponent.to_integral_value():
        raise Bad("a negative number raised to a non-integer power yields a complex result")
    size = _WIDE.multiply(exponent, base.copy_abs().log10(_WIDE))
    if size > 80:
        raise Bad(OVERFLOW)
    if size < -80:
        return Decimal(0)
    return _WIDE.power(base, exponent)


def _above_zero(x: Decimal) -> None:
    if x <= 0:
        raise Bad(f"cannot take logarithm of {'zero' if x == 0 else 'a negative number'}")


def _div(a: Decimal, b: Decimal) -> Decimal:
    if b == 0:
        raise Bad("division by zero")
    return Context(prec=200).divide_int(a, b)


def _whole(combine: Callable[[int, int], int]) -> Callable[[Call], Kernel]:
    """gcd and lcm, of integers in their range and of numerics in units of their last decimal."""

    def build(expr: Call) -> Kernel:
        type = arrow_type(expr.type)
        if expr.type.kind is Kind.NUMERIC:
            scale = type.scale

            def of_units(a: Decimal, b: Decimal) -> Decimal:
                return Decimal(combine(_units(a, scale), _units(b, scale))).scaleb(-scale, _WIDE)

            return of_numeric(of_units)(expr)
        limit = 1 << (type.bit_width - 1)

        def run(a: int, b: int) -> int:
            found = combine(a, b)
            if found >= limit:
                raise Bad(f"{expr.type} out of range")
            return found

        return each(run, type)

    return build


def _units(value: Decimal, scale: int) -> int:
    return int(value.scaleb(scale, _EXACT))


def _factorial(n: int) -> Decimal:
    if n < 0:
        raise Bad("factorial of a negative number is undefined")
    if n > 60:
        raise Bad(OVERFLOW)
    return Decimal(math.factorial(n))


def _width_bucket(expr: Call) -> Kernel:
    if len(expr.args) == 4:
        return each(_between, pa.int32())
    key = _order(expr.args[0].type)

    def among(value: Any, bounds: Sequence[Any]) -> int:
        """The number of ascending bounds that are not above the value."""
        if None in bounds:
            raise Bad("thresholds array must not contain NULLs")
        return bisect_right(bounds, key(value), key=key)

    return each(among, pa.int32())


def _order(type: SqlType) -> Callable[[Any], Any]:
    """What orders as the values of a type do. NaN is above all other numbers."""
    match type.kind:
        case Kind.JSONB:
            return order_key
        case Kind.ENUM:
            return type.labels.index
        case Kind.INTERVAL:
            return lambda parts: (parts[0] * 30 + parts[1]) * DAY + parts[2]
        case Kind.REAL | Kind.DOUBLE:
            return lambda number: (number != number, number)
        case _:
            return lambda value: value


def _between(value: Any, low: Any, high: Any, count: int) -> int:
    if count <= 0:
        raise Bad("count must be greater than zero")
    if any(math.isnan(number) for number in (value, low, high)):
        raise Bad("operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise Bad("lower and upper bounds must be finite")
    if low == high:
        raise Bad("lower bound cannot equal upper bound")
    if low > high:
        value, low, high = -value, -low, -high
    if value < low or value >= high:
        bucket = 0 if value < low else count + 1
    else:
        bucket = (_float_bucket if isinstance(value, float) else _numeric_bucket)(value, low, high, count)
    if bucket >= 1 << 31:
        raise Bad("integer out of range")
    return bucket


def _float_bucket(value: float, low: float, high: float, count: int) -> int:
    """The bucket by PostgreSQL's roundings, which put a value just below a bound above it."""
    found = count * (value - low) / (high - low) if high - low < math.inf else math.inf
    if found == math.inf:  # PostgreSQL's number has no meaning then
        found = count * ((value / 2 - low / 2) / (high / 2 - low / 2))
    return int(found + 1)


def _numeric_bucket(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    """The bucket from the quotient rounded to PostgreSQL's decimals."""
    left = _units_of(_EXACT.multiply(_EXACT.subtract(value, low), count))
    right = _units_of(_EXACT.subtract(high, low))
    scale = decimals_of_quotient(left, right)
    return quotient_units(left, right, scale) // int(10**scale) + 1


def _units_of(value: Decimal) -> Number:
    scale = -int(value.as_tuple().exponent)
    return _units(value, scale), scale


def _min_scale(expr: Call) -> Kernel:
    return each(lambda value: max(0, -int(value.normalize(_WIDE).as_tuple().exponent)), pa.int32())


def _counted(null: bool) -> Callable[[Call], Kernel]:
    """How many data are NULL, or are not."""

    def run(*data: Datum) -> Datum:
        found = [(pc.is_null(datum) if null else pc.is_valid(datum)).cast(pa.int32()) for datum in data]
        total = found[0]
        for more in found[1:]:
            total = pc.add(total, more)
        return total

    return lambda _: run


def round_to(name: str, expr: Call) -> Kernel:
    """round or trunc of a numeric to a number of digits that is not constant."""
    mode = ROUND_HALF_UP if name == "round" else "ROUND_DOWN"

    def rounded(value: Decimal, places: int) -> Decimal:
        if places >= -int(value.as_tuple().exponent):
            return value
        return value.quantize(Decimal(1).scaleb(-max(places, -100)), mode, _WIDE)

    return of_numeric(rounded)(expr)


_zeros = call("replace_substring_regex", pc.ReplaceSubstringOptions(r"(\.[0-9]*[1-9])0+$", r"\1"))
_point = call("replace_substring_regex", pc.ReplaceSubstringOptions(r"\.0*$", ""))


def _trimmed(type: SqlType) -> Kernel:
    """The kernel of a numeric's text without the zeros after its last decimal."""
    printed = to_text(type, TEXT)
    assert printed is not None
    return lambda a: _point(_zeros(printed(a)))


NUMERICS: dict[str, Callable[[Call], Kernel]] = {
    "div": of_numeric(_div),
    "gcd": _whole(math.gcd),
    "lcm": _whole(math.lcm),
    "factorial": of_numeric(_factorial),
    "width_bucket": _width_bucket,
    "min_scale": _min_scale,
    "trim_scale": lambda _: lambda a: a,
    "trimmed text": lambda expr: _trimmed(expr.args[0].type),
    "num_nulls": _counted(True),
    "num_nonnulls": _counted(False),
}
OF_NUMERIC: dict[str, Callable[[Call], Kernel]] = {
    "sqrt": of_numeric(sqrt, places.of_root), "exp": of_numeric(exp, places.of_exponential),
    "ln": of_numeric(ln, places.of_natural), "log": of_numeric(log, places.of_logarithm),
    "power": of_numeric(power, places.of_power), "^": of_numeric(power, places.of_power),
}
