"""Casts of rows: to the text that PostgreSQL writes, to another type of rows, and from a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import TRUE, Call, Cast, Expr, Literal
from halfjoin.sql.functions.padding import padded
from halfjoin.sql.functions.record_values import INSTEAD, ROW, is_record, is_there, members
from halfjoin.sql.functions.row_text import members_of_text
from halfjoin.sql.types import BOOLEAN, STRINGS, TEXT, UNKNOWN, Kind, SqlType, with_digits

Caster: TypeAlias = Callable[[Expr, SqlType, bool], Expr]  # `casting.cast`


def cast_row(cast: Caster, value: Expr, type: SqlType, explicit: bool) -> Expr:
    """A cast from a row, or to one.

    Raises:
        UnsupportedSQL: there is no such cast.
    """
    if not is_record(value):
        return _from_text(cast, value, type, explicit)
    if type.kind in STRINGS:
        return cast(_text(cast, value), type, True)
    if type.kind is not Kind.RECORD:
        raise UnsupportedSQL(f"cannot cast type {value.type} to {type}", remedy=INSTEAD, code="42846")
    if isinstance(value, Literal):
        return Literal(None, with_digits(type))
    if len(value.type.fields) != len(type.fields):
        few = "few" if len(value.type.fields) < len(type.fields) else "many"
        raise UnsupportedSQL(f"cannot cast type {value.type} to {type}: the row has too {few} columns", code="42846")
    pairs = zip(members(value), (field for _, field in type.fields), strict=True)
    made = [cast(one, field, explicit or not _may_be_cut(one.type, field)) for one, field in pairs]
    return _row(is_there(value), type, made)


def _may_be_cut(given: SqlType, field: SqlType) -> bool:
    """Whether an explicit cast to the field's type may cut a text in silence. Other casts of members are explicit:
    those of VALUES have the types of all its rows, which is text where they are not known."""
    return given.kind is field.kind is Kind.RECORD or (field.kind in STRINGS and field.precision is not None)


def _row(there: Expr, type: SqlType, members: Sequence[Expr]) -> Expr:
    """A row of a type, where a numeric without precision has the digits of its value."""
    fields = tuple((name, one.type) for (name, _), one in zip(type.fields, members, strict=True))
    return Call(ROW, (there, *members), replace(type, fields=fields))


def _from_text(cast: Caster, value: Expr, type: SqlType, explicit: bool) -> Expr:
    if value.type.kind not in (Kind.UNKNOWN, *(STRINGS if explicit else ())):
        raise UnsupportedSQL(f"cannot cast type {value.type} to {type}", remedy=f"write ROW(a, b)::{type}",
                             code="42846" if explicit else "42804")  # fmt: skip
    if not isinstance(value, Literal):
        return Cast(value, with_digits(type))
    if value.value is None:
        return Literal(None, with_digits(type))
    texts = members_of_text(str(value.value), len(type.fields))
    return _row(TRUE, type, [cast(Literal(text, UNKNOWN), wanted, False)
                             for text, (_, wanted) in zip(texts, type.fields, strict=True)])


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
