"""Rounding, roots, powers and logarithms."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions import decimal_places as places
from halfjoin.sql.functions.coercion import digits
from halfjoin.sql.functions.numerics import exponential_type, logarithm_type, power_type, root_type
from halfjoin.sql.functions.signature import Function, NumericResult, function
from halfjoin.sql.types import WORKING_DIGITS, Kind, SqlType

_SIGNED = ("smallint -> smallint or error", "integer -> integer or error", "bigint -> bigint or error")


def round_digits(args: Sequence[Expr]) -> int:
    """The constant second argument of round and trunc; 0 if it is missing or NULL."""
    if len(args) < 2 or not isinstance(args[1], Literal) or args[1].value is None:
        return 0
    return int(str(args[1].value))


def _whole(args: Sequence[Expr]) -> SqlType:
    """A numeric without decimals; it has one more digit if rounding can carry."""
    before, after = digits(args[0].type)
    return SqlType(Kind.NUMERIC, min(before + (after > 0), WORKING_DIGITS) or 1, 0)


def _rounded(args: Sequence[Expr]) -> SqlType:
    """The decimals that a constant names; as many as the argument has if they differ from row to row."""
    before, after = digits(args[0].type)
    if len(args) == 2 and not isinstance(args[1], Literal):
        return SqlType(Kind.NUMERIC, min(before + 1 + after, WORKING_DIGITS), after)
    scale = max(round_digits(args), 0)
    precision = before + scale + (round_digits(args) < after)
    return SqlType(Kind.NUMERIC, max(min(precision, WORKING_DIGITS), scale, 1), scale)


def _constant_digits(args: Sequence[Expr]) -> None:
    if len(args) < 2:
        return
    if not isinstance(args[1], Literal):
        return
    if isinstance(args[1].value, int) and not -WORKING_DIGITS < args[1].value <= 38:
        raise UnsupportedSQL(f"rounding to {args[1].value} digits", remedy="give at most 38")


def _real(name: str, doc: str, numeric: NumericResult, examples: Sequence[tuple[str, str | None]],
          *more: str, arity: int = 1) -> Function:
    """A function of floats, and of numerics."""
    kinds = ("double precision", "numeric")
    signatures = [f"{', '.join([kind] * arity)} -> {kind} or error" for kind in kinds]
    return function(name, "mathematics", doc, *signatures, *more, examples=examples, numeric=numeric)


MATHEMATICS = (
    function("abs", "mathematics", "Absolute value", *_SIGNED, "numeric -> numeric", "real -> real",
        "double precision -> double precision", numeric=lambda args: args[0].type, examples=[
        ("abs(-5)", "5"), ("abs(-2.50)", "2.50"), ("abs((-32768)::smallint)", "ERROR: smallint out of range"),
        ("abs('-Infinity'::double precision)", "Infinity")]),
    function("sign", "mathematics", "-1, 0 or 1", "numeric -> numeric", "double precision -> double precision",
        numeric=lambda _: SqlType(Kind.NUMERIC, 1, 0), examples=[
        ("sign(-8.4)", "-1"), ("sign(0)", "0"), ("sign(3.5::double precision)", "1")]),
    function("ceil", "mathematics", "The nearest whole number that is not less", "numeric -> numeric",
        "double precision -> double precision", numeric=_whole, examples=[
        ("ceil(42.2)", "43"), ("ceil(-42.8)", "-42"), ("ceil(9.9)", "10"), ("ceil(-0.5::double precision)", "-0")]),
    function("floor", "mathematics", "The nearest whole number that is not greater", "numeric -> numeric",
        "double precision -> double precision", numeric=_whole, examples=[
        ("floor(42.8)", "42"), ("floor(-42.8)", "-43"), ("floor(-9.9)", "-10"),
        ("floor(2.7::double precision)", "2")]),
    function("round", "mathematics", "To n decimals, numeric halves away from zero, float halves to the even number",
        "numeric -> numeric", "double precision -> double precision", "numeric, integer -> numeric",
        numeric=_rounded, check=_constant_digits, examples=[
        ("round(2.5)", "3"), ("round(-2.5)", "-3"), ("round(2.5::double precision)", "2"),
        ("round(42.4382, 2)", "42.44"),
        ("round(1234.56, -1)", "1230"), ("round(1.5, 3)", "1.500"), ("round(9.99, 1)", "10.0"), ("round(5)", "5"),
        ("round(0.5::double precision)", "0"), ("round(1.005, 2)", "1.01")]),
    function("trunc", "mathematics", "To n decimals, towards zero", "numeric -> numeric",
        "double precision -> double precision", "numeric, integer -> numeric", numeric=_rounded,
        check=_constant_digits, examples=[
        ("trunc(42.8)", "42"), ("trunc(-42.8)", "-42"), ("trunc(42.4382, 2)", "42.43"),
        ("trunc(-2.7::double precision)", "-2"), ("trunc(1299.9, -2)", "1200")]),
    _real("sqrt", "Square root", root_type, [
        ("sqrt(4)", "2"), ("sqrt(2)", "1.4142135623730951"), ("sqrt(2.0)", "1.414213562373095"), ("|/ 25", "5"),
        ("sqrt(-1)", "ERROR: cannot take square root of a negative number")]),
    _real("power", "To the power of", power_type, arity=2, examples=[
        ("power(2, 10)", "1024"), ("power(2, -1)", "0.5"), ("power(0, 0)", "1"),
        ("power(2.0, 3)", "8.0000000000000000"),
        ("power(0, -1)", "ERROR: zero raised to a negative power is undefined"),
        ("power(-8, 0.5::double precision)",
         "ERROR: a negative number raised to a non-integer power yields a complex result"),
        ("power(10, 400)", "ERROR: value out of range: overflow")]),
    _real("^", "To the power of", power_type, arity=2, examples=[
        ("2 ^ 3", "8"), ("2 ^ 3 ^ 2", "64"), ("2.5 ^ 2", "6.2500000000000000")]),
    function("cbrt", "mathematics", "Cube root", "double precision -> double precision", examples=[
        ("cbrt(-8)", "-2"), ("||/ 8", "2")]),
    _real("exp", "e to the power of", exponential_type, [
        ("exp(0)", "1"), ("exp(1)", "2.718281828459045"),
        ("exp(-50.0)", "0.0000000000000000000001928749847963918"),
        ("exp(1000)", "ERROR: value out of range: overflow"),
        ("exp(-1000)", "ERROR: value out of range: underflow")]),
    _real("ln", "Natural logarithm", logarithm_type(places.of_natural), [
        ("ln(1)", "0"), ("ln(2)", "0.6931471805599453"), ("ln(2.0)", "0.6931471805599453"),
        ("ln(0)", "ERROR: cannot take logarithm of zero"),
        ("ln(-1)", "ERROR: cannot take logarithm of a negative number")]),
    _real("log", "Logarithm to base 10, or to the base of the first argument",
        logarithm_type(places.of_logarithm), [
        ("log(100)", "2"), ("log(2, 64)", "6.0000000000000000"), ("log(100.0)", "2.0000000000000000"),
        ("log(1.0, 5)", "ERROR: division by zero"),
        ("log(0)", "ERROR: cannot take logarithm of zero")], "numeric, numeric -> numeric or error"),
)  # fmt: skip
