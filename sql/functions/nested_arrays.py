"""Arrays of arrays. An array type has a number of dimensions: `integer[][]` is a list of lists.

PostgreSQL's types do not tell it, only its values. Here the text of a constant and the form of an expression tell it,
and a value with other dimensions is an error of its row. As in PostgreSQL, all parts of an array have the same length,
and an array without elements has no dimensions: it is `{}`, never `{{},{}}`. Every dimension begins at 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.signature import Resolve, function
from halfjoin.sql.functions.sum_results import INTERNAL
from halfjoin.sql.types import INTEGER, TEXT, SqlType, array, dimensions, innermost

MOST = 6  # dimensions, as in PostgreSQL
_OPENING = re.compile(r"\s*((?:\{\s*)+)")
_FLAT = frozenset(("array_to_string", "@>", "<@", "&&"))
# What PostgreSQL, too, does for one dimension only.
_REFUSED = {
    "array_position": ("searching for elements in multidimensional arrays is not supported", "0A000"),
    "array_positions": ("searching for elements in multidimensional arrays is not supported", "0A000"),
    "array_remove": ("removing elements from multidimensional arrays is not supported", "0A000"),
    "width_bucket": ("thresholds must be one-dimensional array", "2202E"),
}
_TAKES = frozenset((
    "=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from", "is null", "is not null", "case",
    "coalesce", "nullif", "greatest", "least", "array", "[]", "slice", "cardinality", "array_length", "array_upper",
    "array_lower", "array_ndims", "array_dims", "array_cat", "trim_array", "||", "to_jsonb", "jsonb_build_array",
    "jsonb_build_object", "to_json", "array_to_json", "json_build_array", "json_build_object",
    "concat", "concat_ws", "num_nulls", "num_nonnulls",
))  # fmt: skip


def nested(element: SqlType, count: int) -> SqlType:
    """The type of arrays of so many dimensions."""
    return element if count == 0 else array(nested(element, count - 1))


def lengths(value: object) -> list[int]:
    """The length of each dimension of a constant array."""
    return [len(value), *(lengths(value[0]) if value else [])] if isinstance(value, list) else []


def type_of_text(text: str, type: SqlType) -> SqlType:
    """The array type that a constant has by its braces; `{}` has the type that is asked for."""
    opening = _OPENING.match(text.partition("=")[2] if text.lstrip().startswith("[") else text)
    depth = opening[1].count("{") if opening else 0
    if depth < 1 or (depth == 1 and re.fullmatch(r"[^{]*\{\s*\}\s*", text)):
        return type
    if depth > MOST:
        raise UnsupportedSQL(f"number of array dimensions ({depth}) exceeds the maximum allowed ({MOST})", code="54000")
    return nested(innermost(type), depth)


def of_nested(name: str, args: Sequence[Expr]) -> Sequence[Expr]:
    """The arguments of a function; one that looks at elements only gets those of all dimensions.

    Raises:
        UnsupportedSQL: the function takes no arrays of arrays.
    """
    if all(dimensions(arg.type) < 2 for arg in args):
        return args
    if name in _FLAT or name.endswith((" any", " all")):
        return tuple(map(flat, args))
    if name not in _TAKES:
        reason, code = _REFUSED.get(name, (f"{name} of arrays of more than one dimension is not supported", "0A000"))
        raise UnsupportedSQL(reason, remedy="unnest them", code=code, wrong=name in _REFUSED)
    return args


def in_shape(resolve: Resolve, name: str, args: Sequence[Expr]) -> Expr | None:
    """array_replace of an array of arrays: its elements, changed as one array, in its shape; None for other calls."""
    if name != "array_replace" or not args or dimensions(args[0].type) < 2:
        return None
    made = resolve(name, (flat(args[0]), *args[1:]))
    return Call("in shape", (made, args[0]), nested(innermost(made.type), dimensions(args[0].type)))


def flat(value: Expr) -> Expr:
    """The elements of all dimensions as one array; another value itself."""
    if dimensions(value.type) < 2:
        return value
    return Call("flat array", (value,), array(innermost(value.type)))


def shaped(value: Expr, how: str) -> Expr:
    """An array of arrays that was put together, if its parts have equal lengths. `how` decides what an empty part, or
    one of another length, means: `array` as in ARRAY[...], `agg` as in array_agg, `cat` as in `||`, `fill`."""
    return value if dimensions(value.type) < 2 else Call("array shape", (value, Literal(how, TEXT)), value.type)


def joined(resolve: Resolve, left: Expr, right: Expr) -> Expr:
    """`left || right` of arrays: one with a dimension more gets the other as a part."""
    first, second = dimensions(left.type), dimensions(right.type)
    if first == second + 1 and second:
        return _with_part(left, right, "append part", left.type, right.type)
    if second == first + 1 and first:
        return _with_part(right, left, "prepend part", right.type, left.type)
    return shaped(resolve("array_cat", (left, right)), "cat")


def _with_part(whole: Expr, part: Expr, name: str, type: SqlType, of_part: SqlType) -> Expr:
    if type.element != of_part:
        raise UnsupportedSQL(f"no operator {type} || {of_part}", remedy="cast one to the other's type", wrong=True)
    return shaped(Call(name, (whole, part), type), "cat")


def filled(resolve: Resolve, args: Sequence[Expr]) -> Expr | None:
    """array_fill with several dimensions, which are written: an array of arrays; None for one dimension."""
    lengths = args[1]
    if isinstance(lengths, Literal) and isinstance(lengths.value, list):
        each: Sequence[Expr] = [Literal(one, INTEGER) for one in lengths.value]
    else:
        each = lengths.args if isinstance(lengths, Call) and lengths.function == "array" else ()
    if len(each) < 2:
        return None
    if len(each) > MOST:
        raise UnsupportedSQL(f"number of dimensions ({len(each)}) exceeds the maximum allowed ({MOST})", code="54000")
    made = args[0]
    for length in reversed(each):
        made = shaped(Call("array_fill", (made, resolve("array", (length,))), array(made.type)), "fill")
    return made


NESTED_ARRAYS = (
    function("array shape", INTERNAL, "The array, if its parts have equal lengths", "any[], text -> any[] or error"),
    function("flat array", INTERNAL, "The elements of all dimensions", "any[] -> any[]"),
    function("in shape", INTERNAL, "The elements, in the shape of the second array", "any[], any[] -> any[]"),
    function("append part", INTERNAL, "An array of arrays with one more", "any[], any[] -> any[] or error"),
    function("prepend part", INTERNAL, "An array of arrays with one more in front", "any[], any[] -> any[] or error"),
)
