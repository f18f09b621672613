"""`expr::type`: folds casts of constants, refuses casts that PostgreSQL refuses, and builds a Cast for the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Cast, Expr, Literal
from halfjoin.sql.functions.coercion import NUMBERS, as_numeric, assignable, castable, common_type, same_values
from halfjoin.sql.functions.nested_arrays import nested, type_of_text
from halfjoin.sql.functions.one_byte import ONE_BYTE, cast_byte
from halfjoin.sql.functions.padding import padded
from halfjoin.sql.functions.parameters import is_parameter, typed
from halfjoin.sql.functions.record_casts import cast_row
from halfjoin.sql.functions.record_values import open_type
from halfjoin.sql.functions.rounding import decimal_of, fit, integer_of, real_of, rounded, type_of_decimal
from halfjoin.sql.functions.text_input import parse
from halfjoin.sql.types import (
    FLOATS,
    INTEGER,
    INTEGERS,
    SECOND_DIGITS,
    STRINGS,
    TEXT,
    Kind,
    SqlType,
    all_digits,
    dimensions,
    innermost,
    numeric,
    with_digits,
)
from halfjoin.sql.unseen import is_unseen


def cast(expr: Expr, type: SqlType, explicit: bool = False) -> Expr:
    """`expr` as a value of `type`. `explicit`: the text has the cast; otherwise only casts that INSERT makes.

    Constants are folded. An explicit cast to varchar(n) cuts the value, an implicit one fails if it is too long. A
    `numeric` without precision gets the fewest digits that hold every value of `expr` if it is a constant, an integer
    or a numeric, else numeric(38,10).
    """
    if isinstance(expr, Literal) and is_parameter(expr):
        return cast(typed(expr, type), type, explicit)
    if Kind.RECORD in (type.kind, expr.type.kind):
        return expr if expr.type == type else cast_row(cast, expr, type, explicit)
    if explicit and type.kind is Kind.ARRAY:
        type = _with_dimensions(expr, type)
    if explicit and isinstance(expr, Literal) and expr.type.kind in STRINGS:
        try:
            return _cast(expr, type, explicit)
        except UnsupportedSQL:  # of the rows that come so far: CASE may keep them away
            _check(expr.type, type, explicit)
            return Cast(expr, with_digits(type))
    return _cast(expr, type, explicit)


def _cast(expr: Expr, type: SqlType, explicit: bool) -> Expr:
    type = _with_digits(expr, type)
    if expr.type == type:
        return expr
    if explicit and ONE_BYTE in (type.named, expr.type.named) and (made := cast_byte(cast, expr, type)) is not None:
        return made
    if type.kind in (Kind.BYTEA, Kind.UUID) or (type.kind in STRINGS and expr.type.kind is Kind.ARRAY):
        expr = padded(expr)
    if type.kind in STRINGS and isinstance(expr, Call) and expr.function == "trim_scale":
        return cast(Call("trimmed text", expr.args, TEXT), type, explicit)
    if isinstance(expr, Literal):
        whole = all_digits(type)
        folded = expr if expr.type == whole else _fold(expr, whole, explicit)
        if folded is not None:
            return folded if folded.type == type else _rounded(folded, type)
    _check(expr.type, type, explicit)
    if not explicit and (to := innermost(type)).kind in STRINGS and to.precision is not None:
        of = innermost(expr.type)
        text = expr if of.kind in STRINGS else Cast(expr, nested(TEXT, dimensions(expr.type)))
        if of.kind not in STRINGS or of.precision is None or of.precision > to.precision:
            return Call("fit", (text, Literal(to.precision, INTEGER)), type)
    return Cast(expr, type)


def _with_dimensions(expr: Expr, type: SqlType) -> SqlType:
    """The array type of an explicit cast, with the dimensions of the value, as in PostgreSQL."""
    if expr.type.kind is Kind.ARRAY and dimensions(expr.type) != dimensions(type):
        return nested(innermost(type), dimensions(expr.type))
    if isinstance(expr, Literal) and isinstance(expr.value, str):
        return type_of_text(expr.value, type)
    return type


def _rounded(literal: Literal, type: SqlType) -> Expr:
    """A constant with the digits of the second that its type has."""
    if literal.value is None:
        return Literal(None, type)
    if not isinstance(literal.value, tuple):
        return Cast(literal, type)
    months, days, micros = literal.value
    unit = 10 ** (SECOND_DIGITS - (type.precision or 0))
    size = (abs(micros) + unit // 2) // unit * unit
    return Literal((months, days, -size if micros < 0 else size), type)


def coerce(expr: Expr, type: SqlType) -> Expr:
    """As `cast`, but without a Cast if every value is already one of `type`, as a varchar is a text."""
    return expr if same_values(expr.type, type) and not isinstance(expr, Literal) else cast(expr, type)


def unify(args: Sequence[Expr]) -> tuple[Expr, ...]:
    """Cast all to their common type, as for the branches of CASE; an untyped literal keeps all its decimals."""
    if common_type(map(open_type, args)).kind is Kind.NUMERIC:
        exact = SqlType(Kind.NUMERIC)
        args = [cast(arg, exact) if isinstance(arg, Literal) and isinstance(arg.value, str) else arg for arg in args]
    type = common_type(map(open_type, args))
    return tuple(cast(arg, type) for arg in args)


def _check(source: SqlType, type: SqlType, explicit: bool) -> None:
    if castable(source, type) if explicit else assignable(source, type):
        return
    instead = f"write a cast: ...::{type}" if castable(source, type) else None
    raise UnsupportedSQL(f"cannot cast type {source} to {type}", remedy=instead,
                         code="42846" if explicit else "42804")  # fmt: skip


def _with_digits(expr: Expr, type: SqlType) -> SqlType:
    """`type`, with a precision and scale chosen for a numeric without them."""
    if type.kind is Kind.ARRAY:
        return with_digits(type)
    if type.kind is not Kind.NUMERIC or type.precision is not None:
        return type
    source = expr.type
    if isinstance(expr, Literal) and expr.value is None:
        return as_numeric(source) if source.kind in (*INTEGERS, Kind.NUMERIC) else SqlType(Kind.NUMERIC, 1, 0)
    if isinstance(expr, Literal) and isinstance(expr.value, str) and source.kind in (Kind.UNKNOWN, Kind.TEXT):
        value = parse(expr.value, type)
        assert isinstance(value, Decimal)
        return type_of_decimal(value)
    if isinstance(expr, Literal) and source.kind in INTEGERS:
        return type_of_decimal(Decimal(str(expr.value)))
    if source.kind in (*INTEGERS, Kind.NUMERIC):
        return as_numeric(source)
    return numeric()


def _fold(literal: Literal, type: SqlType, explicit: bool) -> Literal | None:
    """The constant in the other type; None if only the evaluator can convert it."""
    source, value = literal.type, literal.value
    if source.kind is not Kind.UNKNOWN:
        _check(source, type, explicit)
    if value is None:
        return Literal(None, type)
    if type.kind is Kind.UNKNOWN:
        return None
    if is_unseen(value):
        return Literal(value.cast(type, explicit), type)
    to = innermost(type)
    if not explicit and type.kind is Kind.ARRAY and to.kind in STRINGS and to.precision is not None:
        texts = _fold(literal, nested(TEXT, dimensions(type)), explicit)
        return None if texts is None else Literal(_each_fit(texts.value, type), type)
    if source.kind is Kind.UNKNOWN or source.kind in STRINGS:
        assert isinstance(value, str)
        if type.kind in STRINGS:
            return Literal(fit(value, type, truncate=explicit), type)
        return Literal(parse(value, type), type)
    folded = _convert(value, source, type)
    return None if folded is None else Literal(folded, type)


def _each_fit(value: object, type: SqlType) -> object:
    """The texts of an array constant, as long as those of the type may be."""
    if type.element is None:
        return value if value is None else fit(str(value), type, truncate=False)
    assert isinstance(value, list | tuple | None)
    return value if value is None else [_each_fit(one, type.element) for one in value]


def _convert(value: object, source: SqlType, type: SqlType) -> object | None:
    """Convert a constant of a known type to another type; None if only the evaluator can."""
    match value:
        case bool():
            return int(value) if type.kind is Kind.INTEGER else None
        case int() | float() | Decimal() if type.kind in NUMBERS:
            return _number(value, source, type)
        case int() if type.kind is Kind.BOOLEAN:
            return value != 0
        case datetime():
            return _moment(value, type)
        case date() if type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            zone = UTC if type.kind is Kind.TIMESTAMPTZ else None
            return datetime.combine(value, time(), tzinfo=zone)
        case time() if type.kind is Kind.INTERVAL:
            clock = datetime.combine(date(2000, 1, 1), value) - datetime(2000, 1, 1)
            return (0, 0, clock // timedelta(microseconds=1))
        case _:
            return None


def _number(value: int | float | Decimal, source: SqlType, type: SqlType) -> int | float | Decimal:
    if type.kind in INTEGERS:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise UnsupportedSQL(f"{type} out of range: {value}", code="22003")
            return integer_of(round(value), type)
        return integer_of(int(rounded(Decimal(value), 0)), type)
    if type.kind is Kind.NUMERIC:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise UnsupportedSQL(f"numeric has no {value}", remedy="use double precision")
            value = Decimal(f"{value:.{6 if source.kind is Kind.REAL else 15}g}")
        return decimal_of(Decimal(value), type)
    if type.kind is Kind.REAL and math.isfinite(value) and value:
        number = real_of(Fraction(value))
        if number is None:
            raise UnsupportedSQL(f"value out of range for type {type}: {value}", code="22003")
        return number
    assert type.kind in FLOATS
    return float(value)


def _moment(value: datetime, type: SqlType) -> object | None:
    """Convert a timestamp to another date or time type; the time zone is always UTC."""
    match type.kind:
        case Kind.DATE:
            return value.date()
        case Kind.TIME:
            return value.time()
        case Kind.TIMESTAMP:
            return value.replace(tzinfo=None)
        case Kind.TIMESTAMPTZ:
            return value.replace(tzinfo=UTC)
        case _:
            return None
