"""Set-returning functions that are others of arrays: `string_to_table` is `unnest` of `string_to_array`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.jsonb_paths import query
from halfjoin.sql.functions.regex import separator
from halfjoin.sql.functions.regexps import check_regex
from halfjoin.sql.system import VECTORS
from halfjoin.sql.types import BIGINT, BOOLEAN, INTEGER, JSON, JSONB, STRINGS, TEXT, Kind, SqlType, array

# The function that runs, its arguments, and its columns; one without a name gets that of the call.
Made = tuple[str, tuple[Expr, ...], tuple[tuple[str | None, SqlType], ...]]


def _one(type: SqlType) -> tuple[tuple[None, SqlType]]:
    """One column without a name."""
    return ((None, type),)


def _string_to_table(args: Sequence[Expr]) -> Made:
    return "unnest", (functions.resolve("string_to_array", args),), _one(TEXT)


def _split_to_table(args: Sequence[Expr]) -> Made:
    if len(args) == 2 and isinstance(args[1], Literal) and isinstance(args[1].value, str):
        try:
            separator(args[1].value)
            return "regexp_split_to_table", tuple(functions.cast(arg, TEXT) for arg in args), _one(TEXT)
        except UnsupportedSQL:
            pass  # RE2 does not run it
    return "unnest", (functions.resolve("regexp_split_to_array", args),), _one(TEXT)


def _matches(args: Sequence[Expr]) -> Made:
    if len(args) not in (2, 3) or any(arg.type.kind not in (*STRINGS, Kind.UNKNOWN) for arg in args):
        raise UnsupportedSQL("no such function regexp_matches", remedy=f"it takes {TAKES['regexp_matches']}",
                             wrong=True)
    check_regex(2)(args)
    texts = tuple(functions.cast(arg, TEXT) for arg in args)
    return "unnest", (Call("matches", texts, array(array(TEXT))),), _one(array(TEXT))


def _subscripts(args: Sequence[Expr]) -> Made:
    backwards = args[2] if len(args) > 2 else Literal(False, BOOLEAN)
    if len(args) not in (2, 3) or not isinstance(backwards, Literal):
        raise UnsupportedSQL("generate_subscripts takes an array, a dimension, and whether to go backwards")
    first = Literal(0 if args[0].type.named in VECTORS else 1, INTEGER)
    length = functions.resolve("array_length", args[:2])
    made = Call("subscripts", (length, first, functions.cast(backwards, BOOLEAN)), array(INTEGER))
    return "unnest", (made,), _one(INTEGER)


def _repeat_row_non_negative(args: Sequence[Expr]) -> Made:
    if len(args) != 1:
        raise UnsupportedSQL("repeat_row_non_negative takes one integer, the weight")
    return "repeat_row", (Call("not negative", (functions.cast(args[0], BIGINT),), BIGINT),), ()


def _of_json(read: SqlType, name: str, *columns: tuple[str | None, str, SqlType]) -> Callable[[Sequence[Expr]], Made]:
    """A function of one json or jsonb: the name of each column, the function that gives its values, and its type."""

    def made(args: Sequence[Expr]) -> Made:
        if len(args) != 1 or args[0].type.kind not in (read.kind, Kind.UNKNOWN):
            raise UnsupportedSQL(f"no such function {name}", remedy=f"{name} takes one {read}", wrong=True)
        value = functions.cast(args[0], read)
        lists = tuple(Call(function, (value,), array(type)) for _, function, type in columns)
        return "unnest", lists, tuple((column, type) for column, _, type in columns)

    return made


def _parts(read: SqlType) -> dict[str, Callable[[Sequence[Expr]], Made]]:
    """The functions that make rows of the parts of a json, or a jsonb."""
    key = ("key", "jsonb each keys", TEXT)
    columns: dict[str, list[tuple[str | None, str, SqlType]]] = {
        "array_elements": [("value", "jsonb elements", read)],
        "array_elements_text": [("value", "jsonb element texts", TEXT)],
        "each": [key, ("value", "jsonb values", read)],
        "each_text": [key, ("value", "jsonb value texts", TEXT)],
        "object_keys": [(None, "jsonb keys", TEXT)],
    }
    return {f"{read}_{name}": _of_json(read, f"{read}_{name}", *made) for name, made in columns.items()}


def _path_query(args: Sequence[Expr]) -> Made:
    return "unnest", (query(args),), _one(JSONB)


BY_NAME: dict[str, Callable[[Sequence[Expr]], Made]] = {
    "generate_subscripts": _subscripts,
    **_parts(JSON),
    **_parts(JSONB),
    **dict.fromkeys(("jsonb_path_query", "jsonb_path_query_tz"), _path_query),
    "regexp_matches": _matches,
    "regexp_split_to_table": _split_to_table,
    "repeat_row_non_negative": _repeat_row_non_negative,
    "string_to_table": _string_to_table,
}
TAKES = {"regexp_matches": "(text, pattern[, flags])"}
