"""Fits constants to a type: the range of integers, the digits of numerics, the length of strings."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.types import STORED_DIGITS, Kind, SqlType

_BITS = {Kind.SMALLINT: 15, Kind.INTEGER: 31, Kind.BIGINT: 63}
_MOST_DIGITS = 1000  # before the point: more than any numeric has, but few enough to write out
_EXACT = Context(prec=2000, rounding=ROUND_HALF_UP)


def integer_of(value: int, type: SqlType) -> int:
    """The value, or UnsupportedSQL if it is outside the type's range."""
    limit = 1 << _BITS[type.kind]
    if not -limit <= value < limit:
        raise UnsupportedSQL(f"{type} out of range: {value}")
    return value


def rounded(value: Decimal, scale: int) -> Decimal:
    """`value` rounded to `scale` decimals, halves away from zero."""
    return value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)


def decimal_of(value: Decimal, type: SqlType) -> Decimal:
    """The value rounded to the type's scale, or UnsupportedSQL if it does not fit. Unchanged for a bare `numeric`."""
    if value.adjusted() > _MOST_DIGITS:
        raise UnsupportedSQL(f"numeric field overflow: {value} does not fit {type}", code="22003")
    if type.precision is None:
        return value if _exponent(value) <= 0 else rounded(value, 0)
    result = rounded(value, type.scale or 0)
    if len(result.as_tuple().digits) > type.precision and result != 0:
        raise UnsupportedSQL(f"numeric field overflow: {value} does not fit {type}", code="22003")
    return result + 0 if result == 0 else result  # no negative zero


def type_of_decimal(value: Decimal) -> SqlType:
    """The smallest numeric type that holds the value."""
    scale = max(-_exponent(value), 0)
    before = max(value.adjusted() + 1, 0) if value else 0
    if before + scale > STORED_DIGITS:
        raise UnsupportedSQL(f"a numeric constant of more than {STORED_DIGITS} digits: {value}")
    return SqlType(Kind.NUMERIC, max(before + scale, 1), scale)


def real_of(value: Fraction) -> float | None:
    """The nearest value of type real (24 binary digits); None if the number overflows or underflows."""
    if not value:
        return 0.0
    top = abs(value.numerator).bit_length() - value.denominator.bit_length()
    top -= abs(value) < Fraction(2) ** top
    unit = Fraction(2) ** (max(top, -126) - 23)
    nearest = round(value / unit) * unit
    return float(nearest) if 0 < abs(nearest) < 1 << 128 else None


def fit(text: str, type: SqlType, truncate: bool = True) -> str:
    """A string cut to the type's length; unless `truncate`, only blanks may go. A char loses all trailing blanks."""
    short = text if type.precision is None else text[: type.precision]
    if not truncate and text[len(short) :].strip(" "):
        raise UnsupportedSQL(f"value too long for type {type}: '{text}'", code="22001")
    return short.rstrip(" ") if type.kind is Kind.CHAR else short


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent
