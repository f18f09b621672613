"""Functions that write numbers, dates and intervals by a pattern, and read numbers by one."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import cast, coerce
from halfjoin.sql.functions.coercion import NUMBERS
from halfjoin.sql.functions.date_format import interval_tokens, tokens
from halfjoin.sql.functions.number_format import number_format
from halfjoin.sql.functions.signature import Resolve, function
from halfjoin.sql.types import INTEGER, INTERVAL, STRINGS, TEXT, TIMESTAMPTZ, WORKING_DIGITS, Kind, SqlType


def _to_char(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if len(args) != 2:
        raise UnsupportedSQL("to_char takes a value and a pattern", code="42883")
    value, pattern = args
    if value.type.kind is Kind.DATE:
        value = cast(value, TIMESTAMPTZ)  # PostgreSQL prefers it to timestamp: TZ is UTC, and OF +00
    if value.type.kind is Kind.TIME:
        value = cast(value, INTERVAL)
    constant = pattern.value if isinstance(pattern, Literal) and isinstance(pattern.value, str) else None
    if value.type.kind in NUMBERS:
        if constant is not None:
            number_format(constant)
        number = cast(value, INTEGER) if value.type.kind is Kind.SMALLINT else value
        return Call("to_char", (number, coerce(pattern, TEXT)), TEXT)
    if value.type.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL):
        raise UnsupportedSQL(f"to_char of {value.type}",
                             remedy="give a date, a time, a timestamp, an interval or a number")
    if constant is not None:
        (interval_tokens if value.type.kind is Kind.INTERVAL else tokens)(constant)
    return Call("to_char", (value, coerce(pattern, TEXT)), TEXT)


def _to_number(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    """The pattern says how many digits the number has."""
    if len(args) != 2 or any(arg.type.kind not in (*STRINGS, Kind.UNKNOWN) for arg in args):
        raise UnsupportedSQL("to_number takes a text and a pattern", wrong=True)
    text, pattern = coerce(args[0], TEXT), coerce(args[1], TEXT)
    if not isinstance(pattern, Literal):
        raise UnsupportedSQL("to_number with a pattern that is not constant", remedy="write it as a literal")
    found = number_format(str(pattern.value or ""))
    for word in ("EEEE", "RN"):
        if word in found.words:
            raise UnsupportedSQL(f'"{word}" not supported for input', wrong=True, code="0A000")
    scale = found.after + found.shift
    type = SqlType(Kind.NUMERIC, max(min(found.before + scale, WORKING_DIGITS), 1), min(scale, WORKING_DIGITS))
    return Call("to_number", (text, pattern), type)


FORMATTING = (
    function("to_char", "dates", "Formats by a pattern: numbers by 9, 0, D, ..., dates and intervals by YYYY, MM, ...",
        "timestamp, text -> text", "timestamptz, text -> text", "interval, text -> text or error",
        "numeric, text -> text or error", "double precision, text -> text or error", special=_to_char, examples=[
        ("to_char(timestamp '2002-04-20 17:31:12.66', 'HH12:MI:SS')", "05:31:12"),
        ("to_char(date '2024-01-05', 'YYYY-MM-DD')", "2024-01-05"),
        ("to_char(1485.5, '9G999D99')", " 1,485.50"), ("to_char(-0.1, 'FM990.0')", "-0.1"),
        ("to_char(482, 'RN')", "       CDLXXXII"), ("to_char('NaN'::float8, '9999.9')", "  NaN"),
        ("to_char('-Infinity'::float8, 'S99999999')", "-Infinity"), ("to_char('Infinity'::float8, '9.9')", " #.#"),
        ("to_char(interval '3 days 26:02:12', 'DD HH24:MI:SS')", "03 26:02:12"),
        ("to_char(interval '-14 months 5 days -00:00:01.5', 'YYYY FMMM DDD SS.MS')", "-0001 -2 -415 -01.-500"),
        ("to_char(time '12:34:56.789', 'HH12:MI:SS.MS am')", "12:34:56.789 pm"),
        ("to_char(interval '1 day', 'Month')",
         'ERROR: invalid format specification for an interval value: "Month"'),
        ("to_char(timestamp '2024-01-05 00:07:09.012345', 'Dy, DD Mon YYYY HH24:MI:SS.US')",
         "Fri, 05 Jan 2024 00:07:09.012345"),
        ("to_char(timestamp '2024-09-05 12:00', 'FMDay, FMDD FMMonth, \"at\" HH12 AM')",
         "Thursday, 5 September, at 12 PM"),
        ("to_char(date '2024-12-30', 'IYYY-IW Q DDD')", "2025-01 4 365")]),
    function("to_number", "mathematics", "Reads a number by a constant pattern, as to_char writes it",
        "text, text -> numeric or error", special=_to_number, examples=[
        ("to_number('12,454.8-', '99G999D9S')", "-12454.8"), ("to_number('<12>', '99PR')", "-12"),
        ("to_number('$1,234.50', 'L9,999.99')", "1234.50"), ("to_number('125', '9V99') = 1.25", "true"),
        ("to_number('x', '9')", 'ERROR: invalid input syntax for type numeric: " "')]),
)  # fmt: skip
