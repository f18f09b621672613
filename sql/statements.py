"""SQL statements as data: `parse` builds them from SQL text, and `Engine.execute` runs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from halfjoin.sql.definitions import (
    AlterRetention,
    AlterSource,
    AlterTable,
    CreateIndex,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateTableAs,
    CreateView,
    Drop,
    Rename,
)
from halfjoin.sql.expr import Expr
from halfjoin.sql.named import (
    AlterDomain,
    AlterEnum,
    AlterSequence,
    Comment,
    CreateComposite,
    CreateDomain,
    CreateEnum,
    CreateSchema,
    CreateSequence,
)
from halfjoin.sql.prepared import Deallocate, Execute, Prepare
from halfjoin.sql.transactions import Begin, Commit, Rollback, Savepoint, SetConstraints, SetTransaction

if TYPE_CHECKING:
    from sqlglot import exp

Query: TypeAlias = "exp.Query"  # a parsed query; only the package `sql` looks inside
Assignment: TypeAlias = "tuple[str, exp.Expr]"  # a column and its new value, which may be DEFAULT


@dataclass(frozen=True)
class OnConflict:
    """ON CONFLICT [(column, ...) | ON CONSTRAINT name] DO NOTHING | DO UPDATE SET ... [WHERE ...].

    `columns` and `constraint` are None if the clause names no key, so that it means every key. `assignments` is None
    for DO NOTHING. `predicate`: the condition behind the columns, which says nothing: each key here covers all rows.
    """

    columns: tuple[str, ...] | None
    constraint: str | None
    assignments: tuple[Assignment, ...] | None
    where: exp.Expr | None = None
    predicate: exp.Expr | None = None


@dataclass(frozen=True)
class Insert:
    """[WITH ...] INSERT INTO table [AS alias] [(column, ...)] query | DEFAULT VALUES [ON CONFLICT ...] [RETURNING ...].

    `query` is None for DEFAULT VALUES. It holds the statement's WITH clause.
    """

    table: str
    columns: tuple[str, ...]
    query: exp.Query | None
    alias: str = ""
    overriding: str = ""  # `system` or `user`: what OVERRIDING says
    conflict: OnConflict | None = None
    returning: tuple[exp.Expr, ...] = ()
    common: exp.With | None = None
    target: exp.Expr | None = field(default=None, compare=False)  # as written, for the places of errors


@dataclass(frozen=True)
class Delete:
    """[WITH ...] DELETE FROM table [AS alias] [USING item, ...] [WHERE ...] [RETURNING ...]."""

    table: str
    alias: str
    where: exp.Expr | None
    items: exp.From | None = None
    joins: tuple[exp.Join, ...] = ()
    returning: tuple[exp.Expr, ...] = ()
    common: exp.With | None = None
    target: exp.Expr | None = field(default=None, compare=False)  # as written, for the places of errors


@dataclass(frozen=True)
class Update:
    """[WITH ...] UPDATE table [AS alias] SET ... [FROM item, ...] [WHERE ...] [RETURNING ...]."""

    table: str
    alias: str
    assignments: tuple[Assignment, ...]
    where: exp.Expr | None
    items: exp.From | None = None
    joins: tuple[exp.Join, ...] = ()
    returning: tuple[exp.Expr, ...] = ()
    common: exp.With | None = None
    target: exp.Expr | None = field(default=None, compare=False)  # as written, for the places of errors


@dataclass(frozen=True)
class When:
    """WHEN [NOT] MATCHED [BY SOURCE] [AND condition] THEN UPDATE SET ... | DELETE | INSERT ... | DO NOTHING, in
    MERGE. `by_source`: for rows of the table that the source does not match.

    `kind`: `update`, `delete`, `insert` or `nothing`. `columns` and `values` are those of INSERT; `values` is None for
    DEFAULT VALUES.
    """

    matched: bool
    condition: exp.Expr | None
    kind: str
    assignments: tuple[Assignment, ...] = ()
    columns: tuple[str, ...] = ()
    values: tuple[exp.Expr, ...] | None = None
    by_source: bool = False
    overriding: str = ""  # as of INSERT


@dataclass(frozen=True)
class Merge:
    """[WITH ...] MERGE INTO table [AS alias] USING source ON condition WHEN ... [RETURNING ...]."""

    table: str
    alias: str
    source: exp.Expr
    on: exp.Expr
    whens: tuple[When, ...]
    common: exp.With | None = None
    returning: tuple[exp.Expr, ...] = ()
    target: exp.Expr | None = field(default=None, compare=False)  # as written, for the places of errors


@dataclass(frozen=True)
class WithChanges:
    """WITH name AS (INSERT | UPDATE | DELETE | MERGE ... [RETURNING ...]), ... and a query or change.

    `parts`: the changes in WITH, each with the name of the table of what it returns.
    """

    parts: tuple[tuple[str, Insert | Delete | Update | Merge], ...]
    main: Insert | Delete | Update | Merge | Select


@dataclass(frozen=True)
class Copy:
    """COPY table [(column, ...)] FROM STDIN (`incoming`), COPY table | (query) TO STDOUT, [WITH (...)].

    `csv`: the format is CSV; `binary`: PostgreSQL's binary format; else its text format. `null`: the text of NULL.
    `match`: the header must name the columns. `escape`: what is written before a quote inside quotes. `force_quote`:
    the columns whose values are in quotes all; () are all columns. `force_null`, `force_not_null`: the columns of which
    also a value in quotes is NULL if it is `null`, and those of which none is NULL.
    """

    incoming: bool
    table: str
    columns: tuple[str, ...]
    query: exp.Query | None
    csv: bool
    header: bool
    delimiter: str
    null: str
    quote: str
    binary: bool = False
    match: bool = False
    escape: str = '"'
    force_quote: tuple[str, ...] | None = None
    force_null: tuple[str, ...] = ()
    force_not_null: tuple[str, ...] = ()


@dataclass(frozen=True)
class Truncate:
    """TRUNCATE [TABLE] table, ... [RESTART IDENTITY] [CASCADE]: remove all rows."""

    tables: tuple[str, ...]
    restart: bool = False
    cascade: bool = False  # also those of tables that refer to them


@dataclass(frozen=True)
class Select:
    """A query [AS OF time]."""

    query: exp.Query
    as_of: Expr | None = None


@dataclass(frozen=True)
class Subscribe:
    """SUBSCRIBE [TO] collection [AS OF time] [UP TO time]."""

    collection: str
    as_of: Expr | None = None
    up_to: Expr | None = None


@dataclass(frozen=True)
class Explain:
    """EXPLAIN [(FORMAT TEXT | JSON)] [MATERIALIZED VIEW name | VIEW name | SELECT ... | a change of rows]."""

    view: str | None = None
    query: exp.Query | None = None
    change: Insert | Delete | Update | Merge | None = None
    format: Literal["text", "json"] = "text"


@dataclass(frozen=True)
class Maintain:
    """VACUUM or ANALYZE of tables with columns, or of all: nothing is to be done, the engine does it by itself."""

    kind: Literal["vacuum", "analyze"]
    tables: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Refresh:
    """REFRESH MATERIALIZED VIEW view: nothing is to be done, since a view is up to date."""

    view: str


@dataclass(frozen=True)
class RefreshPlan:
    """REFRESH PLAN view: plan the view again, from the present figures of its collections."""

    view: str


@dataclass(frozen=True)
class Show:
    """SHOW TABLES | VIEWS | MATERIALIZED VIEWS | INDEXES | SINKS | SOURCES | COLUMNS FROM name | CREATE name |
    SETTINGS | name."""

    what: str
    collection: str | None = None


@dataclass(frozen=True)
class SetTime:
    """SET TIME = time: the time of the batches of later statements. RESET TIME, SET TIME TO DEFAULT: None."""

    time: Expr | None = None


@dataclass(frozen=True)
class SetSetting:
    """SET name = value, other than of TIME. RESET name, SET name TO DEFAULT: None."""

    name: str
    value: str | None = None


Change: TypeAlias = Insert | Delete | Update | Merge  # statements that change the rows of one table
Statement: TypeAlias = (
    CreateTable | CreateTableAs | CreateView | CreateIndex | CreateSink | CreateSource | AlterSource | AlterTable
    | Rename | AlterRetention | Insert | Delete | Update | Merge | WithChanges | Copy | Truncate | Select | Subscribe
    | Explain | Maintain | Refresh | RefreshPlan | Show | SetTime | SetSetting | Begin | SetTransaction | SetConstraints
    | Commit | Rollback | Savepoint | Drop | Prepare | Execute | Deallocate | CreateEnum | CreateComposite | AlterEnum
    | CreateDomain | CreateSchema | CreateSequence | Comment | AlterSequence | AlterDomain
)
