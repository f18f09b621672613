"""Bound relations: what a view means, before anyone asks how it is computed.

Every relation lists its `columns`; a column's name is unique in the whole view (`alias.column`, with the alias made
unique), so operators refer to columns by name and may be moved without renumbering.
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
    """Constant rows; one row of no columns is the relation of a SELECT without FROM."""

    alias: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Every combination of the inputs' rows; conditions are filters above."""

    inputs: tuple[Relation, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The inputs' columns, in order."""
        return tuple(column for item in self.inputs for column in item.columns)


@dataclass(frozen=True, slots=True)
class TableFunction:
    """Each input row with every row that `function` gives for it, read from the input's columns."""

    input: Relation
    function: str
    alias: str
    args: tuple[Expr, ...]
    outputs: tuple[Column, ...]  # the function's columns; empty for repeat_row
    ordinality: Column | None = None  # bigint, 1 for the first row of each call

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's columns, the function's, the ordinality."""
        return self.input.columns + self.outputs + ((self.ordinality,) if self.ordinality else ())


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the predicate is true; it may hold mz_now()."""

    input: Relation
    predicate: Expr

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's columns."""
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Project:
    """One row of expressions for each input row."""

    input: Relation
    items: tuple[tuple[Column, Expr], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The named results."""
        return tuple(column for column, _ in self.items)


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of all inputs, matched by position; the inputs have exactly the types of `columns`."""

    inputs: tuple[Relation, ...]
    columns: tuple[Column, ...]


Relation: TypeAlias = Scan | Values | Join | TableFunction | Filter | Project | UnionAll
