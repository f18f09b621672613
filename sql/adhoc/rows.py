"""Rows with numbers: a query can be computed for every row around it at once, and rows be put beside each other."""

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
    """The rows around a subquery, for each of which it is computed: their columns, one of them a number of their own.

    All rows of the subquery carry the number, `tag`: what groups, orders or counts them does so within a number.
    """

    relation: Relation
    tag: Column
    scopes: tuple[Scope, ...]


@dataclass(frozen=True)
class Found:
    """A query that has become a step: its table, and what its columns are called. Beside a `Base`, its tag is first."""

    made: Made
    names: tuple[str, ...]
    untyped: Mapping[int, Literal] = field(default_factory=dict)  # outputs whose type is open


@dataclass(frozen=True)
class Numbered:
    """A relation as a step, each row with a number; `relation` has the same columns as before, and `tag`."""

    made: Made
    relation: Relation
    tag: Column

    @property
    def number(self) -> str:
        """The tag's name in the step's table."""
        return self.made.columns[-1].name


def number(relation: Relation, steps: Steps, aliases: Aliases) -> Numbered:
    """The rows of a relation, numbered."""
    columns = list(relation.columns)
    rows = steps.evaluate(relation, columns)
    kept = "*, " if columns else ""
    made = steps.compute(f'SELECT {kept}row_number() OVER () FROM "{rows.name}"',
                         [*(column.type for column in columns), BIGINT])
    tag = Column(f"{aliases.fresh('number')}.number", BIGINT, nullable=False)
    return Numbered(made, restored(made.scan(aliases), [*columns, tag]), tag)


def restored(scan: Scan, columns: Sequence[Column]) -> Project:
    """A step's rows, its columns called and typed as they were before."""
    return Project(scan, tuple((old, functions.cast(new, old.type)) for old, new in
                               zip(columns, scan.columns, strict=True)))
