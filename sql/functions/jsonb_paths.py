"""Functions of SQL/JSON paths. A constant path is checked when the statement is bound."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import coerce
from halfjoin.sql.functions.json_path import path
from halfjoin.sql.functions.parameters import is_parameter
from halfjoin.sql.functions.signature import Function, Resolve, Special, function
from halfjoin.sql.functions.sum_results import INTERNAL
from halfjoin.sql.types import BOOLEAN, JSONB, STRINGS, TEXT, Kind, SqlType, array

ITEMS = "jsonb path items"
_TAKES = "it takes a jsonb, a path, and then, if you like, an object of variables and whether errors are silent"


def call_of(name: str, type: SqlType, args: Sequence[Expr], silent: bool = False) -> Call:
    """The call of a function of a path, with all its arguments.

    Raises:
        UnsupportedSQL: they are not those of such a function, or the path is not one.
    """
    if not 2 <= len(args) <= 4:
        raise UnsupportedSQL("no such function of a SQL/JSON path", remedy=_TAKES, code="42883")
    given = args[1]
    if given.type.kind not in (*STRINGS, Kind.UNKNOWN):
        raise UnsupportedSQL(f"a SQL/JSON path is not {given.type}", remedy=_TAKES, code="42883")
    if isinstance(given, Literal) and given.value is not None and not is_parameter(given):
        path(str(given.value))
    variables = args[2] if len(args) > 2 else Literal("{}", JSONB)
    quiet = args[3] if len(args) > 3 else Literal(silent, BOOLEAN)
    made = (coerce(args[0], JSONB), coerce(given, TEXT), coerce(variables, JSONB), coerce(quiet, BOOLEAN))
    return Call(name, made, type)


def _special(name: str, type: SqlType) -> Special:
    return lambda resolve, args: call_of(name, type, args)


def _operator(name: str) -> Special:
    def special(resolve: Resolve, args: Sequence[Expr]) -> Expr:
        if len(args) == 2 and args[0].type.kind not in (Kind.JSONB, Kind.UNKNOWN):
            raise UnsupportedSQL(f"no such operator of {args[0].type}", remedy="the left side is a jsonb", code="42883")
        made = call_of(name, BOOLEAN, args, silent=True)
        return Call(made.function, (*made.args, Literal(True, BOOLEAN)), BOOLEAN)  # every variable is null

    return special


def _of_path(name: str, doc: str, result: str, type: SqlType, examples: Sequence[tuple[str, str | None]]) -> Function:
    takes = ("jsonb, text", "jsonb, text, jsonb", "jsonb, text, jsonb, boolean")
    return function(name, "jsonb", doc, *(f"{one} -> {result} or error" for one in takes),
                    special=_special(name, type), examples=examples)  # fmt: skip


JSONB_PATHS = (
    function("@?", "jsonb", "Whether a SQL/JSON path has an item; NULL for an error of the path",
        "jsonb, text -> boolean or error", special=_operator("jsonb_path_exists"), examples=[
        ("""'{"a": [1, 2, 3]}'::jsonb @? '$.a[*] ? (@ > 2)'""", "true"),
        ("""'{"a": [1, 2, 3]}'::jsonb @? '$.a[*] ? (@ > 5)'""", "false"),
        ("""'{"a": 1}'::jsonb @? 'strict $.b'""", None)]),
    function("@@", "jsonb", "The answer of a SQL/JSON path that is a condition; NULL if it is none",
        "jsonb, text -> boolean or error", special=_operator("jsonb_path_match"), examples=[
        ("""'{"a": [1, 2, 3]}'::jsonb @@ '$.a[*] > 2'""", "true"), ("""'{"a": 1}'::jsonb @@ '$.a'""", None),
        ("""'{"a": "x"}'::jsonb @@ '$.a > 2'""", None)]),
    _of_path("jsonb_path_exists", "Whether a SQL/JSON path has an item", "boolean", BOOLEAN, [
        ("""jsonb_path_exists('{"a": [1, 2, 3]}', '$.a[*] ? (@ >= $min && @ <= $max)', '{"min": 2, "max": 4}')""",
         "true"),
        ("""jsonb_path_exists('{"a": 1}', 'strict $.b')""", 'ERROR: JSON object does not contain key "b"'),
        ("""jsonb_path_exists('{"a": 1}', 'strict $.b', '{}', true)""", None),
        ("jsonb_path_exists('{}', NULL)", None)]),
    _of_path("jsonb_path_match", "The answer of a SQL/JSON path that is a condition", "boolean", BOOLEAN, [
        ("""jsonb_path_match('{"a": [1, 2, 3]}', 'exists($.a[*] ? (@ >= 3))')""", "true"),
        ("jsonb_path_match('[\"abc\", \"b\"]', '$[*] like_regex \"^A\" flag \"i\"')", "true"),
        ("""jsonb_path_match('{"a": "x"}', '($.a > 1) is unknown')""", "true"),
        ("""jsonb_path_match('{"a": 1}', '$.a')""", "ERROR: single boolean result is expected")]),
    _of_path("jsonb_path_query_array", "The items of a SQL/JSON path as an array", "jsonb", JSONB, [
        ("""jsonb_path_query_array('{"a": [1, 2, 3]}', '$.a[*] ? (@ > 1)')""", "[2, 3]"),
        ("jsonb_path_query_array('[1, [2, 3], \"x\"]', '$[*].type()')", '["number", "array", "string"]'),
        ("jsonb_path_query_array('[1, [2, 3]]', '$[last].size()')", "[2]"),
        ("jsonb_path_query_array('[7, 2, 4]', '$[0 to 1] * 2')",
         "ERROR: left operand of jsonpath operator * is not a single numeric value"),
        ("""jsonb_path_query_array('{"a": 2, "b": {"a": "5"}}', '$.**.a.double()')""", "[2, 5]"),
        ("""jsonb_path_query_array('{"a": 1, "b": [2]}', '$.keyvalue()')""",
         '[{"id": 0, "key": "a", "value": 1}, {"id": 0, "key": "b", "value": [2]}]'),
        ("jsonb_path_query_array('[10, 4]', '$[0] * 2 + $[1] % 3')", "[21]")]),
    _of_path("jsonb_path_query_first", "The first item of a SQL/JSON path; NULL if it has none", "jsonb", JSONB, [
        ("""jsonb_path_query_first('{"a": [{"b": 1}, {"b": 2}]}', '$.a.b')""", "1"),
        ("jsonb_path_query_first('[]', '$[*]')", None)]),
)  # fmt: skip

JSONB_PATHS_INTERNAL = (
    function(ITEMS, INTERNAL, "The items of a SQL/JSON path", "jsonb, text, jsonb, boolean -> jsonb[] or error"),
)


def query(args: Sequence[Expr]) -> Expr:
    """The items of jsonb_path_query as an array of jsonb."""
    return call_of(ITEMS, array(JSONB), args)
