"""Which column of a table or view a column of a query is, unchanged: clients are told it with the columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
    TableFunction,
    TopK,
    Window,
)


@dataclass(frozen=True, slots=True)
class Origin:
    """A column of a collection, and whether it may be NULL."""

    collection: str
    column: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class Told(Column):
    """A column of an answer, with the numbers of the relation and of its column that it is; 0 if it is computed."""

    relation: int = 0
    number: int = 0


def origins(relation: Relation) -> Mapping[str, Origin]:
    """The origins of a relation's columns, by their names; none of what is computed, and of set operations."""
    match relation:
        case Scan(collection, alias, columns):
            return {one.name: Origin(collection, one.name.removeprefix(f"{alias}."), one.nullable) for one in columns}
        case Project(input, items):
            return _passed(input, items)
        case Aggregate(input, keys, _):
            return _passed(input, keys)
        case Join(inputs=inputs):
            return {name: found for one in inputs for name, found in origins(one).items()}
        case Outer(left=left, right=right):
            return {**origins(left), **origins(right)}
        case (Filter(input=input) | Semi(input=input) | TopK(input=input) | Window(input=input)
              | TableFunction(input=input)):  # fmt: skip
            return origins(input)
    return {}


def _passed(input: Relation, items: Iterable[tuple[Column, Expr]]) -> Mapping[str, Origin]:
    below = origins(input)
    return {column.name: below[value.name] for column, value in items
            if isinstance(value, Column) and value.name in below}  # fmt: skip
