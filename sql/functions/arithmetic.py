"""Arithmetic operators: integers that can overflow, exact numerics, floats by IEEE 754."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.coercion import digits
from halfjoin.sql.functions.signature import Function, function
from halfjoin.sql.types import INTEGERS, STORED_DIGITS, WORKING_DIGITS, Kind, SqlType

_ARITHMETIC = (
    "smallint, smallint -> smallint or error",
    "integer, integer -> integer or error",
    "bigint, bigint -> bigint or error",
    "numeric, numeric -> numeric or error",
    "real, real -> real or error",
    "double precision, double precision -> double precision or error",
)
SIGNIFICANT = 16  # the fewest significant digits of a quotient
_BIGINT_DIGITS = 19
_LEAST_SCALE, _MOST_DIGITS = 20, 32  # of a column of quotients: decimals, and digits unless the decimals are the least


def _needed(name: str, args: Sequence[Expr]) -> tuple[int, int]:
    """The digits before and after the point that every result on these numeric argument types fits into."""
    before, after = zip(*(digits(arg.type) for arg in args), strict=True)
    match name:
        case "+" | "-":
            return max(before) + 1, max(after)
        case "*":
            return sum(before) + 1, sum(after)
        case "/":
            return before[0] + after[1], division_scale(before[0] + after[1], after[0], digits(args[1].type))
        case _:  # remainder
            return min(before[0] + after[0], before[1] + after[1]), max(after)


def division_scale(before: int, after: int, divisor: tuple[int, int]) -> int:
    """The decimals of a column of quotients, which has so many digits before the point.

    PostgreSQL gives each quotient its own decimals. A column has the most that any of its quotients needs: 16 and those
    of the least dividend over the greatest divisor, in groups of 4. They end at 32 digits in all, so that a stored
    column has room for what is computed from them, but not below 20 decimals, which hold all quotients from 0.0001 up;
    or 19, so that the average of any bigints fits.
    """
    needed = SIGNIFICANT + 4 * (-(-after // 4) - (-divisor[0] // 4))
    least = STORED_DIGITS - before if before == _BIGINT_DIGITS else _LEAST_SCALE
    return max(least, after, divisor[1], min(needed, _MOST_DIGITS - before))


def _digits_of(name: str) -> Callable[[Sequence[Expr]], SqlType]:
    """The result type of a numeric operator: all decimals, and up to 76 digits in total."""

    def numeric(args: Sequence[Expr]) -> SqlType:
        before, scale = _needed(name, args)
        if scale > WORKING_DIGITS:
            raise UnsupportedSQL(f"a numeric with {scale} decimals", remedy="round() the operands to fewer decimals")
        return SqlType(Kind.NUMERIC, min(max(before + scale, 1), WORKING_DIGITS), scale)

    return numeric


def _has_room(name: str) -> Callable[[Sequence[Expr]], bool]:
    """Whether a call cannot fail: a numeric result always fits, and a divisor is a constant other than 0 and -1."""

    def safe(args: Sequence[Expr]) -> bool:
        if name in ("/", "%") and not _constant_divisor(args):
            return False
        if args[0].type.kind is not Kind.NUMERIC:
            return name in ("/", "%") and args[0].type.kind in INTEGERS
        return sum(_needed(name, args)) <= WORKING_DIGITS

    return safe


def _constant_divisor(args: Sequence[Expr]) -> bool:
    """Whether the divisor is a constant other than 0, and other than -1, which makes the least integer overflow."""
    divisor = args[1]
    return isinstance(divisor, Literal) and divisor.value is not None and divisor.value not in (0, -1)


def _operator(name: str, doc: str, examples: Sequence[tuple[str, str | None]], *more: str) -> Function:
    return function(name, "arithmetic", doc, *_ARITHMETIC[: 4 if name == "%" else 6], *more, examples=examples,
                    numeric=_digits_of(name), safe=_has_room(name))  # fmt: skip


ARITHMETIC = (
    _operator("+", "Sum; also of dates and intervals", [
        ("1 + 2", "3"), ("2147483647 + 1", "ERROR: integer out of range"), ("1.10 + 2.5", "3.60"), ("1 + NULL", None),
        ("9223372036854775807 + 1", "ERROR: bigint out of range"),
        ("0.1::double precision + 0.2", "0.30000000000000004"),
        ("1::real + 1", "2")],
        "date, integer -> date or error", "integer, date -> date or error", "date, time -> timestamp or error",
        "time, date -> timestamp or error",
        "date, interval -> timestamp or error", "interval, date -> timestamp or error",
        "timestamp, interval -> timestamp or error", "interval, timestamp -> timestamp or error",
        "timestamptz, interval -> timestamptz or error", "interval, timestamptz -> timestamptz or error",
        "time, interval -> time", "interval, time -> time", "interval, interval -> interval or error"),
    _operator("-", "Difference; also of dates and intervals", [
        ("1 - 2", "-1"), ("(-32768)::smallint - 1::smallint", "ERROR: smallint out of range"), ("2.5 - 1.25", "1.25")],
        "date, integer -> date or error", "date, date -> integer", "date, interval -> timestamp or error",
        "timestamp, timestamp -> interval or error", "timestamptz, timestamptz -> interval or error",
        "timestamp, interval -> timestamp or error", "timestamptz, interval -> timestamptz or error",
        "time, time -> interval", "time, interval -> time", "interval, interval -> interval or error"),
    _operator("*", "Product", [
        ("3 * 4", "12"), ("1.5 * 2.25", "3.375"), ("65536 * 65536", "ERROR: integer out of range"),
        ("-2 * 1.0", "-2.0"),
        ("1e300::double precision * 1e300::double precision", "ERROR: value out of range: overflow")],
        "interval, double precision -> interval or error", "double precision, interval -> interval or error"),
    _operator("/", "Quotient; integers drop the fraction, numerics have at least 16 significant digits", [
        ("7 / 2", "3"), ("-7 / 2", "-3"), ("1 / 0", "ERROR: division by zero"), ("7.0 / 2", "3.5000000000000000"),
        ("1 / 8.0", "0.12500000000000000000"), ("1.0 / 0", "ERROR: division by zero"),
        ("1::double precision / 0", "ERROR: division by zero"), ("7::double precision / 2", "3.5"),
        ("(-2147483648)::integer / (-1)", "ERROR: integer out of range")],
        "interval, double precision -> interval or error"),
    _operator("%", "Remainder, with the sign of the dividend", [
        ("7 % 3", "1"), ("-7 % 3", "-1"), ("7 % -3", "1"), ("7 % 0", "ERROR: division by zero"), ("-7.5 % 2", "-1.5"),
        ("(-9223372036854775808)::bigint % (-1)::bigint", "0")]),
    function("neg", "arithmetic", "Minus", "smallint -> smallint or error", "integer -> integer or error",
        "bigint -> bigint or error", "numeric -> numeric", "real -> real", "double precision -> double precision",
        "interval -> interval", numeric=lambda args: args[0].type, examples=[
        ("- (5)", "-5"), ("- (-2.50)", "2.50"), ("- (-2147483648)::integer", "ERROR: integer out of range"),
        ("- ('0'::double precision)", "-0")]),
)  # fmt: skip
