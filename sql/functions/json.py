"""Functions of json: parts of a text of JSON, as they were written. Its operators are those of jsonb (`jsonb`)."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Expr
from halfjoin.sql.functions.casting import coerce
from halfjoin.sql.functions.signature import Resolve, Special, function
from halfjoin.sql.types import JSON, TEXT, SqlType


def extracting(name: str, type: SqlType) -> Special:
    """json_extract_path(j, 'a', 'b') is `j #> '{a,b}'`; so is that of jsonb, the other `type`."""

    def special(resolve: Resolve, args: Sequence[Expr]) -> Expr:
        if len(args) < 2:
            raise UnsupportedSQL(f"it takes a {type} and the steps of a path", wrong=True)
        return resolve(name, (coerce(args[0], type), resolve("array", tuple(coerce(arg, TEXT) for arg in args[1:]))))

    return special


JSON_TABLE = (
    function("json_typeof", "json", "object, array, string, number, boolean or null", "json -> text", examples=[
        ("json_typeof(' -123.40')", "number"), ("json_typeof('null')", "null"), ("json_typeof(NULL)", None)]),
    function("json_array_length", "json", "The number of elements", "json -> integer or error", examples=[
        ("""json_array_length('[1, [2, 3], {"a": 1}]')""", "3"),
        ("json_array_length('{}')", "ERROR: cannot get array length of a non-array"),
        ("json_array_length('1')", "ERROR: cannot get array length of a scalar")]),
    function("json_extract_path", "json", "The value at a path: `#>`", "json, text... -> json or error",
        special=extracting("#>", JSON), examples=[("""json_extract_path('{"a": [1, 2.50 ]}', 'a', '1')""", "2.50")]),
    function("json_extract_path_text", "json", "The value at a path as text: `#>>`", "json, text... -> text or error",
        special=extracting("#>>", JSON), examples=[("""json_extract_path_text('{"a": ["x"]}', 'a', '0')""", "x")]),
    function("json_strip_nulls", "json", "Without the keys whose values are null, and without blanks",
        "json -> json or error", examples=[
        ("""json_strip_nulls('{"a": null, "b": [null, {"c": null, "d": 1.50}]}')""", '{"b":[null,{"d":1.50}]}')]),
)  # fmt: skip
