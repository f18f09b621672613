"""A query's outputs on their way to become columns: with their names, before they have final types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from halfjoin.sql import functions
from halfjoin.sql.bind.context import Aliases, Context
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.relation import Project, Relation, SortKey, Values
from halfjoin.sql.types import TEXT, UNKNOWN, SqlType

Namer = Callable[[str], str]


@dataclass(frozen=True)
class Selected:
    """A query whose outputs do not yet have unique names and final types: expressions over a relation's columns.

    `order`: the order of the rows, if they have one; it reads what the outputs read.
    """

    input: Relation
    items: tuple[tuple[str, Expr], ...]
    order: tuple[SortKey, ...] = ()

    @property
    def names(self) -> list[str]:
        """The outputs' names."""
        return [name for name, _ in self.items]

    @property
    def values(self) -> list[Expr]:
        """The outputs' expressions."""
        return [expr for _, expr in self.items]

    def renamed(self, names: Sequence[str]) -> Selected:
        """The same outputs under other names."""
        items = tuple((name, expr) for name, (_, expr) in zip(names, self.items, strict=True))
        return replace(self, items=items)


def project(selected: Selected, namer: Namer, types: Sequence[SqlType] | None = None, carry: bool = False) -> Project:
    """The outputs as columns, named by `namer` and cast to `types` (default: their own types, text for unknown).

    `carry` puts the input's columns in front of the outputs.
    """
    items: list[tuple[Column, Expr]] = [(column, column) for column in selected.input.columns] if carry else []
    for position, (name, expr) in enumerate(selected.items):
        typed = functions.cast(expr, types[position]) if types else known(expr)
        items.append((column_for(namer(name), typed), typed))
    return Project(selected.input, tuple(items))


def qualified(alias: str) -> Namer:
    """A namer that returns `alias.column`, and numbers repeated names."""
    columns = Aliases()
    return lambda column: f"{alias}.{columns.fresh(column)}"


def column_for(name: str, value: Expr) -> Column:
    """The column of that name for a value; it is not nullable if the value cannot be NULL for a simple reason."""
    match value:
        case Column():
            nullable = value.nullable
        case Literal():
            nullable = value.value is None
        case _:
            nullable = True
    return Column(name, value.type, nullable)


def known(value: Expr) -> Expr:
    """The value with a type: an untyped literal becomes text."""
    return functions.cast(value, TEXT) if value.type == UNKNOWN else value


def common(values: Sequence[Expr]) -> SqlType:
    """The common type of the values; text if all are untyped literals."""
    return functions.unify(values)[0].type if any(value.type != UNKNOWN for value in values) else TEXT


def one_row(context: Context) -> Values:
    """The relation of a SELECT without FROM: one row without columns."""
    return Values(context.aliases.fresh("row"), (), ((),))
