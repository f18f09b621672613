"""Roots, powers and logarithms of numerics, and functions of whole numbers.

A numeric column has one number of decimals, so a result has as many as the smallest value needs to have 16 significant
digits, as far as 38 digits allow. PostgreSQL gives each value its own number of decimals; the values are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Cast, Expr, Literal
from halfjoin.sql.functions import decimal_places as places
from halfjoin.sql.functions.arithmetic import SIGNIFICANT
from halfjoin.sql.functions.casting import coerce
from halfjoin.sql.functions.coercion import as_numeric, digits
from halfjoin.sql.functions.constants import constants
from halfjoin.sql.functions.signature import NumericResult, Resolve, function
from halfjoin.sql.types import INTEGER, INTEGERS, TEXT, WORKING_DIGITS, Kind, SqlType

_MOST_SCALE = 30  # leaves room for 8 digits before the point in a stored numeric
_EXP_SCALE = 24


def numeric(before: int, scale: int) -> SqlType:
    """The type with so many digits before and after the point, up to 76 in all."""
    return SqlType(Kind.NUMERIC, min(max(before, 0) + scale, WORKING_DIGITS), scale)


def _with_scale(before: int, scale: int) -> SqlType:
    return numeric(before, max(SIGNIFICANT, min(scale, _MOST_SCALE)))


def _of_constants(decimals: Callable[..., int], args: Sequence[Expr]) -> SqlType | None:
    """The type of one result, whose decimals are known; None if an argument is not a constant, or has no result."""
    values = constants(args)
    if values is None:
        return None
    try:
        scale = decimals(*values)
    except ValueError:  # there is no logarithm of zero
        return None
    return SqlType(Kind.NUMERIC, WORKING_DIGITS, scale) if scale < WORKING_DIGITS else None


def root_type(args: Sequence[Expr]) -> SqlType:
    """The least root of a number with s decimals has s/2 zeros after the point."""
    before, scale = digits(args[0].type)
    return _of_constants(places.of_root, args) or _with_scale((before + 1) // 2 + 1,
                                                              max(SIGNIFICANT + (scale + 1) // 2, scale))  # fmt: skip


def logarithm_type(decimals: Callable[..., int]) -> NumericResult:
    """The logarithm of 1 plus a unit of the last decimal is about that unit."""

    def of(args: Sequence[Expr]) -> SqlType:
        scale = max(digits(arg.type)[1] for arg in args)
        return _of_constants(decimals, args) or _with_scale(3 if len(args) == 1 else 3 + scale, SIGNIFICANT + scale)

    return of


def exponential_type(args: Sequence[Expr]) -> SqlType:
    """A constant argument says how many decimals the result has."""
    scale = max(_EXP_SCALE, digits(args[0].type)[1])
    return _of_constants(places.of_exponential, args) or numeric(WORKING_DIGITS - scale, scale)


def power_type(args: Sequence[Expr]) -> SqlType:
    """As many decimals as PostgreSQL gives, at least."""
    scale = max(SIGNIFICANT, *(digits(arg.type)[1] for arg in args))
    return _of_constants(places.of_power, args) or numeric(WORKING_DIGITS - scale, scale)


def _quotient(args: Sequence[Expr]) -> SqlType:
    return SqlType(Kind.NUMERIC, max(1, min(digits(args[0].type)[0] + digits(args[1].type)[1], WORKING_DIGITS)), 0)


def _common(adds: bool) -> NumericResult:
    """The type of a divisor (or a multiple: `adds`) of both."""

    def of(args: Sequence[Expr]) -> SqlType:
        before, after = zip(*(digits(arg.type) for arg in args), strict=True)
        return numeric((sum(before) + max(after)) if adds else max(before), max(after))

    return of


def _counted(name: str) -> Callable[[Resolve, Sequence[Expr]], Expr]:
    def special(resolve: Resolve, args: Sequence[Expr]) -> Expr:
        if not args:
            raise UnsupportedSQL(f"no function {name}()", remedy=f"write {name}(values)", wrong=True)
        return Call(name, tuple(coerce(a, TEXT) if a.type.kind is Kind.UNKNOWN else a for a in args), INTEGER)

    return special


def _scale(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if len(args) != 1 or args[0].type.kind not in (*INTEGERS, Kind.NUMERIC, Kind.UNKNOWN):
        raise UnsupportedSQL("scale takes a numeric", wrong=True)
    if not isinstance(args[0], (Literal, Cast)):
        raise UnsupportedSQL("scale: a numeric column has one number of decimals", remedy="use min_scale(x)")
    value = coerce(args[0], SqlType(Kind.NUMERIC) if args[0].type.kind is Kind.UNKNOWN else as_numeric(args[0].type))
    return resolve("case", (resolve("is null", (value,)), Literal(None, INTEGER), Literal(value.type.scale, INTEGER)))


_WHOLE = ("integer, integer -> integer or error", "bigint, bigint -> bigint or error",
          "numeric, numeric -> numeric or error")  # fmt: skip
_BUCKETS = "{0}, {0}, {0}, integer -> integer or error"

NUMERICS = (
    function("div", "mathematics", "The whole part of a quotient", "numeric, numeric -> numeric or error",
        numeric=_quotient, examples=[("div(9, 4)", "2"), ("div(-9, 4)", "-2"), ("div(7.5, 0.5)", "15"),
        ("div(1, 0)", "ERROR: division by zero")]),
    function("gcd", "mathematics", "The greatest common divisor", *_WHOLE, numeric=_common(False), examples=[
        ("gcd(1071, 462)", "21"), ("gcd(0, 0)", "0"), ("gcd(12.5, 7.5)", "2.5"),
        ("gcd(-2147483648, 0)", "ERROR: integer out of range")]),
    function("lcm", "mathematics", "The least common multiple", *_WHOLE, numeric=_common(True), examples=[
        ("lcm(1071, 462)", "23562"), ("lcm(0, 3)", "0"), ("lcm(1.5, 2)", "6.0"),
        ("lcm(2147483647, 2147483646)", "ERROR: integer out of range")]),
    function("factorial", "mathematics", "The product of all whole numbers up to n", "bigint -> numeric or error",
        numeric=lambda _: SqlType(Kind.NUMERIC, WORKING_DIGITS, 0), examples=[
        ("factorial(5)", "120"), ("factorial(0)", "1"), ("factorial(33)", "8683317618811886495518194401280000000"),
        ("factorial(-1)", "ERROR: factorial of a negative number is undefined")]),
    function("width_bucket", "mathematics", "The number of the bucket, of n between two bounds, or above a bound",
        _BUCKETS.format("numeric"), _BUCKETS.format("double precision"), "any, any[] -> integer or error", examples=[
        ("width_bucket(5.35, 0.024, 10.06, 5)", "3"), ("width_bucket(-1, 0, 10, 5)", "0"),
        ("width_bucket(10, 0, 10, 5)", "6"), ("width_bucket(2, 10, 0, 5)", "5"),
        ("width_bucket(5::double precision, 0, 10, 4)", "3"),
        ("width_bucket(5, 10, 10, 5)", "ERROR: lower bound cannot equal upper bound"),
        ("width_bucket(5, 0, 10, 0)", "ERROR: count must be greater than zero"),
        ("width_bucket(5, ARRAY[1,3,5,7])", "3"), ("width_bucket('b', ARRAY['a','c'])", "1"),
        ("width_bucket(5, ARRAY[1,NULL])", "ERROR: thresholds array must not contain NULLs")]),
    function("scale", "mathematics", "The number of decimals of a constant or a cast", "numeric -> integer",
        special=_scale, examples=[("scale(8.4100)", "4"), ("scale(1::numeric(5,2))", "2")]),
    function("trim_scale", "mathematics", "The value; its text has no zeros at the end", "numeric -> numeric",
        numeric=lambda args: args[0].type, examples=[("trim_scale(8.4100)::text", "8.41"), ("trim_scale(100)", "100"),
        ("trim_scale(1.50) = 1.5", "true")]),
    function("min_scale", "mathematics", "The least number of decimals that the value needs", "numeric -> integer",
        examples=[("min_scale(8.4100)", "2"), ("min_scale(0)", "0"), ("min_scale(1200)", "0")]),
    function("num_nulls", "comparison", "How many arguments are NULL", "any... -> integer",
        special=_counted("num_nulls"), examples=[("num_nulls(1, NULL, 'a')", "1")]),
    function("num_nonnulls", "comparison", "How many arguments are not NULL", "any... -> integer",
        special=_counted("num_nonnulls"), examples=[("num_nonnulls(1, NULL, 'a')", "2")]),
)  # fmt: skip
