"""jsonb_to_record and jsonb_to_recordset: objects as rows of the columns that a list after AS gives.

A column is an array with the value of each object, which is unnested.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import cast
from halfjoin.sql.functions.record_values import ROW, is_there, members
from halfjoin.sql.functions.signature import Resolve
from halfjoin.sql.types import INTEGER, JSONB, TEXT, Kind, SqlType, array

RECORDS = ("jsonb_to_record", "jsonb_to_recordset")
POPULATED = {"jsonb_populate_record": RECORDS[0], "jsonb_populate_recordset": RECORDS[1]}  # into rows of a table


def record_columns(name: str, args: Sequence[Expr], columns: Sequence[tuple[str, SqlType]],
                   base: Sequence[Expr] = ()) -> tuple[Expr, ...]:
    """The array of each column's values. `base`: the values of keys that an object has not; NULLs if none are given.

    Raises:
        UnsupportedSQL: the argument is not a jsonb, or no text is a value of a column's type.
    """
    if len(args) != 1 or args[0].type.kind not in (Kind.JSONB, Kind.UNKNOWN):
        raise UnsupportedSQL(f"{name} takes one jsonb", wrong=True)
    objects = cast(args[0], JSONB)
    if name == "jsonb_to_record":
        objects = Call("jsonb only object", (objects,), JSONB)
    values = base or [Literal(None, type) for _, type in columns]
    return tuple(_values(objects, column, type, value) for (column, type), value in zip(columns, values, strict=True))


def populated(resolve: Resolve, base: Expr, given: Expr) -> Expr:
    """`jsonb_populate_record(base, j)`: the row with the values of an object's keys; of others, with those of `base`.

    Raises:
        UnsupportedSQL: no text is a value of a field's type.
    """
    j = cast(given, JSONB)
    found = resolve("->", (Call("jsonb only object", (j,), JSONB), Literal(0, INTEGER)))
    values = []
    for (name, type), before in zip(base.type.fields, members(base), strict=True):
        _check(type)
        key = Literal(name, TEXT)
        if type.kind is Kind.RECORD:
            value = populated(resolve, before, resolve("->", (found, key)))
        else:
            value = cast(resolve("->" if type.kind is Kind.JSONB else "->>", (found, key)), type, explicit=True)
        values.append(resolve("case", (resolve("?", (found, key)), value, before)))
    there = resolve("or", (resolve("is not null", (j,)), resolve("is true", (is_there(base),))))
    return Call(ROW, (there, *values), base.type)


def _check(type: SqlType) -> None:
    if type.kind is Kind.ARRAY or (type.precision is not None and type.kind is not Kind.NUMERIC):
        raise UnsupportedSQL(f"a column of type {type} in a list of columns is not supported",
                             remedy="write text or jsonb, and cast it")


def _values(objects: Expr, column: str, type: SqlType, base: Expr) -> Expr:
    """The values of a column, with that of `base` where an object has no such key."""
    _check(type)
    key, as_text = Literal(column, TEXT), type.kind is not Kind.JSONB
    if not isinstance(base, Literal):
        raise UnsupportedSQL("a base row that is no constant is not supported", remedy="write coalesce(x, its value)")
    missing = cast(base, TEXT, explicit=True) if base.value is not None else None
    args = (objects, key) if missing is None else (objects, key, missing)
    if not as_text:
        return Call("jsonb field values", args, array(JSONB))
    return cast(Call("jsonb field texts", args, array(TEXT)), array(type), explicit=True)
