"""Calls with VARIADIC: the elements of an array are the last arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import cast, coerce
from halfjoin.sql.functions.nested_arrays import flat
from halfjoin.sql.functions.resolve import resolve
from halfjoin.sql.types import BOOLEAN, FLOATS, JSON, TEXT, Kind, array, innermost


def spread(name: str, args: Sequence[Expr]) -> Expr:
    """The call `name(..., VARIADIC args[-1])`.

    Raises:
        UnsupportedSQL: the last argument is no array, or the function does not take any number of arguments.
    """
    if name not in _TAKE_ANY:
        raise UnsupportedSQL(f"{name} with VARIADIC is not supported", remedy="write the elements as arguments",
                             code="0A000")
    least, build = _TAKE_ANY[name]
    if name in _TAKE_TEXTS and args[-1].type.kind is Kind.UNKNOWN:
        args = (*args[:-1], cast(args[-1], array(TEXT)))
    last = args[-1]
    if last.type.kind is not Kind.ARRAY:
        raise UnsupportedSQL("VARIADIC argument must be an array", remedy="write ARRAY[...]", code="42804", wrong=True)
    if len(args) != least:
        raise UnsupportedSQL(f"{name} takes {least - 1} arguments before VARIADIC", wrong=True)
    return build(args)


def _count(name: str) -> Callable[[Sequence[Expr]], Expr]:
    """The elements without NULLs, or the NULLs among them."""

    def build(args: Sequence[Expr]) -> Expr:
        item = args[0].type.element
        assert item is not None
        there = resolve("cardinality", (resolve("array_remove", (args[0], Literal(None, item))),))
        return there if name == "num_nonnulls" else resolve("-", (resolve("cardinality", args), there))

    return build


def _format(args: Sequence[Expr]) -> Expr:
    if args[1].type.element == BOOLEAN:  # printed as one letter
        mark = Literal("null", TEXT), Literal(",", TEXT)
        joined = resolve("array_to_string", (args[1], mark[1], mark[0]))
        args = (args[0], resolve("string_to_array", (joined, mark[1], mark[0])))
    if args[1].type.element is not None and args[1].type.element.kind is Kind.CHAR:  # printed with its blanks
        args = (args[0], cast(args[1], TEXT, explicit=True))
    return Call("format elements", (coerce(args[0], TEXT), cast(args[1], array(TEXT), explicit=True)), TEXT)


def _json_array(args: Sequence[Expr]) -> Expr:
    """The elements as a jsonb, those of an inner array one by one."""
    return resolve("to_jsonb", (flat(args[0]),))


def _json_text(args: Sequence[Expr]) -> Expr:
    """The elements as a json. The text of a jsonb array is the one that json_build_array writes, but for numbers with
    a point and for what is JSON already."""
    if innermost(args[0].type).kind in (Kind.JSON, Kind.RECORD, Kind.NUMERIC, *FLOATS):
        raise UnsupportedSQL(f"json_build_array with VARIADIC of {args[0].type} is not supported",
                             remedy="write jsonb_build_array", code="0A000")
    return cast(cast(_json_array(args), TEXT, explicit=True), JSON, explicit=True)


def _json_object(args: Sequence[Expr]) -> Expr:
    if args[0].type.element != TEXT:
        raise UnsupportedSQL("jsonb_build_object with VARIADIC of an array that is not text[] is not supported",
                             remedy="write the elements as arguments", code="0A000")
    return resolve("jsonb_object", args)


_TAKE_TEXTS = ("jsonb_extract_path", "jsonb_extract_path_text")
_TAKE_ANY: dict[str, tuple[int, Callable[[Sequence[Expr]], Expr]]] = {
    "concat": (1, lambda args: resolve("array_to_string", (args[0], Literal("", TEXT)))),
    "concat_ws": (2, lambda args: resolve("array_to_string", (args[1], args[0]))),
    "format": (2, _format),
    "json_build_array": (1, _json_text),
    "jsonb_build_array": (1, _json_array),
    "jsonb_build_object": (1, _json_object),
    "jsonb_extract_path": (2, lambda args: resolve("#>", args)),
    "jsonb_extract_path_text": (2, lambda args: resolve("#>>", args)),
    "num_nulls": (1, _count("num_nulls")),
    "num_nonnulls": (1, _count("num_nonnulls")),
}
