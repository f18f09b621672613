"""Casts of rows: to the text that PostgreSQL writes, to another type of rows, and from a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import TRUE, Call, Expr, Literal
from halfjoin.sql.functions.padding import padded
from halfjoin.sql.functions.record_values import INSTEAD, ROW, is_record, is_there, members
from halfjoin.sql.functions.row_text import members_of_text
from halfjoin.sql.types import BOOLEAN, STRINGS, TEXT, UNKNOWN, Kind, SqlType

Caster: TypeAlias = Callable[[Expr, SqlType, bool], Expr]  # `casting.cast`


def cast_row(cast: Caster, value: Expr, type: SqlType) -> Expr:
    """A cast from a row, or to one.

    Raises:
        UnsupportedSQL: there is no such cast.
    """
    if not is_record(value):
        return _from_text(cast, value, type)
    if type.kind in STRINGS:
        return cast(_text(cast, value), type, True)
    if type.kind is not Kind.RECORD:
        raise UnsupportedSQL(f"cannot cast type {value.type} to {type}", remedy=INSTEAD, code="42846")
    if isinstance(value, Literal):
        return Literal(None, type)
    if len(value.type.fields) != len(type.fields):
        few = "few" if len(value.type.fields) < len(type.fields) else "many"
        raise UnsupportedSQL(f"cannot cast type {value.type} to {type}: the row has too {few} columns", code="42846")
    made = [cast(one, wanted, True) for one, (_, wanted) in zip(members(value), type.fields, strict=True)]
    return Call(ROW, (is_there(value), *made), type)


def _from_text(cast: Caster, value: Expr, type: SqlType) -> Expr:
    if not isinstance(value, Literal) or value.type.kind not in (Kind.UNKNOWN, *STRINGS):
        raise UnsupportedSQL(f"a {value.type} that is no constant cannot be cast to {type}",
                             remedy=f"write ROW(a, b)::{type}", code="42846")  # fmt: skip
    if value.value is None:
        return Literal(None, type)
    texts = members_of_text(str(value.value), len(type.fields))
    return Call(ROW, (TRUE, *(cast(Literal(text, UNKNOWN), wanted, True)
                              for text, (_, wanted) in zip(texts, type.fields, strict=True))), type)


def _text(cast: Caster, value: Expr) -> Expr:
    texts = tuple(_member_text(cast, one) for one in members(value))
    made = Call("row text", texts, TEXT) if texts else Literal("()", TEXT)
    there = is_there(value)
    return made if there == TRUE else Call("case", (there, made, Literal(None, TEXT)), TEXT)


def _member_text(cast: Caster, value: Expr) -> Expr:
    """The text of a member as it is in a row, before quotes."""
    if is_record(value):
        return _text(cast, value)
    if value.type != BOOLEAN:
        return cast(padded(value), TEXT, True)
    letters = (value, Literal("t", TEXT), Call("not", (value,), BOOLEAN), Literal("f", TEXT), Literal(None, TEXT))
    return Call("case", letters, TEXT)
