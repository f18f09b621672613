"""The looked-up side of an outer or semi-join, and what its ON asks of it.

A side that is one collection, with conditions and computed columns, is an input of the join like any other: ON's
equalities are the key by which it is looked up. Any other side becomes a node first, and then it is one collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from halfjoin.planner.block import Match
from halfjoin.planner.nulls import is_null, never_null, rejects
from halfjoin.planner.rules.fold_constants import fold
from halfjoin.planner.rules.inline import inlined
from halfjoin.planner.rules.split_conjuncts import split
from halfjoin.sql.expr import FALSE, TRUE, Call, Column, Expr, Literal, columns_of, conjuncts, is_temporal, substitute
from halfjoin.sql.functions import fallible, resolve
from halfjoin.sql.relation import Filter, Project, Relation, Scan, Values
from halfjoin.sql.types import looks_vary


@dataclass(frozen=True)
class Side:
    """One collection or constant. `conditions` read its columns; `meanings` computes the relation's columns from them.
    """

    source: Scan | Values
    conditions: tuple[Expr, ...]
    meanings: Mapping[str, Expr]

    @property
    def names(self) -> frozenset[str]:
        """The names of the source's columns."""
        return frozenset(column.name for column in self.source.columns)

    def renamed(self, alias: str) -> Side:
        """The same side under another alias."""
        old = len(self.source.alias)
        columns = tuple(replace(c, name=f"{alias}{c.name[old:]}") for c in self.source.columns)
        change = {was.name: now for was, now in zip(self.source.columns, columns, strict=True)}
        return Side(
            replace(self.source, alias=alias, columns=columns),
            tuple(substitute(condition, change) for condition in self.conditions),
            {name: substitute(expr, change) for name, expr in self.meanings.items()},
        )


@dataclass(frozen=True, slots=True)
class On:
    """What an ON asks: equalities that are the key of the looked-up side, `conditions` on it alone, and conditions
    that do not read it, `own`. `rest`: what is none of them."""

    matches: tuple[Match, ...] = ()
    conditions: tuple[Expr, ...] = ()
    own: tuple[Expr, ...] = ()
    rest: tuple[Expr, ...] = ()


def guarded(match: Match, condition: Expr) -> Match:
    """A match of the rows for which a condition is true. In other rows the probe is NULL, so they match nothing."""
    return replace(match, probe=resolve("case", (condition, match.probe, Literal(None, match.probe.type))))


def unguarded(match: Match) -> tuple[Expr | None, Match]:
    """The condition of a guarded match, and the match without it. Where the key is equal to the probe, it is true."""
    match match.probe:
        case Call("case", (condition, probe, Literal(None))) if not match.null_safe:
            return condition, replace(match, probe=probe)
    return None, match


def side_of(relation: Relation) -> Side | None:
    """The relation as one collection or constant; None if it is more."""
    match relation:
        case Scan(columns=columns):
            return Side(relation, (), {column.name: column for column in columns})
        case Values(_, columns, rows):
            if len(rows) < 2 or any(fallible(cell) for row in rows for cell in row):
                return None
            return Side(relation, (), {column.name: column for column in columns})
        case Filter(input, predicate):
            below = side_of(input)
            if below is None or is_temporal(predicate):
                return None
            found = tuple(conjuncts(inlined(predicate, below.meanings)))
            return replace(below, conditions=(*below.conditions, *found))
        case Project(input, items):
            below = side_of(input)
            if below is None or any(is_temporal(expr) for _, expr in items):
                return None
            return replace(below, meanings={c.name: inlined(expr, below.meanings) for c, expr in items})
        case _:
            return None


def asked(on: Expr, side: Side, meanings: Mapping[str, Expr] | None = None) -> On:
    """ON in its parts. `meanings`: what the other side's columns are."""
    on = fold(inlined(on, {**(meanings or {}), **side.meanings}))
    names, matches, alone, own, rest = side.names, list[Match](), list[Expr](), list[Expr](), list[Expr]()
    for condition in split(on):
        read = columns_of(condition)
        if condition == TRUE:
            continue
        if rejects(condition, frozenset()):
            own.append(FALSE)
        elif is_temporal(condition):
            rest.append(condition)
        elif not read & names:
            own.append(condition)
        elif read <= names:
            alone.append(condition)
        elif (found := _match(condition, names)) is not None:
            matches.append(found)
        else:
            rest.append(condition)
    return On(tuple(matches), tuple(alone), tuple(own), tuple(rest))


def _match(condition: Expr, names: frozenset[str]) -> Match | None:
    """An equality between columns of the looked-up side and others."""
    if not (isinstance(condition, Call) and condition.function in ("=", "is not distinct from")):
        return None
    for key, probe in (condition.args, condition.args[::-1]):
        if columns_of(key) and columns_of(key) <= names and not columns_of(probe) & names:
            if looks_vary(key.type):
                return None
            return Match(key, probe, condition.function != "=")
    return None


def shown(side: Side, on: On) -> Mapping[str, Expr] | None:
    """The side's columns in an outer join, where they are NULL in a row without a match; None if no column tells such
    rows from others."""
    marker = next(_markers(side, on), None)
    nullable = {column.name: replace(column, nullable=True) for column in side.source.columns}
    found: dict[str, Expr] = {}
    for name, expr in side.meanings.items():
        if not is_null(expr, side.names):
            if marker is None:
                return None
            there = resolve("is not null", (marker,))
            expr = resolve("case", (there, expr, Literal(None, expr.type)))
        found[name] = substitute(expr, nullable)
    return found


def _markers(side: Side, on: On) -> Iterator[Expr]:
    """Expressions that are NULL in a default row and never in another row."""
    yield from (column for column in side.source.columns if not column.nullable)
    yield from (m.key for m in on.matches if not m.null_safe and isinstance(m.key, Column))
    for column in side.source.columns:
        if any(rejects(condition, {column.name}) for condition in (*side.conditions, *on.conditions)):
            yield column


MOST_ALTERNATIVES = 16


def alternatives(on: Expr) -> list[Expr] | None:
    """The conditions of which one must hold for `x = y IS NOT FALSE`, as NOT IN asks; None if they are too many.

    `x = y IS NOT FALSE` holds if x = y, if y is NULL, or if x is NULL: three questions to one collection, each answered
    by a key or by conditions.
    """
    choices = [_alternatives(part) for part in split(on)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST_ALTERNATIVES:
        return None
    return [_all(choice) for choice in product(*choices)]


def _alternatives(condition: Expr) -> list[Expr]:
    match condition:
        case Call("is not false", (Call("=", (left, right)) as equal,)):
            return [equal, *(resolve("is null", (side,)) for side in (right, left) if not never_null(side))]
        case _:
            return [condition]


def _all(parts: Iterable[Expr]) -> Expr:
    return resolve("and", (TRUE, *parts))
