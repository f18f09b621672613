"""Operators and functions of jsonb: parts, tests and changes of a value.

Operators that other types have as well go by the name `jsonb` and the operator here; `resolve` chooses between them.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import coerce
from halfjoin.sql.functions.json import extracting
from halfjoin.sql.functions.signature import Function, Resolve, Special, function
from halfjoin.sql.functions.sum_results import INTERNAL
from halfjoin.sql.types import BOOLEAN, INTEGER, JSONB, STRINGS, TEXT, Kind, SqlType

_SHARED = ("-", "||", "@>", "<@")  # operators that other types have, too


def of_jsonb(name: str, args: Sequence[Expr]) -> str:
    """The function that an operator means, which differs if an argument is a jsonb."""
    kinds = {arg.type.kind for arg in args}
    if Kind.JSONB in kinds and name in _SHARED and (name != "||" or kinds <= {Kind.JSONB, Kind.UNKNOWN}):
        return f"jsonb {name}"
    return name


def _get(name: str) -> Special:
    """`j -> 'a' -> 0` is one call, with all its steps. Of a json the first `->` may fail, also where a later step is
    NULL, so only constants are steps of one call."""

    def special(resolve: Resolve, args: Sequence[Expr]) -> Expr:
        if len(args) != 2 or args[0].type.kind not in (Kind.JSON, Kind.JSONB) or not _is_step(args[1].type):
            types = ["unknown literal" if arg.type.kind is Kind.UNKNOWN else str(arg.type) for arg in args]
            raise UnsupportedSQL(f"no operator {f' {name} '.join(types)}",
                                 remedy="the left side is a json or jsonb, the right side a text or an integer",
                                 wrong=True)
        value, step = args
        typed = coerce(step, INTEGER if step.type.kind in (Kind.SMALLINT, Kind.INTEGER) else TEXT)
        one = value.type.kind is Kind.JSONB or (isinstance(typed, Literal) and typed.value is not None)
        before = value.args if one and isinstance(value, Call) and value.function == "->" else (value,)
        return Call(name, (*before, typed), TEXT if name == "->>" else value.type)

    return special


def _is_step(type: SqlType) -> bool:
    return type.kind in (*STRINGS, Kind.SMALLINT, Kind.INTEGER, Kind.UNKNOWN)


def _set_lax(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    """jsonb_set, where a NULL value does what the last argument says."""
    if not 3 <= len(args) <= 5:
        raise UnsupportedSQL("jsonb_set_lax takes a jsonb, a path, a value, a boolean and a text", wrong=True)
    j, path, value = args[:3]
    create = args[3] if len(args) > 3 else Literal(True, BOOLEAN)
    treatment = args[4] if len(args) > 4 else Literal("use_json_null", TEXT)
    treat = coerce(treatment, TEXT)
    words = ("raise_exception", "use_json_null", "delete_key", "return_target")
    if not isinstance(treat, Literal) or treat.value not in words:
        raise UnsupportedSQL("that is not a treatment of NULL", remedy=f"write {', '.join(words)}", code="22023")
    if treat.value == "raise_exception":
        raise UnsupportedSQL("jsonb_set_lax with raise_exception is not supported", remedy="write a CHECK instead")
    given = coerce(value, JSONB)
    done = {
        "use_json_null": lambda: resolve("jsonb_set", (j, path, Literal("null", JSONB), create)),
        "delete_key": lambda: resolve("#-", (j, path)),
        "return_target": lambda: coerce(j, JSONB),
    }[str(treat.value)]()
    return resolve("case", (resolve("is null", (given,)), done, resolve("jsonb_set", (j, path, given, create))))


def _operator(name: str, doc: str, *signatures: str, examples: Sequence[tuple[str, str | None]]) -> Function:
    return function(name, "jsonb", doc, *signatures, examples=examples)


JSONB_TABLE = (
    function("->", "jsonb", "The value of a key, or the element at an index, counted from 0; NULL if it is not there",
        "jsonb, text -> jsonb", "jsonb, integer -> jsonb",
        "json, text -> json or error", "json, integer -> json or error",
        special=_get("->"), examples=[
        ("""'{"a": {"b": 5}}'::jsonb -> 'a'""", '{"b": 5}'), ("""'{"a": {"b": 5}}'::jsonb -> 'a' -> 'b'""", "5"),
        ("'[1, 2, 3]'::jsonb -> -1", "3"), ("'[1, 2]'::jsonb -> 2", None), ("'[1, 2]'::jsonb -> 'a'", None),
        ("""'"foo"'::jsonb -> 0""", '"foo"'), ("""'{"a": null}'::jsonb -> 'a'""", "null"),
        ("""'{"a": 1, "a": [2.50,  3]}'::json -> 'a'""", "[2.50,  3]"), ("""'"foo"'::json -> 0""", None)]),
    function("->>", "jsonb", "As `->`, as text; NULL for a null", "jsonb, text -> text", "jsonb, integer -> text",
        "json, text -> text or error", "json, integer -> text or error", special=_get("->>"), examples=[
        ("""'{"a": "x"}'::jsonb ->> 'a'""", "x"),
        ("""'{"a": [1,{"b":2}]}'::jsonb ->> 'a'""", '[1, {"b": 2}]'), ("""'{"a": null}'::jsonb ->> 'a'""", None),
        ("""'{"a": ["x", true]}'::jsonb -> 'a' ->> 1""", "true"), ("""'{"a": "x\\u00e9"}'::json ->> 'a'""", "xé"),
        ("""'{"a": "\\u0000"}'::json ->> 'a'""", "ERROR: unsupported Unicode escape sequence: \\u0000 cannot be "
         "converted to text")]),
    _operator("#>", "The value at a path of keys and indexes; NULL if it is not there", "jsonb, text[] -> jsonb",
        "json, text[] -> json or error",
        examples=[("""'{"a": [1, {"b": 2}]}'::jsonb #> '{a,1,b}'""", "2"), ("'[1, [2, 3]]'::jsonb #> '{1,-1}'", "3"),
        ("""'"foo"'::jsonb #> '{0}'""", None), ("'[1]'::jsonb #> '{}'", "[1]"), ("'[1]'::jsonb #> '{NULL}'", None),
        ("""('{"a": [1, 2]}'::jsonb)['a'][1]""", "2"), ("""('[{"a": 1}]'::jsonb)[0]['a']""", "1"),
        ("""'{"a": [1, {"b": 2.0 }]}'::json #> '{a,-1}'""", '{"b": 2.0 }')]),
    _operator("#>>", "As `#>`, as text; NULL for a null", "jsonb, text[] -> text",
        "json, text[] -> text or error", examples=[
        ("""'{"a": ["x", null]}'::jsonb #>> '{a,0}'""", "x"), ("""'{"a": [null]}'::jsonb #>> '{a,0}'""", None)]),
    _operator("jsonb @>", "Whether the first contains the second: all its keys and elements",
        "jsonb, jsonb -> boolean or error",
        examples=[("""'{"a": 1, "b": [1, 2, 3]}'::jsonb @> '{"b": [3, 1]}'""", "true"),
        ("""'["foo", "bar"]'::jsonb @> '"foo"'""", "true"), ("""'{"a": ["x"]}'::jsonb @> '{"a": "x"}'""", "false"),
        ("'[1, [2]]'::jsonb @> '[[2]]'", "true"), ("'[true]'::jsonb @> '[1]'", "false")]),
    _operator("jsonb <@", "Whether the second contains the first", "jsonb, jsonb -> boolean or error", examples=[
        ("""'{"b": 2}'::jsonb <@ '{"a": 1, "b": 2}'""", "true")]),
    _operator("?", "Whether a text is a key or an element", "jsonb, text -> boolean", examples=[
        ("""'{"a": 1}'::jsonb ? 'a'""", "true"), ("""'["a", "b"]'::jsonb ? 'b'""", "true"),
        ("""'[1]'::jsonb ? '1'""", "false"), ("""'"a"'::jsonb ? 'a'""", "true")]),
    _operator("?|", "Whether any of the texts is a key or an element", "jsonb, text[] -> boolean", examples=[
        ("""'{"a": 1}'::jsonb ?| ARRAY['b', 'a']""", "true"), ("""'{"a": 1}'::jsonb ?| '{}'""", "false")]),
    _operator("?&", "Whether all of the texts are keys or elements", "jsonb, text[] -> boolean", examples=[
        ("""'{"a": 1}'::jsonb ?& ARRAY['b', 'a']""", "false"), ("""'{"a": 1}'::jsonb ?& ARRAY['a', NULL]""", "true")]),
    _operator("jsonb ||", "Merges objects, or concatenates arrays", "jsonb, jsonb -> jsonb or error", examples=[
        ("""'{"a": 1, "b": 2}'::jsonb || '{"b": 3}'""", '{"a": 1, "b": 3}'), ("'[1]'::jsonb || '[2, 3]'", "[1, 2, 3]"),
        ("""'[1]'::jsonb || '{"a": 1}'""", '[1, {"a": 1}]'), ("'1'::jsonb || '2'", "[1, 2]")]),
    _operator("jsonb -", "Without keys, elements equal to texts, or the element at an index",
        "jsonb, text -> jsonb or error", "jsonb, integer -> jsonb or error", "jsonb, text[] -> jsonb or error",
        examples=[("""'{"a": 1, "b": 2}'::jsonb - 'a'""", '{"b": 2}'), ("""'["a", "b", "a"]'::jsonb - 'a'""", '["b"]'),
        ("'[1, 2, 3]'::jsonb - (-1)", "[1, 2]"), ("""'{"a": 1, "b": 2}'::jsonb - '{a,c}'::text[]""", '{"b": 2}'),
        ("'1'::jsonb - 'a'", "ERROR: cannot delete from scalar"),
        ("""'{"a": 1}'::jsonb - 1""", "ERROR: cannot delete from object using integer index")]),
    _operator("#-", "Without what is at a path", "jsonb, text[] -> jsonb or error", examples=[
        ("""'{"a": [1, {"b": 2}]}'::jsonb #- '{a,1,b}'""", '{"a": [1, {}]}'),
        ("'1'::jsonb #- '{a}'", "ERROR: cannot delete path in scalar"),
        ("'[1]'::jsonb #- '{x}'", 'ERROR: path element at position 1 is not an integer: "x"')]),
    function("jsonb_typeof", "jsonb", "object, array, string, number, boolean or null", "jsonb -> text", examples=[
        ("jsonb_typeof('-123.4')", "number"), ("jsonb_typeof('null')", "null"), ("jsonb_typeof(NULL)", None)]),
    function("jsonb_array_length", "jsonb", "The number of elements", "jsonb -> integer or error", examples=[
        ("""jsonb_array_length('[1, [2, 3], {"a": 1}]')""", "3"),
        ("jsonb_array_length('{}')", "ERROR: cannot get array length of a non-array"),
        ("jsonb_array_length('1')", "ERROR: cannot get array length of a scalar")]),
    function("jsonb_extract_path", "jsonb", "The value at a path: `#>`", "jsonb, text... -> jsonb",
        special=extracting("#>", JSONB), examples=[("""jsonb_extract_path('{"a": [1, 2]}', 'a', '1')""", "2")]),
    function("jsonb_extract_path_text", "jsonb", "The value at a path as text: `#>>`", "jsonb, text... -> text",
        special=extracting("#>>", JSONB), examples=[("""jsonb_extract_path_text('{"a": ["x"]}', 'a', '0')""", "x")]),
    function("jsonb_set", "jsonb", "With another value at a path; it makes the last key unless you say false",
        "jsonb, text[], jsonb -> jsonb or error", "jsonb, text[], jsonb, boolean -> jsonb or error", examples=[
        ("""jsonb_set('{"a": [1, 2]}', '{a,0}', '"x"')""", '{"a": ["x", 2]}'),
        ("""jsonb_set('{"a": 1}', '{b}', '2')""", '{"a": 1, "b": 2}'),
        ("""jsonb_set('{"a": 1}', '{b}', '2', false)""", '{"a": 1}'), ("jsonb_set('[1, 2]', '{-5}', '9')", "[9, 1, 2]"),
        ("jsonb_set('1', '{a}', '2')", "ERROR: cannot set path in scalar"),
        ("jsonb_set('{}', '{NULL}', '2')", "ERROR: path element at position 1 is null")]),
    function("jsonb_set_lax", "jsonb", "As jsonb_set, with a treatment of NULL",
        "jsonb, text[], jsonb -> jsonb or error", "jsonb, text[], jsonb, boolean, text -> jsonb or error",
        special=_set_lax, examples=[
        ("""jsonb_set_lax('{"a": 1}', '{a}', NULL)""", '{"a": null}'),
        ("""jsonb_set_lax('{"a": 1}', '{a}', NULL, true, 'delete_key')""", "{}")]),
    function("jsonb_insert", "jsonb", "With a new value before the one at a path, or after it",
        "jsonb, text[], jsonb -> jsonb or error", "jsonb, text[], jsonb, boolean -> jsonb or error", examples=[
        ("""jsonb_insert('{"a": [1, 2]}', '{a,1}', '9')""", '{"a": [1, 9, 2]}'),
        ("""jsonb_insert('{"a": [1, 2]}', '{a,1}', '9', true)""", '{"a": [1, 2, 9]}'),
        ("""jsonb_insert('{"a": 1}', '{a}', '9')""", "ERROR: cannot replace existing key")]),
    function("jsonb_strip_nulls", "jsonb", "Without the keys whose values are null", "jsonb -> jsonb", examples=[
        ("""jsonb_strip_nulls('{"a": null, "b": [null, {"c": null}]}')""", '{"b": [null, {}]}')]),
    function("jsonb_pretty", "jsonb", "A text with a line for each value", "jsonb -> text or error", examples=[
        ("""jsonb_pretty('{"a": [1], "b": {}}')""", '{\n    "a": [\n        1\n    ],\n    "b": {\n    }\n}')]),
)  # fmt: skip

