"""Finds what a changed row must have to pass the first filters of a path, where constants tell: `k = 5`, `day >= d`.

A batch that has no such row does not concern the path. So of many views that differ in a constant, a batch runs only
those that it concerns, without evaluating anything for the others.

The filters still test every row. So a guard may let rows through that they drop, but must never stop one that they
keep, or one that is an error: only predicates count that every row must meet before any expression can fail for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from halfjoin.planner.plan import Path
from halfjoin.planner.predicates import certain, told
from halfjoin.sql.expr import FLIPPED, Call, Column, Expr, Literal
from halfjoin.sql.types import Kind

_ORDERED = frozenset((
    Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ,
))  # fmt: skip
_BOUNDS = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Among:
    """The column of the collection has one of these values; none of them is NULL."""

    column: Column
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """The column of the collection is at or above (`low`), or at or below, a value of its type."""

    column: Column
    value: Literal
    low: bool


Guard: TypeAlias = Among | Beside


def guards(path: Path) -> tuple[Guard, ...]:
    """What each row of the path's input has that its operator lets through or reports as an error."""
    bare = {name: column for column, name in path.fetch}
    return tuple(guard for predicate in certain(path.source.steps, bare) for guard in _guards(predicate))


def _guards(predicate: Expr) -> Iterator[Guard]:
    for key, values in told(predicate).items():
        if isinstance(key, Column):
            yield Among(key, values)
    if isinstance(predicate, Call) and predicate.function in _BOUNDS:
        match predicate.args:
            case (Column() as column, Literal() as value):
                yield from _beside(column, predicate.function, value)
            case (Literal() as value, Column() as column):
                yield from _beside(column, FLIPPED[predicate.function], value)


def _beside(column: Column, comparison: str, value: Literal) -> Iterator[Guard]:
    if value.value is not None and value.type == column.type and column.type.kind in _ORDERED:
        yield Beside(column, value, comparison in (">", ">="))
