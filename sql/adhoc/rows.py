"""Numbered rows. With the numbers, one step can compute a subquery for all outer rows, and rows can be joined back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from halfjoin.sql import functions
from halfjoin.sql.adhoc.script import Made, Steps
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.expr import Column, Literal
from halfjoin.sql.relation import Project, Relation, Scan
from halfjoin.sql.types import BIGINT


@dataclass(frozen=True)
class Base:
    """The outer rows of a correlated subquery, each with a unique number, `tag`.

    The subquery is computed for each outer row. All its rows carry the tag, and groups, orders and limits apply
    within a tag.
    """

    relation: Relation
    tag: Column
    scopes: tuple[Scope, ...]


@dataclass(frozen=True)
class Found:
    """A query that became a step: its table, and the names of its columns. With a `Base`, the tag comes first."""

    made: Made
    names: tuple[str, ...]
    untyped: Mapping[int, Literal] = field(default_factory=dict)  # outputs that are untyped literals, by position


@dataclass(frozen=True)
class Numbered:
    """A relation as a step, each row with a number; `relation` has the original columns and `tag`."""

    made: Made
    relation: Relation
    tag: Column

    @property
    def number(self) -> str:
        """The name of the tag in the step's table."""
        return self.made.columns[-1].name


def number(relation: Relation, steps: Steps, aliases: Aliases) -> Numbered:
    """Number the rows of a relation, as a step."""
    columns = list(relation.columns)
    rows = steps.evaluate(relation, columns)
    kept = "*, " if columns else ""
    made = steps.compute(f'SELECT {kept}row_number() OVER () FROM "{rows.name}"',
                         [*(column.type for column in columns), BIGINT])
    tag = Column(f"{aliases.fresh('number')}.number", BIGINT, nullable=False)
    return Numbered(made, restored(made.scan(aliases), [*columns, tag]), tag)


def restored(scan: Scan, columns: Sequence[Column]) -> Project:
    """A step's rows, with the names and types of the original columns."""
    return Project(scan, tuple((old, functions.cast(new, old.type)) for old, new in
                               zip(columns, scan.columns, strict=True)))
