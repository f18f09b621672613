"""What an outer or semi-join looks its other side up by, where it may fail and no single row would be the error.

`a LEFT JOIN b ON b.x = (SELECT c.id ...)` looks b up by a value that fails for two rows of c, and that reads a and
c. It becomes a column of a node below the join; the node's row is the error then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from halfjoin.planner.rules.inline import inlined
from halfjoin.planner.rules.sides import asked, side_of
from halfjoin.sql.expr import Column, Expr, columns_of
from halfjoin.sql.functions import fallible
from halfjoin.sql.relation import Filter, Join, Outer, Project, Relation, Semi


def late_probes(left: Relation, right: Relation, on: Expr) -> tuple[Expr, ...]:
    """The values by which ON looks the right side up, that may fail, and that read several inputs of the left side or
    the looked-up side of an outer join in it."""
    side = side_of(right)
    if side is None or side_of(left) is not None:
        return ()
    meanings, leaves = _meanings(left), list(_leaves(left))
    probes = (match.probe for match in asked(on, side).matches)
    return tuple(probe for probe in probes if _is_late(inlined(probe, meanings), leaves))


def with_columns(left: Relation, probes: tuple[Expr, ...], alias: str) -> tuple[Project, Mapping[Expr, Expr]]:
    """The left side with a column for each value, and the column for the value."""
    columns = {probe: Column(f"{alias}.probe{number}", probe.type) for number, probe in enumerate(probes)}
    own = tuple((column, column) for column in left.columns)
    return Project(left, (*own, *((column, probe) for probe, column in columns.items()))), dict(columns)


def _is_late(probe: Expr, leaves: list[tuple[frozenset[str], bool]]) -> bool:
    read = columns_of(probe)
    return fallible(probe) and not any(read <= names and not padded for names, padded in leaves)


def _meanings(relation: Relation) -> dict[str, Expr]:
    """What the computed columns of a region are, of the columns of its inputs."""
    match relation:
        case Project(input, items):
            below = _meanings(input)
            return {column.name: inlined(expr, below) for column, expr in items}
        case Filter(input) | Semi(input):
            return _meanings(input)
        case Outer(left, right):
            return _meanings(left) | _meanings(right)
        case Join(inputs):
            return {name: expr for item in inputs for name, expr in _meanings(item).items()}
    return {}


def _leaves(relation: Relation, padded: bool = False) -> Iterator[tuple[frozenset[str], bool]]:
    """The columns of each input of a region, and whether an outer join looks it up."""
    match relation:
        case Project(input) | Filter(input) | Semi(input):
            yield from _leaves(input, padded)
        case Outer(left, right):
            yield from _leaves(left, padded)
            yield from _leaves(right, padded=True)
        case Join(inputs):
            for item in inputs:
                yield from _leaves(item, padded)
        case _:
            yield frozenset(column.name for column in relation.columns), padded
