"""Takes rows in expressions apart, and puts them together as values at rest; see `apart`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import TRUE, Call, Cast, Column, Expr, Literal, conjunction, conjuncts, substitute
from halfjoin.sql.functions.record_values import (
    COLUMN,
    FIELD,
    GIVEN,
    INSTEAD,
    MEMBER,
    ROW,
    THERE,
    VALUE,
    is_record,
    place_of,
)
from halfjoin.sql.types import BOOLEAN, INTEGER, Kind, SqlType

IS_THERE = " is there"  # ends the name of the column that tells whether a row is there
_ABSENT = Literal(None, BOOLEAN)


@dataclass(frozen=True)
class Parts:
    """A row apart: whether it is there, which is true or NULL, and its members, which may be rows. `value`: the row as
    a value, if it is one at rest."""

    there: Expr
    members: tuple[Expr | Parts, ...]
    value: Expr | None = None

    def flat(self) -> tuple[Expr, ...]:
        """Whether it is there, then its members, those of members in their places."""
        return (self.there, *(one for part in self.members for one in (part.flat() if isinstance(part, Parts) else (
            part,))))  # fmt: skip


def parts(value: Expr) -> Parts:
    """A row apart."""
    type = value.type
    match value:
        case Column(name=name):
            return of_column(name, type, value.nullable)
        case Literal():
            return _nothing(type)
        case Call(function=function, args=(there, *members)) if function == ROW:
            return Parts(_true_or_null(scalar(there)), tuple(
                parts(one) if is_record(one) else scalar(one) for one in members))
        case Call(function="case", args=args):
            conditions = [scalar(condition) for condition in args[:-1:2]]
            branches = [parts(branch) for branch in (*args[1::2], args[-1])]
            return _chosen(conditions, branches)
        case Call(function="single row", args=(row, count)):
            return _each(parts(row), scalar(count))
        case Call(function=function, args=(row, number)) if function == MEMBER:
            made = parts(row).members[place_of(number)]
            assert isinstance(made, Parts)
            return made
        case Call(function=function, args=(column,)) if function == COLUMN:
            return of_value(column)
        case Call(args=args):
            return of_value(replace(value, args=tuple(map(scalar, args))))
        case Cast(arg=arg):
            return of_value(replace(value, arg=scalar(arg)))
    raise UnsupportedSQL("a row is not supported here", remedy=INSTEAD)


def _true_or_null(there: Expr) -> Expr:
    """Whether a row is there, as an outer join says it of a row that it does not find: false would be another key."""
    if isinstance(there, Column) or there == TRUE:
        return there
    if isinstance(there, Literal):
        return _ABSENT
    return Call("case", (there, TRUE, _ABSENT), BOOLEAN)


def of_value(value: Expr) -> Parts:
    """A row at rest, apart."""
    members = []
    for number, (_, field) in enumerate(value.type.fields):
        member = Call(FIELD, (value, Literal(number, INTEGER)), field)
        members.append(of_value(member) if field.kind is Kind.RECORD else member)
    return Parts(Call(GIVEN, (value,), BOOLEAN), tuple(members), value)


def whole(row: Parts, type: SqlType) -> Expr:
    """The row as one value."""
    if row.value is not None and row.value.type == type:
        return row.value
    members = [whole(one, field) if isinstance(one, Parts) else one
               for one, (_, field) in zip(row.members, type.fields, strict=True)]
    return Call(VALUE, (row.there, *members), type)


def of_column(name: str, type: SqlType, nullable: bool) -> Parts:
    """A column of rows, apart: the columns of its parts."""
    members = (f"{name} ({number})" for number in range(1, len(type.fields) + 1))
    return Parts(Column(name + IS_THERE, BOOLEAN, nullable), tuple(
        of_column(one, field, True) if field.kind is Kind.RECORD else Column(one, field)
        for one, (_, field) in zip(members, type.fields, strict=True)))


def _nothing(type: SqlType) -> Parts:
    return Parts(_ABSENT, tuple(_nothing(field) if field.kind is Kind.RECORD else Literal(None, field)
                              for _, field in type.fields))  # fmt: skip


def _chosen(conditions: Sequence[Expr], branches: Sequence[Parts]) -> Parts:
    def case(values: Sequence[Expr]) -> Expr:
        *rest, default = values
        args = [part for pair in zip(conditions, rest, strict=True) for part in pair]
        return Call("case", (*args, default), default.type)

    members = []
    for place, part in enumerate(branches[0].members):
        column = [branch.members[place] for branch in branches]
        rows = [one for one in column if isinstance(one, Parts)]
        members.append(_chosen(conditions, rows) if isinstance(part, Parts) else case(
            [one for one in column if not isinstance(one, Parts)]))  # fmt: skip
    return Parts(case([branch.there for branch in branches]), tuple(members))


def _each(row: Parts, count: Expr) -> Parts:
    def single(value: Expr) -> Expr:
        return Call("single row", (value, count), value.type)

    return Parts(single(row.there), tuple(
        _each(one, count) if isinstance(one, Parts) else single(one) for one in row.members))  # fmt: skip


def condition(value: Expr) -> Expr:
    """A condition, of which only matters where it is true: that two rows are equal is a chain of AND, to join by."""
    return conjunction(tuple(part for one in conjuncts(value) for part in _conditions(scalar(one))))


def _conditions(value: Expr) -> Iterator[Expr]:
    match value:
        case Call(function="case", args=(there, equal, Literal(None))):
            yield from conjuncts(there)
            yield from conjuncts(equal)
        case _:
            yield from conjuncts(value)


def scalar(value: Expr) -> Expr:
    """An expression without rows inside but as values at rest, as a row then is itself."""
    if is_record(value):
        return whole(parts(value), value.type)
    match value:
        case Call(function=function, args=(row, *rest)) if function in (THERE, MEMBER):
            made = parts(row)
            if function == THERE:
                return made.there
            (number,) = rest
            found = made.members[place_of(number)]
            assert not isinstance(found, Parts)
            return found
        case Call(args=args):
            return replace(value, args=tuple(map(scalar, args)))
        case Cast(arg=arg):
            return replace(value, arg=scalar(arg))
    return value


def over_columns(value: Expr, columns: Iterable[Column]) -> Expr:
    """`scalar` of an expression over the columns of a table."""
    rows: dict[str, Expr] = {one.name: Call(COLUMN, (one,), one.type) for one in columns if is_record(one)}
    return scalar(substitute(value, rows) if rows else value)
