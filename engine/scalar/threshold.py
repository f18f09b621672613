"""Comparisons of a column with a constant, in the form in which a kernel reads them: `o_orderdate < '1995-03-15'`."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.literals import array_of_constants
from halfjoin.sql.expr import FLIPPED, Call, Column, Expr, Literal
from halfjoin.sql.types import FLOATS, INTEGERS, Kind, SqlType

LOWER, EQUAL, HIGHER = 1, 2, 4
_ALL = LOWER | EQUAL | HIGHER
_ALLOWED = {"<": LOWER, "<=": LOWER | EQUAL, "=": EQUAL, ">=": EQUAL | HIGHER, ">": HIGHER,
            "<>": LOWER | HIGHER}  # fmt: skip
# Values of these types are ordered as the integers, floats or bytes by which Arrow holds them.
_KINDS = frozenset((
    *INTEGERS, *FLOATS, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TEXT, Kind.VARCHAR,
))  # fmt: skip
_FLOOR = Context(prec=200, rounding=ROUND_FLOOR)


class Threshold(NamedTuple):
    """A condition that the value of `column` meets if it is ordered to the constant as `allowed` says: the sum of 1 if
    it may be lower, 2 if it may be equal, and 4 if it may be higher. NULL never meets it.

    `constant`: an Arrow array of one value, of the column's type.
    """

    column: str
    constant: Any
    allowed: int

    @property
    def negated(self) -> Threshold:
        """The condition that all other values meet. NULL does not meet it either."""
        return self._replace(allowed=_ALL - self.allowed)


def threshold_of(expr: Expr) -> Threshold | None:
    """The condition as a threshold; None: it is none, or its type has another order than that of integers and bytes.

    >>> from halfjoin.sql.types import BOOLEAN, INTEGER
    >>> threshold_of(Call(">", (Literal(7, INTEGER), Column("x", INTEGER)), BOOLEAN)).allowed
    1
    """
    if not isinstance(expr, Call) or expr.function not in _ALLOWED:
        return None
    function, (left, right) = expr.function, expr.args
    if isinstance(left, Literal):
        function, left, right = FLIPPED[function], right, left
    if not isinstance(left, Column) or not isinstance(right, Literal):
        return None
    if not has_threshold(left.type, right.type):
        return None
    if right.type.kind is Kind.NUMERIC:
        return _of_numeric(left, right.value, _ALLOWED[function])
    return Threshold(left.name, array_of_constants([right.value], right.type), _ALLOWED[function])


def has_threshold(column: SqlType, constant: SqlType) -> bool:
    """Whether values of a column are ordered to a constant as the values by which Arrow holds them."""
    if constant.kind is Kind.NUMERIC:
        return column.kind in INTEGERS or (column.kind is Kind.NUMERIC and pt.is_decimal128(arrow_type(column)))
    return column == constant and column.kind in _KINDS


def threshold_at(column: Column, function: str, value: Any, type: SqlType) -> Threshold | None:
    """The comparison of a column with the only value of an Arrow array, of a type for which `has_threshold`. None: the
    value is no number."""
    if type.kind is Kind.NUMERIC:
        return _of_numeric(column, value[0].as_py(), _ALLOWED[function])
    return Threshold(column.name, value, _ALLOWED[function])


def _of_numeric(column: Column, value: Any, allowed: int) -> Threshold | None:
    """The threshold in the column's decimals. Between two of its values lies no third one: x < 0.055 is x <= 0.05."""
    type = arrow_type(column.type)
    if value is None:
        return Threshold(column.name, pa.array([None], type), allowed)
    if not Decimal(value).is_finite():
        return None
    scale, most = (0, 2 ** (type.bit_width - 1) - 1) if pt.is_integer(type) else (type.scale, 10**type.precision - 1)
    least = -most - 1 if pt.is_integer(type) else -most
    below = Decimal(value).quantize(Decimal(1).scaleb(-scale), context=_FLOOR)
    units = int(below.scaleb(scale, _FLOOR))
    if not least <= units <= most:  # it is beyond all values
        allowed = _ALL if allowed & (LOWER if units > most else HIGHER) else 0
        units = 0
    elif below != value:  # no value is equal to it, and the one below it is lower
        allowed = allowed & ~EQUAL | (EQUAL if allowed & LOWER else 0)
    constant = units if pt.is_integer(type) else Decimal(units).scaleb(-scale, _FLOOR)
    return Threshold(column.name, pa.array([constant], type), allowed)
