"""Comparisons. Text compares by code point; NaN is equal to itself and above all numbers."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import coerce, unify
from halfjoin.sql.functions.coercion import common_type, comparison_type
from halfjoin.sql.functions.signature import Resolve, function
from halfjoin.sql.types import BOOLEAN, FLOATS, INTEGERS, STRINGS, Kind, SqlType
from halfjoin.sql.unseen import is_unseen

_SAME = "any, any -> boolean"


def _in(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    """`in` over literals; each item that is not constant becomes an `=`, joined by OR."""
    value, *items = args
    if not items:
        raise UnsupportedSQL("IN of an empty list", remedy="write false")
    type = comparison_type([arg.type for arg in args])
    if type.kind is Kind.JSON:
        return resolve("=", args[:2])  # which refuses it
    if type.kind in STRINGS or (type.kind in FLOATS and _shared(value, items).kind is Kind.REAL):
        return _in_shared(resolve, value, items)
    if type.kind is Kind.NUMERIC:
        type = SqlType(Kind.NUMERIC)
    value, *items = (_widened(arg, type) if type.kind in INTEGERS else coerce(arg, type) for arg in args)
    listed = type.kind not in (Kind.ARRAY, Kind.INTERVAL)
    constant = [item for item in items if listed and isinstance(item, Literal)]
    others = [resolve("=", (value, item)) for item in items if not (listed and isinstance(item, Literal))]
    found = [Call("in", (value, *constant), BOOLEAN)] if len(constant) > 1 else [
        resolve("=", (value, item)) for item in constant]
    parts = [*found, *others]
    return parts[0] if len(parts) == 1 else resolve("or", parts)


def _widened(arg: Expr, type: SqlType) -> Expr:
    """A value as one of the widest integer type. A list may have many constants, which are the same numbers there."""
    if isinstance(arg, Literal) and arg.type.kind in INTEGERS and not is_unseen(arg.value):
        return Literal(arg.value, type)
    return coerce(arg, type)


def _in_shared(resolve: Resolve, value: Expr, items: Sequence[Expr]) -> Expr:
    """IN over texts, and reals: several constants get a common type before they are compared, so that a real is
    IN (0.1, 0.2) but not = 0.1; each other item is compared in its own type."""
    constant = [item for item in items if isinstance(item, Literal)]
    several = len(constant) > 1
    parts = [resolve("=", (value, item)) for item in items if not (several and isinstance(item, Literal))]
    if several:
        type = comparison_type([value.type, _shared(value, items)])
        found = (coerce(item, type) for item in unify([Literal(None, value.type), *constant])[1:])
        parts.insert(0, Call("in", (coerce(value, type), *found), BOOLEAN))
    return parts[0] if len(parts) == 1 else resolve("or", parts)


def _shared(value: Expr, items: Sequence[Expr]) -> SqlType:
    """The common type of the value and the constants."""
    return common_type([value.type, *(item.type for item in items if isinstance(item, Literal))])


COMPARISON = (
    function("=", "comparison", "Equal", _SAME, evaluator="arrow, duckdb", examples=[
        ("1 = 1.0", "true"), ("'a' = 'a '", "false"), ("'NaN'::double precision = 'NaN'::double precision", "true"),
        ("NULL = 1", None), ("true = false", "false"), ("'2024-01-01'::date = '2024-01-01 00:00'::timestamp", "true"),
        ("16777217 = 16777216::real", "false")]),
    function("<>", "comparison", "Not equal", _SAME, evaluator="arrow, duckdb", examples=[
        ("1 <> 2", "true"), ("'NaN'::real <> 'NaN'::real", "false"), ("1 <> NULL", None)]),
    function("<", "comparison", "Less", _SAME, evaluator="arrow, duckdb", examples=[
        ("'B' < 'a'", "true"), ("1 < 'NaN'::double precision", "true"), ("false < true", "true"),
        ("1.10 < 1.2", "true"),
        ("interval '1 month' < interval '31 days'", "true"), ("ARRAY[1,2] < ARRAY[1,3]", "true"),
        ("ARRAY[1] < ARRAY[1,NULL]", "true")]),
    function("<=", "comparison", "Less or equal", _SAME, evaluator="arrow, duckdb", examples=[
        ("2 <= 2", "true"), ("interval '1 month' <= interval '30 days'", "true"), ("'é' <= 'z'", "false")]),
    function(">", "comparison", "Greater", _SAME, evaluator="arrow, duckdb", examples=[
        ("'NaN'::double precision > 'Infinity'::double precision", "true"), ("2.50 > 2.5", "false")]),
    function(">=", "comparison", "Greater or equal", _SAME, evaluator="arrow, duckdb", examples=[
        ("2 >= 3", "false"), ("'NaN'::real >= 1", "true")]),
    function("is distinct from", "comparison", "Not equal, where NULL is a value like others", _SAME,
        evaluator="arrow, duckdb", examples=[
        ("1 IS DISTINCT FROM NULL", "true"), ("NULL::int IS DISTINCT FROM NULL", "false"),
        ("1 IS DISTINCT FROM 1", "false")]),
    function("is not distinct from", "comparison", "Equal, where NULL is a value like others", _SAME,
        evaluator="arrow, duckdb", examples=[
        ("1 IS NOT DISTINCT FROM NULL", "false"), ("NULL::int IS NOT DISTINCT FROM NULL", "true"),
        ("'x' IS NOT DISTINCT FROM 'x'", "true")]),
    function("in", "comparison", "Equal to one of a list", "any, any... -> boolean", special=_in, examples=[
        ("2 IN (1, 2)", "true"), ("3 IN (1, NULL)", None), ("1 IN (1, NULL)", "true"), ("NULL IN (1, 2)", None),
        ("1.5 IN (1, 1.50)", "true"), ("'a' IN ('b', 'c')", "false"), ("3 NOT IN (1, 2)", "true"),
        ("0::double precision IN ('-0'::double precision, 1)", "true"), ("0.1::real IN (0.1, 0.2)", "true"),
        ("0.1::real IN (0.1)", "false")]),
)  # fmt: skip