JSONB_INTERNAL = (
    function("jsonb order", INTERNAL, "Bytes that order as the values do", "jsonb -> bytea or error"),
    function("jsonb of order", INTERNAL, "The value whose bytes these are", "bytea -> jsonb"),
    function("jsonb elements", INTERNAL, "The elements of an array", "jsonb -> jsonb[] or error",
             "json -> json[] or error"),
    function("jsonb element texts", INTERNAL, "The elements of an array as texts", "jsonb -> text[] or error",
             "json -> text[] or error"),
    function("jsonb array texts", INTERNAL, "The elements of an array without arrays as texts",
             "jsonb -> text[] or error", "json -> text[] or error"),
    function("jsonb keys", INTERNAL, "The keys of an object", "jsonb -> text[] or error",
             "json -> text[] or error"),
    function("jsonb each keys", INTERNAL, "The keys of an object, for jsonb_each", "jsonb -> text[] or error",
             "json -> text[] or error"),
    function("jsonb values", INTERNAL, "The values of an object", "jsonb -> jsonb[] or error",
             "json -> json[] or error"),
    function("jsonb value texts", INTERNAL, "The values of an object as texts", "jsonb -> text[] or error",
             "json -> text[] or error"),
    function("jsonb only object", INTERNAL, "An array of an object, or of an empty one for NULL",
             "jsonb -> jsonb or error", "json -> json or error"),
    function("jsonb field texts", INTERNAL, "A key's values in objects, as texts", "jsonb, text -> text[] or error",
             "jsonb, text, text -> text[] or error", "json, text -> text[] or error",
             "json, text, text -> text[] or error"),
    function("jsonb field values", INTERNAL, "A key's values in objects", "jsonb, text -> jsonb[] or error",
             "jsonb, text, text -> jsonb[] or error", "json, text -> json[] or error",
             "json, text, text -> json[] or error"),
    function("jsonb of pairs", INTERNAL, "The object of arrays of a key and a value", "jsonb[] -> jsonb or error"),
)  # fmt: skip
