"""Functions that return rows: their argument types and columns, for calls in FROM and in a SELECT list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.jsonb_records import POPULATED, POPULATED_ONE, RECORDS
from halfjoin.sql.functions.nested_arrays import flat
from halfjoin.sql.functions.set_returning import BY_NAME
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    INTEGERS,
    INTERVAL,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Kind,
    SqlType,
    array,
    innermost,
)

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema

# The function that runs, its arguments, cast, and the columns; a column without a name gets the call's alias, or the
# name of the function that is called.
Signature = tuple[str, tuple[Expr, ...], tuple[tuple[str | None, SqlType], ...]]
LISTENING = "pg_listening_channels"
# Functions over PostgreSQL's catalog that return no rows here, since nothing is partitioned or granted; and the
# channels on which a client listens, of which only a server has some.
_OID, _REGCLASS = SqlType(Kind.BIGINT, named="oid"), SqlType(Kind.BIGINT, named="regclass")
EMPTY: dict[str, tuple[tuple[str | None, SqlType], ...]] = {
    "pg_partition_ancestors": ((None, _REGCLASS),),
    "pg_partition_tree": (("relid", _REGCLASS), ("parentrelid", _REGCLASS), ("isleaf", BOOLEAN), ("level", INTEGER)),
    "aclexplode": (("grantor", _OID), ("grantee", _OID), ("privilege_type", TEXT), ("is_grantable", BOOLEAN)),
    "pg_options_to_table": (("option_name", TEXT), ("option_value", TEXT)),
    LISTENING: ((None, TEXT),),
    "pg_get_keywords": (("word", TEXT), ("catcode", SqlType(Kind.TEXT, named='"char"')), ("barelabel", BOOLEAN),
                        ("catdesc", TEXT), ("baredesc", TEXT)),
}  # fmt: skip
RESERVED = ("analyse", "analyze", "asc", "desc", "do", "ilike", "isnull", "limit", "notnull", "offset", "placing",
            "returning", "variadic")  # words of PostgreSQL that are not those of the standard
_SETS = (name for name in POPULATED if name not in POPULATED_ONE)
BUILT_IN = ("generate_series", "repeat_row", "unnest", *RECORDS, *_SETS, *BY_NAME, *EMPTY)
WEIGHTS = ("repeat_row", "repeat_row_non_negative")  # they have no columns
_SERIES_DIGITS = 18
MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def signature(name: str, args: Sequence[Expr], schema: Schema) -> Signature:
    """The function that runs, the call's arguments, cast, and its columns.

    Raises:
        UnknownName: no table function has that name.
        UnsupportedSQL: the function does not take these arguments.
    """
    match name:
        case "generate_series":
            return _generate_series(args)
        case "repeat_row":
            return _repeat_row(args)
        case "unnest":
            return _unnest(args)
    if name in RECORDS:
        raise UnsupportedSQL(f"{name} needs a list of columns", remedy=f"write FROM {name}(...) AS x (a integer)")
    if name in POPULATED:
        raise UnsupportedSQL(f"{name} is not supported here", remedy=f"write it in FROM, or {POPULATED[name]}")
    if name in BY_NAME:
        return BY_NAME[name](args)
    if name == "pg_get_keywords":
        facts: tuple[object, ...] = ("R", False, "reserved", "requires AS")
        lists: list[list[object]] = [list(RESERVED), *([fact] * len(RESERVED) for fact in facts)]
        return "unnest", tuple(Literal(values, array(type)) for values, (_, type) in zip(
            lists, EMPTY[name], strict=True)), EMPTY[name]
    if name in EMPTY:
        return "unnest", tuple(Literal([], array(type)) for _, type in EMPTY[name]), EMPTY[name]
    if schema.reduce(name) is not None:
        raise UnsupportedSQL(f"{name} is a reduce, which takes a table", remedy=f"write {name}(TABLE t PARTITION BY k)")
    columns = schema.table_function(name)
    if columns is None:
        raise UnknownName("table function", name, sorted({*BUILT_IN, *schema.table_functions()}), code="42883")
    if not args:
        raise UnsupportedSQL(f"{name}() needs an argument: the engine calls it for the rows of its arguments",
                             remedy=f"write {name}(...) of a column or a constant")
    return name, tuple(_known(arg) for arg in args), columns


def returns_rows(name: str, schema: Schema) -> bool:
    """Whether a function of that name returns rows."""
    return name in BUILT_IN or schema.table_function(name) is not None


def _generate_series(args: Sequence[Expr]) -> Signature:
    """A series of integers, or of timestamps with an interval; a series over dates is timestamptz, as in PostgreSQL."""
    kinds = {arg.type.kind for arg in args} - {Kind.UNKNOWN}
    if len(args) not in (2, 3):
        raise _wrong("generate_series", args)
    if kinds and kinds <= set(INTEGERS):
        type = BIGINT if Kind.BIGINT in kinds else INTEGER
        return "generate_series", tuple(functions.cast(arg, type) for arg in args), ((None, type),)
    if kinds and kinds <= {*INTEGERS, Kind.NUMERIC}:
        return _series_of_numerics(args)
    ends = {arg.type.kind for arg in args[:2]} - {Kind.UNKNOWN}
    if (ends or len(kinds) == 1) and ends <= set(MOMENTS):  # two texts and an interval are moments with a zone
        if len(args) == 2 or args[2].type.kind not in (Kind.INTERVAL, Kind.UNKNOWN):
            raise UnsupportedSQL("generate_series over dates or timestamps needs an interval as its step",
                                 remedy="write generate_series(first, last, interval '1 day')")
        type = TIMESTAMP if Kind.TIMESTAMP in ends and Kind.TIMESTAMPTZ not in ends else TIMESTAMPTZ
        first, last = (functions.cast(arg, type) for arg in args[:2])
        return "generate_series", (first, last, functions.cast(args[2], INTERVAL)), ((None, type),)
    raise _wrong("generate_series", args)


def _series_of_numerics(args: Sequence[Expr]) -> Signature:
    """The values have the decimals of the argument that has most of them, and 18 digits, which fit into 64 bits."""
    exact = functions.unify([functions.cast(arg, SqlType(Kind.NUMERIC)) for arg in args])
    scale = exact[0].type.scale or 0
    if scale > _SERIES_DIGITS:
        raise UnsupportedSQL(f"generate_series with {scale} decimals", remedy="round the arguments")
    type = SqlType(Kind.NUMERIC, _SERIES_DIGITS, scale)
    return "generate_series", tuple(functions.cast(arg, type, explicit=True) for arg in exact), ((None, type),)


def _repeat_row(args: Sequence[Expr]) -> Signature:
    if len(args) != 1 or args[0].type.kind not in (*INTEGERS, Kind.UNKNOWN):
        raise _wrong("repeat_row", args)
    return "repeat_row", (functions.cast(args[0], BIGINT),), ()


def _unnest(args: Sequence[Expr]) -> Signature:
    if len(args) != 1 or args[0].type.kind is not Kind.ARRAY or args[0].type.element is None:
        raise _wrong("unnest", args)
    return "unnest", (flat(args[0]),), ((None, innermost(args[0].type)),)


def _known(arg: Expr) -> Expr:
    return functions.cast(arg, TEXT) if arg.type == UNKNOWN else arg


TAKES = {
    "generate_series": "(first, last[, step]) of exact numbers; (first, last, interval) of dates or timestamps",
    "repeat_row": "one integer, the weight",
    "unnest": "one array",
}


def _wrong(name: str, args: Sequence[Expr]) -> UnsupportedSQL:
    types = ", ".join("unknown literal" if arg.type == UNKNOWN else str(arg.type) for arg in args)
    return UnsupportedSQL(f"no table function {name}({types})", remedy=f"{name} takes {TAKES[name]}", code="42883")
