"""Functions that make json from values of other types, with PostgreSQL's blanks: `{"a" : 1}`, but `{"a":1}` of a row.

A row is an object of its members.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import cast, coerce
from halfjoin.sql.functions.jsonb_made import key_text
from halfjoin.sql.functions.padding import padded
from halfjoin.sql.functions.record_values import is_record, members
from halfjoin.sql.functions.records import if_there
from halfjoin.sql.functions.signature import Resolve, function
from halfjoin.sql.functions.sum_results import INTERNAL
from halfjoin.sql.types import BOOLEAN, JSON, TEXT, Kind

LINES = ", \n "  # between the elements of json_agg that are arrays or rows
_PRETTY = ",\n "  # between those of array_to_json and row_to_json, if one asks for lines


def to_json(resolve: Resolve, expr: Expr, separator: str = ",") -> Expr:
    """The value as json; an untyped literal is a text. NULL stays NULL. `separator`: between elements or members."""
    if is_record(expr):
        parts = [part for (name, _), one in zip(expr.type.fields, members(expr), strict=True)
                 for part in (Literal(name, TEXT), to_json(resolve, one))]  # fmt: skip
        return if_there(resolve, expr, _object(parts, separator, ":"))
    if expr.type.kind is Kind.JSON:
        return expr
    if isinstance(expr, Literal) and expr.value is None:
        return Literal(None, JSON)
    value = padded(coerce(expr, TEXT) if expr.type.kind is Kind.UNKNOWN else expr)
    return Call("to_json", (value, Literal(separator, TEXT)), JSON)


def _object(parts: Sequence[Expr], between: str, after: str) -> Expr:
    if not parts:
        return Literal("{}", JSON)
    return Call("json object", (Literal(between, TEXT), Literal(after, TEXT), *parts), JSON)


def _known(name: str, args: Sequence[Expr]) -> Expr:
    """The first argument, whose type is known."""
    if not args or args[0].type.kind is Kind.UNKNOWN:
        raise UnsupportedSQL(f"{name} takes one value of a known type", remedy=f"cast it: {name}('a'::text)",
                             code="42804")  # fmt: skip
    return args[0]


def _to_json(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    value = _known("to_json", args)
    if len(args) != 1:
        raise UnsupportedSQL("to_json takes one value", wrong=True)
    return to_json(resolve, value)


def _array_to_json(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    return _pretty(resolve, "array_to_json", args, _known("array_to_json", args).type.kind is Kind.ARRAY, "an array")


def _row_to_json(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    return _pretty(resolve, "row_to_json", args, bool(args) and is_record(args[0]), "a row")


def _pretty(resolve: Resolve, name: str, args: Sequence[Expr], fits: bool, takes: str) -> Expr:
    """The value as json, in lines if the second argument is true."""
    asked = cast(args[1], BOOLEAN) if len(args) == 2 else Literal(False, BOOLEAN)
    if not fits or len(args) > 2:
        raise UnsupportedSQL(f"{name} takes {takes}, and whether to write it in lines", wrong=True)
    plain = to_json(resolve, args[0])
    if isinstance(asked, Literal) and isinstance(asked.value, bool):
        return to_json(resolve, args[0], _PRETTY) if asked.value else plain
    return resolve("case", (asked, to_json(resolve, args[0], _PRETTY), resolve("is false", (asked,)), plain))


def _build_array(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    values = tuple(to_json(resolve, arg) for arg in args)
    return Call("json_build_array", values, JSON) if args else Literal("[]", JSON)


def _build_object(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if len(args) % 2:
        raise UnsupportedSQL("argument list must have even number of elements", code="22023",
                             remedy="the arguments of json_build_object() are keys and values in turn")
    parts = [made for key, value in zip(args[::2], args[1::2], strict=True)
             for made in (key_text(resolve, key), to_json(resolve, value))]  # fmt: skip
    return _object(parts, ", ", " : ")


JSON_MADE = (
    function("to_json", "json", "The value as json: an array, an object, a number, a boolean, or else a string",
        "any -> json or error", special=_to_json, evaluator="arrow, duckdb", examples=[
        ("to_json(ARRAY[ARRAY[1, 2], ARRAY[3, NULL]])", "[[1,2],[3,null]]"), ("to_json('a\"b'::text)", '"a\\"b"'),
        ("to_json(1.50)", "1.50"), ("to_json('NaN'::real)", '"NaN"'), ("to_json(NULL::integer)", None),
        ("to_json('2024-01-01 10:00:00.5'::timestamp)", '"2024-01-01T10:00:00.5"'),
        ("to_json('{\"b\": 1,  \"a\": 2}'::json)", '{"b": 1,  "a": 2}'), ("to_json(1e20::double precision)", "1e+20"),
        ("to_json('{\"b\": 1,  \"a\": 2}'::jsonb)", '{"a": 2, "b": 1}'),
        ("to_json(ROW(1, 'a'))", '{"f1":1,"f2":"a"}')]),
    function("array_to_json", "json", "An array as json, in lines if you like", "any[] -> json or error",
        "any[], boolean -> json or error", special=_array_to_json, examples=[
        ("array_to_json(ARRAY['a', NULL])", '["a",null]'), ("array_to_json(ARRAY[1, 2], true)", "[1,\n 2]")]),
    function("row_to_json", "json", "A row as json, in lines if you like", "any -> json or error",
        "any, boolean -> json or error", special=_row_to_json, examples=[
        ("row_to_json(ROW(1, 'a', ROW(NULL)))", '{"f1":1,"f2":"a","f3":{"f1":null}}'),
        ("row_to_json(ROW(1, 'a'), true)", '{"f1":1,\n "f2":"a"}')]),
    function("json_build_array", "json", "An array of its arguments", "any... -> json or error", special=_build_array,
        examples=[("json_build_array(1, NULL, 'a', ARRAY[true], ROW(1.0))", '[1, null, "a", [true], {"f1":1.0}]'),
        ("json_build_array()", "[]")]),
    function("json_build_object", "json", "An object of keys and values in turn", "any... -> json or error",
        special=_build_object, examples=[("json_build_object('bb', 1, 'a', NULL)", '{"bb" : 1, "a" : null}'),
        ("json_build_object('a', 1, 'a', '[1,  2]'::json)", '{"a" : 1, "a" : [1,  2]}'),
        ("json_build_object(1, date '2024-01-01')", '{"1" : "2024-01-01"}'),
        ("json_build_object(NULL, 1)", "ERROR: argument 1 cannot be null")]),
    function("json_object", "json", "An object of texts: keys and values in turn, or keys and values",
        "text[] -> json or error", "text[], text[] -> json or error", examples=[
        ("json_object('{a,1,b,NULL}')", '{"a" : "1", "b" : null}'),
        ("json_object('{a,b}', '{1,2}')", '{"a" : "1", "b" : "2"}'),
        ("json_object('{a,b}', '{1}')", "ERROR: mismatched array dimensions"),
        ("json_object('{NULL,1}')", "ERROR: null value not allowed for object key")]),
)  # fmt: skip

JSON_INTERNAL = (
    function("json object", INTERNAL, "The object of keys and texts of JSON, with what is between them",
             "text, text, any... -> json or error"),
    function("json in line", INTERNAL, "The value itself, an element of json_agg in a line of its own", "json -> json"),
    function("json pair", INTERNAL, "A key and a value, as an object has them; NULL for a NULL key",
             "text, json -> text or error"),
    function("json of pairs", INTERNAL, "The object of such pairs", "text[] -> json or error"),
)  # fmt: skip
