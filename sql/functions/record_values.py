"""Rows as values in expressions: the row of some members, and the members of a row.

A row is a Call of `row` while a query is bound: whether it is there, then its members. A row that is not there is NULL
as a whole, and its members are NULL. `bind.apart` takes rows apart before anything is computed: what groups or sorts
rows sees their members.

At rest, in a column of a table or view and in an array, a row is one value. `row value` puts it together, `row is
given` (true or NULL) and `member of value` take it apart again. `row column` marks a column that holds such values
already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halfjoin.sql.expr import FALSE, TRUE, Call, Expr, Literal
from halfjoin.sql.types import BOOLEAN, INTEGER, TEXT, UNKNOWN, Kind, SqlType

ROW, MEMBER, THERE = "row", "member of row", "row is there"
VALUE, FIELD, GIVEN, COLUMN = "row value", "member of value", "row is given", "row column"
INSTEAD = "give each member a column of its own, or write to_jsonb(ROW(a, b)) or ROW(a, b)::text"


def is_record(expr: Expr) -> bool:
    """Whether an expression is a row."""
    return expr.type.kind is Kind.RECORD


def record(names: Sequence[str], values: Sequence[Expr], there: Expr = TRUE, named: str = "") -> Expr:
    """The row of some members."""
    fields = tuple((name, value.type) for name, value in zip(names, values, strict=True))
    return Call(ROW, (there, *values), SqlType(Kind.RECORD, named=named, fields=fields))


def open_type(value: Expr) -> SqlType:
    """The type of a value where a common type is looked for: NULLs that are members of a row have none yet."""
    if not isinstance(value, Call) or value.function != ROW:
        return value.type
    types = (UNKNOWN if one == Literal(None, TEXT) else open_type(one) for one in value.args[1:])
    return replace(value.type, fields=tuple(
        (name, type) for (name, _), type in zip(value.type.fields, types, strict=True)))


def is_there(value: Expr) -> Expr:
    """Whether a row is there: true, or NULL or false. Apart (`row_parts`) it is true or NULL."""
    if isinstance(value, Literal):
        return FALSE
    if isinstance(value, Call) and value.function == ROW:
        return value.args[0]
    return Call(THERE, (value,), BOOLEAN)


def member(value: Expr, number: int) -> Expr:
    """A member of a row, from 0."""
    type = value.type.fields[number][1]
    if isinstance(value, Literal):
        return Literal(None, type)
    if isinstance(value, Call) and value.function == ROW:
        return value.args[number + 1]
    return Call(MEMBER, (value, Literal(number, INTEGER)), type)


def place_of(number: Expr) -> int:
    """The number of a member, as `member of row` and `member of value` have it."""
    assert isinstance(number, Literal) and isinstance(number.value, int)
    return number.value


def members(value: Expr) -> tuple[Expr, ...]:
    """All members of a row."""
    return tuple(member(value, number) for number in range(len(value.type.fields)))


def as_it_was(value: Call) -> Expr:
    """What `row value` puts together; the row itself if it only takes a row at rest apart."""
    there, *parts = value.args
    row = there.args[0] if isinstance(there, Call) and there.function == GIVEN else there
    same = row.type == value.type and all(
        part == Call(FIELD, (row, Literal(number, INTEGER)), part.type) for number, part in enumerate(parts))
    return row if same else value
