"""Parts and bounds of arrays. Each dimension starts at 1."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr
from halfjoin.sql.functions.casting import cast
from halfjoin.sql.functions.nested_arrays import filled
from halfjoin.sql.functions.signature import Function, Resolve, function
from halfjoin.sql.types import INTEGER, Kind, array


def _bound(name: str, doc: str, *examples: tuple[str, str | None]) -> Function:
    nothing = [(f"{name}('{{}}'::int[], 1)", None), (f"{name}(ARRAY[1,2], 2)", None)]
    return function(name, "arrays", doc, "any[], integer -> integer", examples=[*examples, *nothing])


def _sets(name: str, doc: str, examples: Sequence[tuple[str, str | None]]) -> Function:
    return function(name, "arrays", doc, "any[], any[] -> boolean", examples=examples)


def _fill(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if len(args) != 2 or args[0].type.kind in (Kind.ARRAY, Kind.UNKNOWN):
        raise UnsupportedSQL("array_fill takes a value of a known type that is no array, and the numbers of its copies",
                             remedy="write array_fill(0, ARRAY[3])", wrong=True)  # fmt: skip
    value, numbers = args[0], cast(args[1], array(INTEGER))
    return filled(resolve, (value, numbers)) or Call("array_fill", (value, numbers), array(value.type))


ARRAY_PARTS = (
    _bound("array_length", "Number of elements; NULL for none", ("array_length(ARRAY[1,2,3], 1)", "3")),
    _bound("array_upper", "The last index; NULL for none", ("array_upper(ARRAY[1,2,3], 1)", "3")),
    _bound("array_lower", "The first index; NULL for none", ("array_lower(ARRAY[1,2,3], 1)", "1")),
    function("array_ndims", "arrays", "The number of dimensions; NULL for none", "any[] -> integer", examples=[
        ("array_ndims(ARRAY[1,2])", "1"), ("array_ndims(ARRAY[[1],[2]])", "2"), ("array_ndims('{}'::int[])", None)]),
    function("array_dims", "arrays", "The bounds as text; NULL for none", "any[] -> text", examples=[
        ("array_dims(ARRAY[1,2])", "[1:2]"), ("array_dims(ARRAY[[1],[2]])", "[1:2][1:1]"),
        ("array_dims('{}'::int[])", None)]),
    function("slice", "arrays", "The elements from an index to another: `a[1:2]`", "any[], integer, integer -> any[]",
        examples=[("(ARRAY[1,2,3])[2:3]", "{2,3}"), ("(ARRAY[1,2,3])[:2]", "{1,2}"), ("(ARRAY[1,2,3])[2:]", "{2,3}"),
        ("(ARRAY[1,2,3])[0:1]", "{1}"), ("(ARRAY[1,2,3])[3:2]", "{}"), ("(ARRAY[1,2,3])[1:NULL]", None)]),
    function("array_fill", "arrays", "An array of copies of a value, with these numbers in each dimension",
        "any, integer[] -> any[] or error", special=_fill, examples=[("array_fill(7, ARRAY[2,3])", "{{7,7,7},{7,7,7}}"),
        ("array_fill(7, ARRAY[3])", "{7,7,7}"), ("array_fill(NULL::text, ARRAY[2])", "{NULL,NULL}"),
        ("array_fill(1, ARRAY[0])", "{}"), ("array_fill('a'::text, '{}')", "{}"),
        ("array_fill(1, NULL)", "ERROR: dimension array or low bound array cannot be null")]),
    function("trim_array", "arrays", "Without the last n elements", "any[], integer -> any[] or error", examples=[
        ("trim_array(ARRAY[1,2,3], 2)", "{1}"),
        ("trim_array(ARRAY[1], 2)", "ERROR: number of elements to trim must be between 0 and 1")]),
    function("array_positions", "arrays", "The indexes of all equal elements; finds NULL as well",
        "any[], any -> integer[]", examples=[("array_positions(ARRAY['a','b','a'], 'a')", "{1,3}"),
        ("array_positions(ARRAY[1,NULL], NULL)", "{2}"), ("array_positions(ARRAY[1], 2)", "{}"),
        ("array_positions(NULL::int[], 1)", None)]),
    function("array_position", "arrays", "Index of the first equal element, from a start on; finds NULL as well",
        "any[], any -> integer", "any[], any, integer -> integer or error", examples=[
        ("array_position(ARRAY['sun','mon'], 'mon')", "2"), ("array_position(ARRAY[1,2], 3)", None),
        ("array_position(ARRAY[1,NULL], NULL)", "2"), ("array_position(ARRAY['a','b','a'], 'a', 2)", "3"),
        ("array_position(ARRAY[1], 1, NULL)", "ERROR: initial position must not be null")]),
    function("array_remove", "arrays", "Without the elements that are equal; removes NULL as well",
        "any[], any -> any[]", examples=[("array_remove(ARRAY[1,2,3,2], 2)", "{1,3}"),
        ("array_remove(ARRAY[1,NULL], NULL)", "{1}"), ("array_remove(NULL::int[], 1)", None)]),
    function("array_replace", "arrays", "With each equal element replaced; replaces NULL as well",
        "any[], any, any -> any[]", examples=[("array_replace(ARRAY[1,2,5,4], 5, 3)", "{1,2,3,4}"),
        ("array_replace(ARRAY[1,NULL], NULL, 0)", "{1,0}"), ("array_replace(ARRAY[1,2], 2, NULL)", "{1,NULL}"),
        ("array_replace(ARRAY[[1,2],[2,3]], 2, 9)", "{{1,9},{9,3}}")]),
    _sets("@>", "Whether each element of the second is in the first; NULL is in none", [
        ("ARRAY[1,4,3] @> ARRAY[3,1,3]", "true"), ("ARRAY[1,NULL] @> ARRAY[NULL]::int[]", "false"),
        ("ARRAY[1] @> '{}'::int[]", "true")]),
    _sets("<@", "Whether each element of the first is in the second; NULL is in none", [
        ("ARRAY[2,2,7] <@ ARRAY[1,7,4,2,6]", "true")]),
    _sets("&&", "Whether they have an element in common", [
        ("ARRAY[1,4,3] && ARRAY[2,1]", "true"), ("ARRAY[1,NULL] && ARRAY[2,NULL]", "false")]),
)  # fmt: skip
