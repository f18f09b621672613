"""jsonb_to_record and jsonb_to_recordset: objects as rows of the columns that a list after AS gives.

A column is an array with the value of each object, which is unnested.
"""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import cast
from halfjoin.sql.types import JSONB, TEXT, Kind, SqlType, array

RECORDS = ("jsonb_to_record", "jsonb_to_recordset")
POPULATED = {"jsonb_populate_record": RECORDS[0], "jsonb_populate_recordset": RECORDS[1]}  # into rows of a table


def record_columns(name: str, args: Sequence[Expr], columns: Sequence[tuple[str, SqlType]]) -> tuple[Expr, ...]:
    """The array of each column's values.

    Raises:
        UnsupportedSQL: the argument is not a jsonb, or no text is a value of a column's type.
    """
    if len(args) != 1 or args[0].type.kind not in (Kind.JSONB, Kind.UNKNOWN):
        raise UnsupportedSQL(f"{name} takes one jsonb", wrong=True)
    objects = cast(args[0], JSONB)
    if name == "jsonb_to_record":
        objects = Call("jsonb only object", (objects,), JSONB)
    return tuple(_values(objects, column, type) for column, type in columns)


def _values(objects: Expr, column: str, type: SqlType) -> Expr:
    if type.kind is Kind.ARRAY or (type.precision is not None and type.kind is not Kind.NUMERIC):
        raise UnsupportedSQL(f"a column of type {type} in a list of columns is not supported",
                             remedy="write text or jsonb, and cast it")
    if type.kind is Kind.JSONB:
        return Call("jsonb field values", (objects, Literal(column, TEXT)), array(JSONB))
    texts = Call("jsonb field texts", (objects, Literal(column, TEXT)), array(TEXT))
    return cast(texts, array(type), explicit=True)
