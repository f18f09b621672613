"""The context that all parts of the binder share: the schema, the text for errors, WITH names, and fresh aliases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.parse.fault import fault
from halfjoin.sql.parse.locate import refuse
from halfjoin.sql.relation import Relation
from halfjoin.sql.types import has_rows

if TYPE_CHECKING:
    from halfjoin.sql.bind.outer_aggregates import Trial
    from halfjoin.sql.bind.scope import Scope
    from halfjoin.sql.schema import Schema
    from halfjoin.sql.system import System


MOST_NAMES = 10_000
ON_TOP = "use it in a query (SELECT) over the view"  # a remedy for what queries can do and views cannot


class Aliases:
    """Generates unique names: `orders`, then `orders#2`."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}  # each name, with the last number tried for it

    def fresh(self, name: str) -> str:
        """The name itself if it is free, otherwise numbered; dots, which separate alias and column, become `_`."""
        if len(self._taken) > MOST_NAMES:
            raise UnsupportedSQL(f"the statement reads more than {MOST_NAMES:,} tables, counting each use of WITH "
                                 "and of views", remedy="make a part of it a materialized view of its own")
        name = name.replace(".", "_")
        free, number = name, self._taken.get(name, 1)
        while free in self._taken:
            number += 1
            free = f"{name}#{number}"
        self._taken[name] = number
        self._taken.setdefault(free, 1)
        return free


@dataclass(frozen=True)
class Looped:
    """The rows of a loop's binding, and the names that its columns have in the query. `at` makes the relation."""

    name: str
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    at: Callable[[str, tuple[Column, ...]], Relation]

    def scan(self, aliases: Aliases) -> Relation:
        """A relation of all the rows."""
        alias = aliases.fresh(self.name)
        return self.at(alias, tuple(replace(c, name=f"{alias}.{c.name}") for c in self.columns))


@dataclass(frozen=True)
class CommonTable:
    """A query of WITH, the context to bind it in, and the columns of outer queries that it can read; or the rows of one
    that reads itself."""

    query: exp.Query | Looped
    columns: tuple[exp.Identifier, ...]
    context: Context
    outer: tuple[Scope, ...] = ()


@dataclass(frozen=True)
class Context:
    """The context of the query being bound."""

    schema: Schema
    sql: str  # the text that the syntax nodes' positions refer to
    common: Mapping[str, CommonTable] = field(default_factory=dict)
    aliases: Aliases = field(default_factory=Aliases)
    now: str | None = None  # what now() returns in a query, as ISO text; None in a view, which may not read the clock
    notices: list[str] = field(default_factory=list)  # what the author of the query should know
    lifted: Mapping[int, Expr] = field(default_factory=dict)  # aggregates of outer queries, by their nodes' identity
    trial: Trial | None = None  # if the query is bound on trial
    ordered: bool = False  # whether the query around asks in which order the rows come (`row_sequence`)
    system: System | None = None  # PostgreSQL's catalog, in a query
    fleeting: list[str] = field(default_factory=list)  # what the query means only now: the clock, a session, chance
    records: list[str] = field(default_factory=list)  # not empty: some expression is a row, to be taken apart

    def note_rows(self, columns: Iterable[Column]) -> None:
        """Note that some of the columns hold rows."""
        self.records.extend(column.name for column in columns if has_rows(column.type))

    def refuse(self, node: exp.Expr | None, reason: str, instead: str | None = None) -> UnsupportedSQL:
        """The error for a node, with the node's place."""
        return refuse(node, self.sql, reason, instead)

    def wrong(self, node: exp.Expr | None, reason: str, instead: str | None = None) -> UnsupportedSQL:
        """The error for a node that PostgreSQL refuses as well."""
        error = self.refuse(node, reason, instead)
        error.wrong = True
        return error

    def unmaintained(
        self, node: exp.Expr | None, what: str, remedy: str | None = None, why: str = " yet"
    ) -> UnsupportedSQL:
        """The error for SQL that views do not maintain. `what` ends in its verb: `GROUP BY is`."""
        if self.now is not None:
            return self.refuse(node, f"{what} not supported{why}", None if remedy == ON_TOP else remedy)
        return self.refuse(node, f"{what} not maintained{why}", remedy)

    @contextmanager
    def at(self, node: exp.Expr) -> Iterator[None]:
        """Errors raised inside the `with` block get this node's place, unless they already have a place."""
        try:
            yield
        except (UnsupportedSQL, UnknownName) as error:
            if error.line is not None:
                raise
            raise error.at(self.sql, *fault(node, self.sql, error)) from None
