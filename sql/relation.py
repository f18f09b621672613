"""Bound relations: what a view means, independent of how the engine computes it.

Every relation lists its `columns`. A column's name is unique in the whole view (`alias.column`; the binder makes the
alias unique), so operators refer to columns by name and the planner can move them without renumbering.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from halfjoin.sql.expr import Column, Expr


@dataclass(frozen=True, slots=True)
class Scan:
    """All rows of a table or materialized view. Column `alias.c` is the collection's column `c`."""

    collection: str
    alias: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """Constant rows. A SELECT without FROM reads one row without columns."""

    alias: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Every combination of the inputs' rows; join conditions are filters above it."""

    inputs: tuple[Relation, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The inputs' columns, in order."""
        return tuple(column for item in self.inputs for column in item.columns)


@dataclass(frozen=True, slots=True)
class TableFunction:
    """Each input row, combined with every row that `function` returns for it; `args` read the input's columns."""

    input: Relation
    function: str
    alias: str
    args: tuple[Expr, ...]
    outputs: tuple[Column, ...]  # the function's columns; empty for repeat_row
    ordinality: Column | None = None  # bigint, 1 for the first row of each call

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's columns, the function's columns, then the ordinality."""
        return self.input.columns + self.outputs + ((self.ordinality,) if self.ordinality else ())


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the predicate is true; the predicate may contain mz_now()."""

    input: Relation
    predicate: Expr

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's columns."""
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Project:
    """One output row for each input row, computed by expressions."""

    input: Relation
    items: tuple[tuple[Column, Expr], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that name the results."""
        return tuple(column for column, _ in self.items)


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of all inputs, with columns matched by position; the inputs have exactly the types of `columns`."""

    inputs: tuple[Relation, ...]
    columns: tuple[Column, ...]


Relation: TypeAlias = Scan | Values | Join | TableFunction | Filter | Project | UnionAll
