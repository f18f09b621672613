"""Numbers of SQL/JSON paths: arithmetic, subscripts, and `.double()`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Context, Decimal

from halfjoin.engine.scalar.division import quotient_units
from halfjoin.engine.scalar.each import Bad
from halfjoin.sql.functions.decimal_places import decimals_of_quotient
from halfjoin.sql.functions.json_text import Json

_EXACT = Context(prec=300_000, Emax=999_999, Emin=-999_999)
_MOST_DIGITS = 2_000  # of an operand of a division, before the point and after it
_MOST_PLACES = 1_000  # of a quotient, as in PostgreSQL
_FLOAT = re.compile(r"[ \t\n\v\f\r]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\n\v\f\r]*")
_NOT_FINITE = re.compile(r"\s*(?:nan|[+-]?inf(?:inity)?)\s*", re.IGNORECASE)


class PathError(Exception):
    """A path has no answer for a value. The text is the reason."""


def arithmetic(sign: str, left: Sequence[Json], right: Sequence[Json]) -> Decimal:
    """The sum, difference, product, quotient or remainder of two operands, each a single number.

    Raises:
        PathError: one is not, or the divisor is 0.
    """
    for side, items in (("left", left), ("right", right)):
        if len(items) != 1 or not isinstance(items[0], Decimal):
            raise PathError(f"{side} operand of jsonpath operator {sign} is not a single numeric value")
    a, b = left[0], right[0]
    assert isinstance(a, Decimal) and isinstance(b, Decimal)
    if sign in "/%" and not b:
        raise PathError("division by zero")
    match sign:
        case "+":
            return _EXACT.add(a, b)
        case "-":
            return _EXACT.subtract(a, b)
        case "*":
            return _EXACT.multiply(a, b)
        case "%":
            return _EXACT.remainder(a, b)
    dividend, divisor = _units(a), _units(b)
    places = min(decimals_of_quotient(dividend, divisor), _MOST_PLACES)
    return Decimal(quotient_units(dividend, divisor, places)).scaleb(-places, _EXACT)


def _units(value: Decimal) -> tuple[int, int]:
    """A number as a whole one in units of its decimals."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    if max(value.adjusted(), -exponent) > _MOST_DIGITS:
        raise Bad(f"a SQL/JSON path divides numbers of at most {_MOST_DIGITS:,} digits")
    places = max(-exponent, 0)
    return int(value.scaleb(places, _EXACT)), places


def whole(items: Sequence[Json]) -> int:
    """The subscript that items are.

    Raises:
        PathError: they are not one number, or it is too large.
    """
    if len(items) != 1 or not isinstance(items[0], Decimal):
        raise PathError("jsonpath array subscript is not a single numeric value")
    number = int(items[0]) if items[0].adjusted() < 12 else 1 << 40
    if not -(1 << 31) <= number < 1 << 31:
        raise PathError("jsonpath array subscript is out of integer range")
    return number


def double(value: Json) -> Decimal:
    """`.double()`: of a number itself, of a text the number that a double precision value shows with 15 digits.

    Raises:
        PathError: it is neither, or no double precision number.
    """
    method = "jsonpath item method .double()"
    if isinstance(value, Decimal):
        if not _fits(value):
            raise PathError(f"numeric argument of {method} is out of range for type double precision")
        return value
    if not isinstance(value, str):
        raise PathError(f"{method} can only be applied to a string or numeric value")
    if _NOT_FINITE.fullmatch(value):
        raise PathError(f"NaN or Infinity is not allowed for {method}")
    if not _FLOAT.fullmatch(value) or not _fits(Decimal(value.strip())):
        raise PathError(f"string argument of {method} is not a valid representation of a double precision number")
    return Decimal(f"{float(value):.15g}")


def _fits(value: Decimal) -> bool:
    """Whether a number is neither too large nor too close to 0."""
    made = float(value)
    return abs(made) != float("inf") and (made != 0) == (value != 0)
