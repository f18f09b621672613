"""Outer and semi-joins with a comparison beside their key, where one row can answer for all that have the key.

In `NOT EXISTS (SELECT 1 FROM price q WHERE q.item = p.item AND q.day > p.day)`, which finds the newest row of each key,
some row is greater than `p.day` if the greatest is. So the extremes of each key are kept, and compared. Pairs of rows
would be as many as the square of a key's rows. And where the key tells the rows of the looked-up side apart, as a
PRIMARY KEY does, its one row is compared itself, whatever the condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.facts import Facts
from halfjoin.planner.lonely import with_anti_joins
from halfjoin.planner.nulls import rejects
from halfjoin.planner.reduces.unique import identified
from halfjoin.planner.rules.fold_constants import fold
from halfjoin.planner.rules.split_conjuncts import split
from halfjoin.sql.expr import (
    FLIPPED,
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    columns_of,
    conjunction,
    is_temporal,
    substitute,
)
from halfjoin.sql.functions import fallible, resolve
from halfjoin.sql.functions.aggregates import resolve_aggregate
from halfjoin.sql.functions.chance import draws
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Semi,
    with_inputs,
)
from halfjoin.sql.types import looks_vary

_EXTREMES = {"<>": ("min", "max"), "<": ("max",), "<=": ("max",), ">": ("min",), ">=": ("min",)}  # of `x op ours`


@dataclass(frozen=True, slots=True)
class _On:
    """An ON in its parts. `other`: the looked-up side, with the conditions on it alone. `equalities` are its key, and
    `keys` the sides of them that are its own. `rest`: the other conditions; some read both sides."""

    other: Relation
    equalities: tuple[Expr, ...]
    keys: tuple[Expr, ...]
    rest: tuple[Expr, ...]


def with_one_partner(relation: Relation, facts: Facts) -> Relation:
    """The same rows, where every outer, semi- and anti-join that one row can answer asks only that row."""
    return _asking_one(with_anti_joins(relation), facts)


def _asking_one(relation: Relation, facts: Facts) -> Relation:
    relation = with_inputs(relation, lambda one: _asking_one(one, facts))
    match relation:
        case Outer(full=False):
            return _outer(relation, facts)
        case Semi():
            return _semi(relation, facts)
        case _:
            return relation


def _outer(join: Outer, facts: Facts) -> Relation:
    on = _on(join.on, join.right)
    if on is None or not _is_unique(on, facts):
        return join
    joined, names = Outer(join.left, on.other, conjunction(on.equalities)), {c.name for c in on.other.columns}
    condition = _of_partner(on, joined) if any(map(fallible, on.rest)) else _beside(conjunction(on.rest), joined)
    there = None if condition is None else resolve("is true", (condition,))
    return join if there is None else Project(joined, tuple(
        (column, resolve("case", (there, column, Literal(None, column.type))) if column.name in names else column)
        for column in joined.columns))  # fmt: skip


def _semi(semi: Semi, facts: Facts) -> Relation:
    on = _on(semi.on, semi.other)
    if on is not None and not _is_unique(on, facts):
        on = _of_extremes(on)
    if on is None:
        return semi
    condition = conjunction(on.rest)
    if semi.anti:
        joined = Outer(semi.input, on.other, conjunction(on.equalities))
        certain = rejects(condition, {column.name for column in on.other.columns}) and not fallible(condition)
        matched = _beside(condition, joined) if certain else _of_partner(on, joined)
        if matched is None:
            return semi
        kept: Relation = Filter(joined, resolve("is not true", (matched,)))
    else:
        kept = Filter(Join((semi.input, on.other)), conjunction((*on.equalities, condition)))
    return Project(kept, tuple((column, column) for column in semi.columns))


def _beside(condition: Expr, joined: Outer) -> Expr:
    """The condition over the columns of an outer join, which may be NULL."""
    return substitute(condition, {column.name: column for column in joined.columns})


def _of_partner(on: _On, joined: Outer) -> Expr | None:
    """The rest of an ON, computed only beside a partner, else NULL; None: no equality tells that there is one."""
    tells = [one for one in on.equalities if isinstance(one, Call) and one.function == "="]
    if not tells:
        return None
    condition = _beside(conjunction(on.rest), joined)
    return resolve("case", (_beside(tells[0], joined), condition, Literal(None, condition.type)))


def _on(on: Expr, other: Relation) -> _On | None:
    """The parts of an ON that has a condition on both sides beside its equalities, and whose key cannot fail."""
    names = {column.name for column in other.columns}
    parts = [part for part in split(fold(on)) if part != TRUE]
    if any(draws(part) or is_temporal(part) for part in parts):
        return None
    keys = [(part, key) for part in parts if (key := _key(part, names)) is not None]
    alone = tuple(part for part in parts if columns_of(part) and columns_of(part) <= names)
    rest = tuple(part for part in parts if part not in alone and all(part is not one for one, _ in keys))
    if not any(columns_of(part) & names for part in rest) or any(fallible(part) for part in parts if part not in rest):
        return None
    return _On(
        Filter(other, conjunction(alone)) if alone else other, tuple(part for part, _ in keys),
        tuple(key for _, key in keys), rest,
    )  # fmt: skip


def _key(condition: Expr, names: set[str]) -> Expr | None:
    """The looked-up side of an equality between columns of both sides."""
    if not (isinstance(condition, Call) and condition.function in ("=", "is not distinct from")):
        return None
    for ours, theirs in (condition.args, condition.args[::-1]):
        if columns_of(ours) and columns_of(ours) <= names and columns_of(theirs) and not columns_of(theirs) & names:
            return None if looks_vary(ours.type) else ours
    return None


def _is_unique(on: _On, facts: Facts) -> bool:
    return identified(on.other, [key.name for key in on.keys if isinstance(key, Column)], facts)


def _of_extremes(on: _On) -> _On | None:
    """The ON of a semi-join over one row for each key, with the extremes of what is compared."""
    names = {column.name for column in on.other.columns}
    apart = [part for part in on.rest if columns_of(part) & names]
    if len(apart) > 1 or any(map(fallible, on.rest)) or (compared := next(_compared(apart[0], names), None)) is None:
        return None
    operator, value, bound = compared
    alias = f"{on.other.columns[0].name.rpartition('.')[0]}#extremes"
    keys = [Column(f"{alias}.key{number}", key.type) for number, key in enumerate(on.keys, 1)]
    calls = [(Column(f"{alias}.{name}", call.type), call) for name in _EXTREMES[operator]
             for call in [_call(name, value)] if call is not None]  # fmt: skip
    if not calls:
        return None
    rows = Aggregate(on.other, tuple(zip(keys, on.keys, strict=True)), tuple(calls))
    equalities = tuple(_with_key(*one) for one in zip(on.equalities, on.keys, keys, strict=True))
    found = [resolve(operator, (bound, column)) for column, _ in calls]
    asked = found[0] if len(found) == 1 else resolve("or", found)
    return _On(rows, equalities, tuple(keys), (*(part for part in on.rest if part is not apart[0]), asked))


def _compared(condition: Expr, names: set[str]) -> Iterator[tuple[str, Expr, Expr]]:
    """The operator, value and bound of a comparison `bound op value`, where only the value is of the looked-up side."""
    if isinstance(condition, Call) and condition.function in _EXTREMES:
        left, right = condition.args
        for operator, bound, value in ((condition.function, left, right), (FLIPPED[condition.function], right, left)):
            if columns_of(value) <= names and not columns_of(bound) & names:
                yield operator, value, bound


def _call(function: str, value: Expr) -> AggregateCall | None:
    """The extreme of a value; None: there is none that is compared as the value is."""
    try:
        call = resolve_aggregate(function, (value,))
    except UnsupportedSQL:
        return None
    return call if call.args == (value,) else None


def _with_key(equality: Expr, key: Expr, column: Column) -> Expr:
    assert isinstance(equality, Call)
    return resolve(equality.function, tuple(column if arg is key else arg for arg in equality.args))
