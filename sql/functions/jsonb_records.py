"""json_to_record, jsonb_to_recordset and their kin: objects as rows of the columns that a list after AS gives.

A column is an array with the value of each object, which is unnested.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import cast
from halfjoin.sql.functions.record_values import ROW, is_there, members
from halfjoin.sql.functions.resolve import resolve
from halfjoin.sql.types import INTEGER, JSON, JSONB, STRINGS, TEXT, Kind, SqlType, array

RECORDS = ("jsonb_to_record", "jsonb_to_recordset", "json_to_record", "json_to_recordset")
POPULATED = {name.replace("to", "populate"): name for name in RECORDS}  # into rows of a table
POPULATED_ONE = ("jsonb_populate_record", "json_populate_record")


def _read(name: str) -> SqlType:
    """The type that a function takes objects of."""
    return JSONB if name.startswith("jsonb") else JSON


def record_columns(name: str, args: Sequence[Expr], columns: Sequence[tuple[str, SqlType]],
                   base: Sequence[Expr] = ()) -> tuple[Expr, ...]:
    """The array of each column's values. `base`: the values of keys that an object has not; NULLs if none are given.

    Raises:
        UnsupportedSQL: the argument is not a jsonb, or no text is a value of a column's type.
    """
    read = _read(name)
    if len(args) != 1 or args[0].type.kind not in (read.kind, Kind.UNKNOWN):
        raise UnsupportedSQL(f"{name} takes one {read}", wrong=True)
    objects = cast(args[0], read)
    if name.endswith("_record"):
        objects = Call("jsonb only object", (objects,), read)
    if name.endswith("_record") and not base and any(map(_needs_text, (type for _, type in columns))):
        return one_record(name, Literal(None, SqlType(Kind.RECORD, fields=tuple(columns))), args[0])
    values = base or [Literal(None, type) for _, type in columns]
    return tuple(_values(objects, column, type, value) for (column, type), value in zip(columns, values, strict=True))


def populated(name: str, base: Expr, given: Expr) -> Expr:
    """`jsonb_populate_record(base, j)` or json_populate_record, by its name: the row with the values of an
    object's keys; of others, with those of `base`.

    Raises:
        UnsupportedSQL: no text is a value of a field's type.
    """
    read = _read(name)
    j = cast(given, read)
    found = resolve("->", (Call("jsonb only object", (j,), read), Literal(0, INTEGER)))
    values = []
    for (field, type), before in zip(base.type.fields, members(base), strict=True):
        key = Literal(field, TEXT)
        part = resolve("->", (found, key))
        if type.kind is Kind.RECORD:
            value = populated(name, before, part)
        elif type.kind is Kind.ARRAY:
            value = _array(part, resolve("->>", (found, key)), type)
        else:  # a text that is too long for its field is an error
            value = cast(part if type.kind in _OF_JSON else resolve("->>", (found, key)), type,
                         explicit=type.kind not in STRINGS)
        values.append(resolve("case", (resolve("is not null", (part,)), value, before)))
    there = resolve("or", (resolve("is not null", (j,)), resolve("is true", (is_there(base),))))
    return Call(ROW, (there, *values), base.type)


def _array(part: Expr, text: Expr, type: SqlType) -> Expr:
    """An array of the elements of one of JSON, or of a text such as `{1,2}`."""
    element = type.element
    if element is None or element.kind in (Kind.ARRAY, Kind.RECORD, *_OF_JSON) or (
            element.precision is not None and element.kind in (Kind.VARCHAR, Kind.CHAR)):
        raise UnsupportedSQL(f"a field of type {type} from JSON is not supported",
                             remedy="name it text[] or jsonb, and cast it")
    items = cast(Call("jsonb array texts", (part,), array(TEXT)), type, explicit=True)
    kind = resolve(f"{part.type}_typeof", (part,))
    return resolve("case", (
        resolve("=", (kind, Literal("string", TEXT))), cast(text, type, explicit=True),
        resolve("<>", (kind, Literal("null", TEXT))), items))


_OF_JSON = (Kind.JSON, Kind.JSONB)


def one_record(name: str, base: Expr, given: Expr) -> tuple[Expr, ...]:
    """The arrays, to be unnested, of the values of the one row that `populated` makes.

    Raises:
        UnsupportedSQL: no text is a value of a field's type. Arrays would be unnested, too.
    """
    return tuple(resolve("array", (value,)) for value in members(populated(name, base, given)))


def _check(type: SqlType) -> None:
    if _needs_text(type):
        raise UnsupportedSQL(f"a column of type {type} in a list of columns is not supported",
                             remedy="write text or jsonb, and cast it")


def _needs_text(type: SqlType) -> bool:
    """Whether values of the type are made of each value of JSON by itself."""
    return type.kind is Kind.ARRAY or (type.precision is not None and type.kind is not Kind.NUMERIC)


def _values(objects: Expr, column: str, type: SqlType, base: Expr) -> Expr:
    """The values of a column, with that of `base` where an object has no such key."""
    _check(type)
    key = Literal(column, TEXT)
    if not isinstance(base, Literal):
        raise UnsupportedSQL("a base row that is no constant is not supported", remedy="write coalesce(x, its value)")
    missing = cast(base, TEXT, explicit=True) if base.value is not None else None
    args = (objects, key) if missing is None else (objects, key, missing)
    if type.kind in _OF_JSON:
        return cast(Call("jsonb field values", args, array(objects.type)), array(type), explicit=True)
    return cast(Call("jsonb field texts", args, array(TEXT)), array(type), explicit=True)
