"""Finds aggregates over the same join, as those of GROUPING SETS, ROLLUP and CUBE are: a change runs the join once.

The rows that each of them reads are a join of their own otherwise, as each reads other columns. So the join computes
the columns that any of them reads, and the reduces take theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from halfjoin.planner.reduces.lower import lowered
from halfjoin.planner.reduces.parted import parted
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.relation import (
    Aggregate,
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Scan,
    Semi,
    every_part,
)


@dataclass(frozen=True, slots=True)
class SameRows:
    """The rows that several aggregates read. `passing`: none of them needs these rows to be kept."""

    rows: Project
    passing: bool

    def of(self, scan: Scan, read: Project) -> Project | None:
        """What one of them reads, over a scan of these rows; None if that is not among them."""
        columns: Mapping[Expr, Column] = {expr: column for (_, expr), column in zip(self.rows.items, scan.columns,
                                                                                    strict=True)}  # fmt: skip
        if read.input != self.rows.input or any(expr not in columns for _, expr in read.items):
            return None
        return Project(scan, tuple((column, columns[expr]) for column, expr in read.items))


def over_the_same(relation: Relation) -> dict[Relation, list[Aggregate]]:
    """The different aggregates over each join that has several."""
    found: dict[Relation, list[Aggregate]] = {}
    every = [part for part in every_part(relation) if isinstance(part, Aggregate)]
    for part in every if len(every) > 1 else ():
        if _is_joined(part.input):
            found.setdefault(part.input, []).append(part)
    different = {input: list(dict.fromkeys(parts)) for input, parts in found.items() if len(parts) > 1}
    return {input: parts for input, parts in different.items() if len(parts) > 1}


def same_rows(relation: Relation) -> dict[Relation, SameRows]:
    """What the aggregates over each join that has several read together."""
    found = dict[Relation, SameRows]()
    for input, parts in over_the_same(relation).items():
        low = [lowered(part) for part in parts if parted(part, Aliases()) is None]
        low = [one for one in low if one.input.input == input]
        exprs = dict.fromkeys(expr for one in low for _, expr in one.input.items)
        if len(low) > 1:
            alias = "=same"  # no user can write this name
            items = tuple((Column(f"{alias}.c{number}", expr.type), expr) for number, expr in enumerate(exprs))
            found[input] = SameRows(Project(input, items), all(one.passing for one in low))
    return found


def _is_joined(relation: Relation) -> bool:
    """Whether a relation is a join of any kind, perhaps with conditions and computed columns above it."""
    while isinstance(relation, (Filter, Project)):
        relation = relation.input
    return isinstance(relation, (Join, Outer, Semi))
