"""The steps of a query that no view could be: each step fills a table, and the last table is the answer.

Scalars have one evaluator, so DuckDB gets columns only: every value is computed by a bound relation, which the engine
evaluates as it evaluates views; DuckDB joins by row numbers, groups, sorts and removes duplicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from halfjoin.errors import HalfjoinError, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.context import Aliases, Context
from halfjoin.sql.expr import TRUE, Column, Expr
from halfjoin.sql.parse.locate import place
from halfjoin.sql.relation import Project, Relation, Scan
from halfjoin.sql.types import STORED_DIGITS, TEXT, UNKNOWN, Kind, SqlType, numeric

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema
    from halfjoin.sql.user_aggregate import UserAggregate


def wrong(node: exp.Expr | None, context: Context, reason: str, instead: str | None = None) -> UnsupportedSQL:
    """The error at a node for SQL that PostgreSQL refuses as well."""
    line, column = place(node, context.sql)
    return UnsupportedSQL(reason, remedy=instead, sql=context.sql, line=line, column=column, wrong=True)


@dataclass(frozen=True)
class Made:
    """A step's table: its name, which no table of the user has, and its columns `c1`, `c2`, ..."""

    name: str
    columns: tuple[Column, ...]

    def scan(self, aliases: Aliases) -> Scan:
        """A relation of all its rows."""
        alias = aliases.fresh(self.name)
        return Scan(self.name, alias, tuple(replace(c, name=f"{alias}.{c.name}") for c in self.columns))


@dataclass(frozen=True)
class Evaluate:
    """The engine evaluates a relation over tables, views and the tables of earlier steps."""

    made: Made
    relation: Relation


@dataclass(frozen=True)
class Compute:
    """DuckDB runs `text` over the tables of earlier steps; its columns, in order, are cast to those of `made`."""

    made: Made
    text: str


@dataclass(frozen=True)
class Loop:
    """A query that reads itself: the rows of `first`, plus the rows that each round computes from the round before.

    `round` lists the steps of a round, which read the rows of the round before from the table `working`; the last step
    computes the round's rows. `distinct` drops rows that an earlier round had. A round without rows is the last one.
    """

    made: Made
    first: Made
    working: Made
    round: tuple[Step, ...]
    distinct: bool


Step: TypeAlias = Evaluate | Compute | Loop


@dataclass(frozen=True)
class Script:
    """The steps of a query, and the names of the last one's columns, which may repeat."""

    steps: tuple[Step, ...]
    names: tuple[str, ...]


@dataclass
class Steps:
    """The steps so far, and a `Schema` for the binder that includes their tables."""

    schema: Schema
    done: list[Step] = field(default_factory=list)
    made: dict[str, Made] = field(default_factory=dict)  # all tables by name, even those of steps that are dropped

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Drop the steps added inside the `with` block if it raises a HalfjoinError."""
        known = len(self.done)
        try:
            yield
        except HalfjoinError:
            del self.done[known:]
            raise

    def evaluate(self, relation: Relation, values: Sequence[Expr]) -> Made:
        """Add a step that evaluates expressions over a relation's columns."""
        typed = [_stored(value) for value in values or (TRUE,)]
        items = tuple((Column(f"c{number}", value.type), value) for number, value in enumerate(typed, 1))
        made = self.table([column.type for column, _ in items])
        self.done.append(Evaluate(made, Project(relation, items)))
        return made

    def compute(self, text: str, types: Sequence[SqlType]) -> Made:
        """Add a step that DuckDB computes."""
        made = self.table(types)
        self.done.append(Compute(made, text))
        return made

    def table(self, types: Sequence[SqlType]) -> Made:
        """A table with an unused name and columns of these types."""
        taken = {*self.schema.names(), *self.made}
        name = next(name for number in count(len(self.made) + 1) if (name := f"step {number}") not in taken)
        columns = (Column(f"c{number}", _fitting(type)) for number, type in enumerate(types, 1))
        self.made[name] = Made(name, tuple(columns))
        return self.made[name]

    # The binder's questions (`sql.schema.Schema`).

    def columns(self, collection: str) -> tuple[Column, ...] | None:
        """The columns of a step's table, or of a table or materialized view."""
        found = self.made.get(collection)
        return self.schema.columns(collection) if found is None else found.columns

    def primary_key(self, collection: str) -> tuple[str, ...]:
        """The columns of a table's primary key."""
        return self.schema.primary_key(collection)

    def plain_view(self, name: str) -> str | None:
        """The text of a plain view."""
        return self.schema.plain_view(name)

    def names(self) -> tuple[str, ...]:
        """The names of all tables and views of the user."""
        return self.schema.names()

    def table_function(self, name: str) -> tuple[tuple[str, SqlType], ...] | None:
        """The columns of a table function that the user registered."""
        return self.schema.table_function(name)

    def table_functions(self) -> tuple[str, ...]:
        """The names of the user's table functions."""
        return self.schema.table_functions()

    def aggregate(self, name: str) -> UserAggregate | None:
        """The aggregate of the user's that has that name."""
        return self.schema.aggregate(name)


def _stored(value: Expr) -> Expr:
    """The value, cast so that a column can hold it: untyped literals to text, a numeric to at most 38 digits."""
    type = value.type
    if type == UNKNOWN:
        return functions.cast(value, TEXT)
    if type.kind is Kind.INTERVAL:
        raise UnsupportedSQL("an interval cannot be a column", remedy="give its length: extract(epoch from ...)")
    return value if _fitting(type) == type else functions.cast(value, _fitting(type))


def _fitting(type: SqlType) -> SqlType:
    """The type, with the precision of a numeric limited to the digits that a column can hold."""
    if type.kind is not Kind.NUMERIC or (type.precision or 0) <= STORED_DIGITS:
        return type
    if (type.scale or 0) > STORED_DIGITS:
        raise UnsupportedSQL(f"a value has {type.scale} digits after the point, a column holds {STORED_DIGITS}",
                             remedy="round it, or cast it to numeric(38, 10)")
    return numeric(STORED_DIGITS, type.scale or 0)
