"""Functions that make jsonb from values of other types."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import coerce
from halfjoin.sql.functions.coercion import MOMENTS
from halfjoin.sql.functions.padding import padded
from halfjoin.sql.functions.signature import Resolve, function
from halfjoin.sql.types import JSONB, TEXT, Kind


def to_jsonb(expr: Expr) -> Expr:
    """The value as jsonb; an untyped literal is a text. NULL stays NULL."""
    if expr.type.kind is Kind.JSONB:
        return expr
    if isinstance(expr, Literal) and expr.value is None:
        return Literal(None, JSONB)
    value = padded(coerce(expr, TEXT) if expr.type.kind is Kind.UNKNOWN else expr)
    return Call("to_jsonb", (value,), JSONB)


def _to_jsonb(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if len(args) != 1 or args[0].type.kind is Kind.UNKNOWN:
        raise UnsupportedSQL("to_jsonb takes one value of a known type", remedy="cast it: to_jsonb('a'::text)",
                             code="42804")  # fmt: skip
    return to_jsonb(args[0])


def _build_array(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    return Call("jsonb_build_array", tuple(map(to_jsonb, args)), JSONB) if args else Literal("[]", JSONB)


def _build_object(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if len(args) % 2:
        raise UnsupportedSQL("argument list must have even number of elements", code="22023",
                             remedy="the arguments of jsonb_build_object() are keys and values in turn")
    if not args:
        return Literal("{}", JSONB)
    parts = (made for key, value in zip(args[::2], args[1::2], strict=True)
             for made in (key_text(resolve, key), to_jsonb(value)))  # fmt: skip
    return Call("jsonb_build_object", tuple(parts), JSONB)


def key_text(resolve: Resolve, expr: Expr) -> Expr:
    """A value as a key of an object."""
    if expr.type.kind in (Kind.ARRAY, Kind.RECORD, Kind.JSON, Kind.JSONB):
        raise UnsupportedSQL("key value must be scalar, not array, composite, or json", code="22023")
    if expr.type.kind in MOMENTS:
        return resolve("#>>", (to_jsonb(expr), Literal([], resolve("array", (Literal("", TEXT),)).type)))
    return coerce(padded(expr), TEXT)


JSONB_MADE = (
    function("to_jsonb", "jsonb", "The value as jsonb: an array, a number, a boolean, or else a string",
        "any -> jsonb or error", special=_to_jsonb, evaluator="arrow, duckdb", examples=[
        ("to_jsonb(ARRAY['a', NULL])", '["a", null]'), ("to_jsonb('a\"b'::text)", '"a\\"b"'),
        ("to_jsonb(1e20::double precision)", "100000000000000000000"), ("to_jsonb('NaN'::real)", '"NaN"'),
        ("to_jsonb('2024-01-01 10:00:00.5'::timestamp)", '"2024-01-01T10:00:00.5"'),
        ("to_jsonb('2024-01-01 10:00+02'::timestamptz)", '"2024-01-01T08:00:00+00:00"'),
        ("to_jsonb('2024-01-01'::date)", '"2024-01-01"'), ("to_jsonb('a'::char(3))", '"a  "'),
        ("to_jsonb('{a}'::char(3)[])", '["a  "]'),
        ("to_jsonb(NULL::integer)", None), ("to_jsonb(true)", "true"), ("to_jsonb('\\x41'::bytea)", '"\\\\x41"')]),
    function("jsonb_build_array", "jsonb", "An array of its arguments", "any... -> jsonb or error",
        special=_build_array, examples=[
        ("jsonb_build_array(1, NULL, 'a', ARRAY[true], '{\"b\": 1}'::jsonb)", '[1, null, "a", [true], {"b": 1}]'),
        ("jsonb_build_array()", "[]")]),
    function("jsonb_build_object", "jsonb", "An object of keys and values in turn", "any... -> jsonb or error",
        special=_build_object, examples=[("jsonb_build_object('bb', 1, 'a', NULL)", '{"a": null, "bb": 1}'),
        ("jsonb_build_object('a', 1, 'a', 2)", '{"a": 2}'), ("jsonb_build_object(1, date '2024-01-01')",
        '{"1": "2024-01-01"}'), ("jsonb_build_object(NULL, 1)", "ERROR: argument 1: key must not be null")]),
    function("jsonb_object", "jsonb", "An object of texts: keys and values in turn, or keys and values",
        "text[] -> jsonb or error", "text[], text[] -> jsonb or error", examples=[
        ("jsonb_object('{a,1,b,NULL}')", '{"a": "1", "b": null}'), ("jsonb_object('{a,b}', '{1,2}')",
        '{"a": "1", "b": "2"}'), ("jsonb_object('{a,b}', '{1}')", "ERROR: mismatched array dimensions"),
        ("jsonb_object('{a}')", "ERROR: array must have even number of elements"),
        ("jsonb_object('{NULL,1}')", "ERROR: null value not allowed for object key")]),
)  # fmt: skip
