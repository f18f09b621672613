"""Takes rows apart: a bound relation whose columns may be rows becomes one whose columns hold their members.

The binder treats a row as a value like others: an output of a subquery, a branch of CASE, a key of GROUP BY. A column
`r` that is a row becomes a column that tells whether the row is there, and one for each member; what was computed for
`r` is computed for each of them. So rows are grouped, sorted, joined and united by their members.

Rows are single values only at rest: in the columns of tables and views, which a scan takes apart and `at_rest` puts
together, in arrays, and as arguments of functions of arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.row_parts import Parts, condition, of_column, of_value, parts, scalar, whole
from halfjoin.sql.expr import FALSE, TRUE, Column, Expr
from halfjoin.sql.functions.order import key_in_order
from halfjoin.sql.functions.record_values import INSTEAD, is_record
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Fed,
    Filter,
    Join,
    Loop,
    Once,
    Outer,
    Project,
    Relation,
    Scan,
    Semi,
    SortKey,
    TableFunction,
    TopK,
    UnionAll,
    UserReduce,
    Values,
    Window,
    WindowCall,
    with_inputs,
)

if TYPE_CHECKING:
    from halfjoin.sql.bind.context import Context

WHOLE = frozenset(("array_agg", "count"))  # aggregates that take a row as one value
Made = TypeVar("Made", AggregateCall, WindowCall)


def apart(relation: Relation) -> Relation:
    """The relation without rows as values."""
    relation = with_inputs(relation, apart)
    match relation:
        case Values(columns=columns, rows=rows):
            return replace(relation, columns=_columns(columns), rows=tuple(map(_values, rows)))
        case Join() | Once():
            return relation
        case Scan():
            return _opened(relation)
        case Fed():
            return _fed(relation)
        case UnionAll(columns=columns):
            return replace(relation, columns=_columns(columns))
        case TableFunction(args=args):
            return _opened(replace(relation, args=tuple(map(scalar, args))))
        case Filter(predicate=predicate):
            return replace(relation, predicate=condition(predicate))
        case Project(items=items):
            return replace(relation, items=_items(items))
        case Aggregate(keys=keys, calls=calls):
            return replace(relation, keys=_items(keys), calls=_calls(calls))
        case Window(partition=partition, order=order, calls=called):
            return replace(relation, partition=_values(partition), order=order_apart(order), calls=_calls(called))
        case TopK(partition=partition, order=order):
            return replace(relation, partition=_values(partition), order=order_apart(order))
        case UserReduce(keys=keys, takes=takes, order=order):
            return replace(relation, keys=_items(keys), order=order_apart(order),
                           takes=tuple((name, scalar(value)) for name, value in takes))
        case Outer(on=on) | Semi(on=on):
            return replace(relation, on=condition(on))
        case Loop(bindings=bindings, columns=columns):
            made = tuple(replace(one, relation=apart(one.relation), names=tuple(
                name for given, column in zip(one.names, one.relation.columns, strict=True)
                for name in _named(given, column))) for one in bindings)  # fmt: skip
            return replace(relation, bindings=made, columns=_columns(columns))


def _opened(relation: Relation) -> Relation:
    """A relation whose columns hold rows as values, with the columns of their parts instead."""
    if not any(map(is_record, relation.columns)):
        return relation
    read = tuple(part for column in relation.columns
                 for part in (of_value(column).flat() if is_record(column) else (column,)))  # fmt: skip
    return Project(relation, tuple(zip(_columns(relation.columns), read, strict=True)))


def at_rest(relation: Relation, context: Context) -> Relation:
    """The same relation, taken apart below; its columns of rows hold values."""
    if not context.records:
        return relation
    columns, relation = relation.columns, apart(relation)
    if not any(map(is_record, columns)):
        return relation
    items = tuple((column, whole(of_column(column.name, column.type, column.nullable), column.type)
                   if is_record(column) else column) for column in columns)  # fmt: skip
    return Project(relation, items)


def _fed(relation: Fed) -> Relation:
    """The rows of a loop's binding, whose columns are called `c1`, `c2` and so on."""
    if not any(map(is_record, relation.columns)):
        return relation
    columns, alias = _columns(relation.columns), f"{relation.alias} apart"
    read = tuple(replace(column, name=f"{alias}.c{number}") for number, column in enumerate(columns, 1))
    return Project(replace(relation, alias=alias, columns=read), tuple(zip(columns, read, strict=True)))


def _named(name: str, column: Column) -> Iterable[str]:
    return (name,) if not is_record(column) else (part.name for part in _columns([replace(column, name=name)]))


def _columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns, with those of a row's parts in place of it."""
    if not any(is_record(column) for column in columns):
        return tuple(columns)
    return tuple(part for column in columns for part in _values((column,)) if isinstance(part, Column))


def _values(values: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(part for value in values for part in (parts(value).flat() if is_record(value) else (scalar(value),)))


def _items(items: Sequence[tuple[Column, Expr]]) -> tuple[tuple[Column, Expr], ...]:
    return tuple(item for column, value in items
                 for item in zip(_columns((column,)), _values((value,)), strict=True))  # fmt: skip


def _calls(calls: Sequence[tuple[Column, Made]]) -> tuple[tuple[Column, Made], ...]:
    return tuple(item for column, call in calls for item in _call(column, call))


def _call(column: Column, call: Made) -> list[tuple[Column, Made]]:
    """A call that gives one of the rows that it takes, for each part of these."""
    call = replace(call, condition=call.condition and scalar(call.condition))
    if isinstance(call, AggregateCall):
        call = replace(call, order=order_apart(call.order))
    if not any(map(is_record, call.args)) or call.function in WHOLE:
        return [(column, replace(call, args=tuple(map(scalar, call.args))))]
    if isinstance(call, WindowCall) and call.ignore_nulls:
        raise UnsupportedSQL(f"{call.function} of a row with IGNORE NULLS is not supported", remedy=INSTEAD)
    flat = [parts(arg).flat() if is_record(arg) else None for arg in call.args]
    plain = [scalar(arg) if one is None else arg for arg, one in zip(call.args, flat, strict=True)]
    return [(part, replace(call, type=part.type, args=tuple(
        value if one is None else one[place] for value, one in zip(plain, flat, strict=True))))
        for place, part in enumerate(_columns((column,)))]


def order_apart(order: Iterable[SortKey]) -> tuple[SortKey, ...]:
    """Sort keys, with those of a row's members in place of it: a NULL member is greater than others."""
    keys: list[SortKey] = []
    for key in order:
        if not is_record(key.expr):
            keys.append(replace(key, expr=scalar(key.expr)))
            continue
        row = parts(key.expr)
        if row.there != TRUE:
            keys.append(replace(key, expr=_missing(row.there)))
        keys += [key_in_order(SortKey(member, key.descending, key.descending)) for member in _in_order(row)]
    return tuple(keys)


def _in_order(row: Parts) -> Iterator[Expr]:
    """What orders rows that are there: their members, of which a row that is not there is a NULL."""
    for member in row.members:
        if isinstance(member, Parts):
            yield _missing(member.there)
            yield from _in_order(member)
        else:
            yield member


def _missing(there: Expr) -> Expr:
    """NULL for a row that is not there, true for one that is."""
    return functions.resolve("nullif", (there, FALSE))
