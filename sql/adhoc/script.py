"""What a query that no view could be is made of: steps, each a table, the last one the answer.

Scalars have one evaluator, so DuckDB is handed columns only: whatever computes a value is a bound relation, which the
engine evaluates as it evaluates views; DuckDB groups, sorts, numbers and removes duplicates.
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


def wrong(node: exp.Expr | None, context: Context, reason: str, instead: str | None = None) -> UnsupportedSQL:
    """The error at a node for what PostgreSQL refuses, too."""
    line, column = place(node, context.sql)
    return UnsupportedSQL(reason, remedy=instead, sql=context.sql, line=line, column=column, wrong=True)


@dataclass(frozen=True)
class Made:
    """A step's table: its name, which no table of the user's has, and its columns `c1`, `c2`, ..."""

    name: str
    columns: tuple[Column, ...]

    def scan(self, aliases: Aliases) -> Scan:
        """All its rows, as a part of a relation."""
        alias = aliases.fresh(self.name)
        return Scan(self.name, alias, tuple(replace(c, name=f"{alias}.{c.name}") for c in self.columns))


@dataclass(frozen=True)
class Evaluate:
    """The engine evaluates a relation over tables, views and tables made before."""

    made: Made
    relation: Relation


@dataclass(frozen=True)
class Compute:
    """DuckDB runs `text` over tables made before; its columns, in order, are cast to those of `made`."""

    made: Made
    text: str


@dataclass(frozen=True)
class Loop:
    """A query that reads itself: what `first` holds, and what each round finds in what the one before it found.

    `round` are the steps of a round, over the table `working`; the last of them is what it finds. With `distinct`, rows
    that were found before are not found again. A round that finds nothing is the last one.
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
    """The steps found so far, and the names known with them: a `Schema` for the binder."""

    schema: Schema
    done: list[Step] = field(default_factory=list)
    made: dict[str, Made] = field(default_factory=dict)  # by its name, whatever is to be made, or was given up

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Steps that are forgotten if what they were for fails."""
        known = len(self.done)
        try:
            yield
        except HalfjoinError:
            del self.done[known:]
            raise

    def evaluate(self, relation: Relation, values: Sequence[Expr]) -> Made:
        """A step that evaluates expressions over a relation's columns."""
        typed = [_stored(value) for value in values or (TRUE,)]
        items = tuple((Column(f"c{number}", value.type), value) for number, value in enumerate(typed, 1))
        made = self.table([column.type for column, _ in items])
        self.done.append(Evaluate(made, Project(relation, items)))
        return made

    def compute(self, text: str, types: Sequence[SqlType]) -> Made:
        """A step that DuckDB computes."""
        made = self.table(types)
        self.done.append(Compute(made, text))
        return made

    def table(self, types: Sequence[SqlType]) -> Made:
        """A table of a name of its own, with columns of these types."""
        taken = {*self.schema.names(), *self.made}
        name = next(name for number in count(len(self.made) + 1) if (name := f"step {number}") not in taken)
        columns = (Column(f"c{number}", _fitting(type)) for number, type in enumerate(types, 1))
        self.made[name] = Made(name, tuple(columns))
        return self.made[name]

    # The binder's questions (`sql.schema.Schema`).

    def columns(self, collection: str) -> tuple[Column, ...] | None:
        """Columns of a step's table, or of a table or materialized view."""
        found = self.made.get(collection)
        return self.schema.columns(collection) if found is None else found.columns

    def plain_view(self, name: str) -> str | None:
        """The text of a plain view."""
        return self.schema.plain_view(name)

    def names(self) -> tuple[str, ...]:
        """All names that may be read."""
        return self.schema.names()

    def table_function(self, name: str) -> tuple[tuple[str, SqlType], ...] | None:
        """The columns of a table function of the user's."""
        return self.schema.table_function(name)

    def table_functions(self) -> tuple[str, ...]:
        """Names of the user's table functions."""
        return self.schema.table_functions()


def _stored(value: Expr) -> Expr:
    """The value as a column can hold it: literals without a type are text, a numeric has at most 38 digits."""
    type = value.type
    if type == UNKNOWN:
        return functions.cast(value, TEXT)
    if type.kind is Kind.INTERVAL:
        raise UnsupportedSQL("an interval is no column", remedy="give its length: extract(epoch from ...)")
    return value if _fitting(type) == type else functions.cast(value, _fitting(type))


def _fitting(type: SqlType) -> SqlType:
    """A numeric type of at most as many digits as a column holds."""
    if type.kind is not Kind.NUMERIC or (type.precision or 0) <= STORED_DIGITS:
        return type
    if (type.scale or 0) > STORED_DIGITS:
        raise UnsupportedSQL(f"a value has {type.scale} digits after the point, a column holds {STORED_DIGITS}",
                             remedy="round it, or cast it to numeric(38, 10)")
    return numeric(STORED_DIGITS, type.scale or 0)
