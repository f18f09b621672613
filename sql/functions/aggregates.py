"""Calls of aggregates: their types, and what each of them needs to be kept up to date.

`resolve_aggregate` gives a call its types. `decompose` says what adds up in it: sums to keep for each group, and the
result as an expression over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.expr import TRUE, Call, Expr, Literal, columns_of, walk
from halfjoin.sql.functions.aggregate_table import AGGREGATE_TABLE, AGGREGATES, ENTRIES
from halfjoin.sql.functions.casting import coerce
from halfjoin.sql.functions.decompose import SUMS, Decomposed, Part, adds_up, decompose, decompose_lifted, filtered
from halfjoin.sql.functions.jsonb_aggregates import collected
from halfjoin.sql.functions.order import check_equality, order_of, ordered_value
from halfjoin.sql.functions.record_values import is_record, is_there
from halfjoin.sql.functions.resolve import call, cast_all, choose
from halfjoin.sql.functions.signature import Function, Overload
from halfjoin.sql.relation import AggregateCall, SortKey
from halfjoin.sql.types import BOOLEAN, TEXT, UNKNOWN, Kind, SqlType
from halfjoin.sql.user_aggregate import UserAggregate

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema

__all__ = [
    "AGGREGATES", "AGGREGATE_TABLE", "ORDERED_SETS", "SUMS", "Decomposed", "Part", "adds_up",
    "decompose", "decompose_lifted", "filtered", "is_aggregate_name", "resolve_aggregate",
]  # fmt: skip

ORDERED_SETS = frozenset(("mode", "percentile_cont", "percentile_disc"))  # the argument is in WITHIN GROUP (ORDER BY x)
_KEEPS_ORDER = ORDERED_SETS | {"array_agg", "string_agg", "any_value"}
_IGNORES_COPIES = frozenset(("min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or", "any_value"))


def is_aggregate_name(name: str, schema: Schema) -> bool:
    """Whether an aggregate, built in or the user's, has that name."""
    return name in AGGREGATES or schema.aggregate(name) is not None


def resolve_aggregate(
    name: str, args: Sequence[Expr], *, distinct: bool = False, condition: Expr | None = None,
    order: Sequence[SortKey] = (), defined: UserAggregate | None = None,
) -> AggregateCall:  # fmt: skip
    """The typed call of the aggregate `name`, which is the user's if it is `defined`. `count(*)` has no arguments.

    `order` of an ordered-set aggregate (`mode`, `percentile_cont`, `percentile_disc`) is its WITHIN GROUP. DISTINCT and
    ORDER BY are left out of the call where they cannot change its result: a sum is the same in any order.

    Raises:
        UnknownName: there is no aggregate of that name.
        UnsupportedSQL: the arguments do not fit, or PostgreSQL refuses the call for another reason.
    """
    name = name.lower()
    if defined is None:
        name, args = collected(name, args, distinct=distinct, ordered=bool(order))
    if condition is not None:
        if condition.type not in (BOOLEAN, UNKNOWN):
            raise UnsupportedSQL(f"the condition of FILTER must be boolean, not {condition.type}", wrong=True)
        condition = coerce(condition, BOOLEAN)
    if defined is not None:
        return _of_user(defined, args, distinct, condition, order)
    if name == "count" and len(args) == 1 and is_record(args[0]) and not distinct:
        args = (Call("case", (is_there(args[0]), TRUE, Literal(None, BOOLEAN)), BOOLEAN),)
    entry = ENTRIES.get(name)
    if entry is None:
        raise UnknownName("aggregate", name, sorted(AGGREGATES))
    if name in ORDERED_SETS:
        _check_ordered_set(name, args, distinct, order)
        value = ordered_value(order[0].expr)
        if value is not order[0].expr and name == "percentile_cont":
            raise UnsupportedSQL(f"no function {name}({value.type})", wrong=True)
        args = (*args, order[0].expr)
    elif distinct:
        _check_distinct(args, order)
    if entry.check is not None and args:
        entry.check(args)
    if name in ("min", "max"):
        args = tuple(arg if arg.type.kind is Kind.JSONB else order_of(arg) for arg in args)
    elif distinct and name == "array_agg" and not order:
        order = tuple(SortKey(by) for arg in args if (by := order_of(arg)) is not arg or is_record(arg))
    typed = call(entry, choose(entry, args), args)
    values, type = typed.args, typed.type
    if name in ORDERED_SETS:
        order = (replace(order[0], expr=values[-1]),)
        values = values[:-1]
        _check_fraction(values)
    if name in ("min", "max") and type.kind is Kind.VARCHAR:
        type = TEXT
    return AggregateCall(
        name, values, type, distinct and name not in _IGNORES_COPIES, condition,
        tuple(order) if name in _KEEPS_ORDER else ())


def _of_user(
    defined: UserAggregate, args: Sequence[Expr], distinct: bool, condition: Expr | None, order: Sequence[SortKey]
) -> AggregateCall:  # fmt: skip
    if distinct:
        _check_distinct(args, order)
    entry = Function(defined.name, "aggregates", "", (Overload(tuple(map(_bare, defined.takes)), ""),))
    typed = cast_all(entry, choose(entry, args), args)  # as in PostgreSQL, a numeric keeps its digits
    return AggregateCall(defined.name, typed, defined.returns, distinct, condition,
                         () if defined.sums else tuple(order), defined.sums)  # fmt: skip


def _bare(type: SqlType) -> str:
    """The type as a signature names it, without precision and scale."""
    return f"{_bare(type.element)}[]" if type.element is not None else type.kind.value


def _check_ordered_set(name: str, args: Sequence[Expr], distinct: bool, order: Sequence[SortKey]) -> None:
    direct = 0 if name == "mode" else 1
    form = f"write {name}({'0.5' if direct else ''}) WITHIN GROUP (ORDER BY x)"
    if not order:
        raise UnsupportedSQL(f"WITHIN GROUP is required for ordered-set aggregate {name}", remedy=form, wrong=True)
    if distinct:
        raise UnsupportedSQL("cannot use DISTINCT with WITHIN GROUP", wrong=True)
    if len(args) != direct or len(order) != 1:
        raise UnsupportedSQL(f"{name} takes {direct} argument{'s' * (direct != 1)}, and one key in WITHIN GROUP",
                             remedy=form, wrong=True)  # fmt: skip


def _check_fraction(args: Sequence[Expr]) -> None:
    """A percentile's fraction is between 0 and 1; of several, they are written as an array."""
    for arg in args:
        if arg.type.kind is Kind.ARRAY and columns_of(arg) and not any(
            isinstance(part, Call) and part.function == "array" for part in walk(arg)):
            raise UnsupportedSQL("a column of arrays as the fractions of a percentile is not supported",
                                 remedy="write the array: ARRAY[a, b]")  # fmt: skip
        given = arg.value if isinstance(arg, Literal) else None
        for value in given if isinstance(given, list) else [given]:
            if isinstance(value, (int, float)) and not 0 <= value <= 1:
                raise UnsupportedSQL(f"percentile value {value:g} is not between 0 and 1", wrong=True)


def _check_distinct(args: Sequence[Expr], order: Sequence[SortKey]) -> None:
    if not args:
        raise UnsupportedSQL("DISTINCT needs an argument", remedy="name the column: count(DISTINCT x)", wrong=True)
    check_equality(*(arg.type for arg in args))
    if any(ordered_value(key.expr) not in args for key in order):
        raise UnsupportedSQL("in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                             wrong=True)  # fmt: skip
