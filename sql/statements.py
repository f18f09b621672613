"""SQL statements as data: `parse` builds them from SQL text, and `Engine.execute` runs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

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
    SequenceOptions,
)
from halfjoin.sql.transactions import Begin, Commit, Rollback, Savepoint, SetConstraints, SetTransaction
from halfjoin.sql.types import SqlType

if TYPE_CHECKING:
    from sqlglot import exp

Query: TypeAlias = "exp.Query"  # a parsed query; only the package `sql` looks inside
Assignment: TypeAlias = "tuple[str, exp.Expr]"  # a column and its new value, which may be DEFAULT


@dataclass(frozen=True)
class Identity:
    """GENERATED ALWAYS | BY DEFAULT AS IDENTITY, with the options of its sequence."""

    always: bool
    options: SequenceOptions = field(default_factory=SequenceOptions)
    serial: bool = False  # declared as a serial, which to PostgreSQL is a default and no identity
    sequence: str = ""  # the name of SEQUENCE NAME, which pg_dump writes; empty: that of the table and the column


@dataclass(frozen=True)
class ColumnDef:
    """A column of CREATE TABLE."""

    name: str
    type: SqlType
    not_null: bool = False
    default: str | None = None  # the text of its DEFAULT
    generated: str | None = None  # the text of GENERATED ALWAYS AS (...)
    identity: Identity | None = None


@dataclass(frozen=True)
class Constraint:
    """A constraint of a table: `kind` is `primary key`, `unique`, `check` or `foreign key`. `name`: None for a name of
    the columns. `text`: of a CHECK. `table`, `references`: of a FOREIGN KEY; no `references`: the PRIMARY KEY. `valid`:
    the rows that are there are checked.
    """

    kind: str
    name: str | None
    columns: tuple[str, ...] = ()
    text: str = ""
    table: str = ""
    references: tuple[str, ...] = ()
    index: bool = False  # of CREATE UNIQUE INDEX
    on_delete: str = ""  # `cascade`, `set null` or `set default`; empty: refused
    on_update: str = ""
    deferred: bool = False
    valid: bool = True


@dataclass(frozen=True)
class Like:
    """LIKE table [INCLUDING ...] in CREATE TABLE. `including`: `defaults`, `constraints`, `generated`, `identity`,
    `indexes`."""

    table: str
    including: frozenset[str]
    place: int  # how many columns of the statement are before it


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE [IF NOT EXISTS] name (...) [WITH (RETAIN HISTORY FOR ...)]."""

    name: str
    columns: tuple[ColumnDef, ...]
    constraints: tuple[Constraint, ...] = ()
    retain: int | None = None  # time units (ms for an interval text)
    if_not_exists: bool = False
    likes: tuple[Like, ...] = ()
    ended: str = ""  # what ON COMMIT does to a temporary table: `delete` its rows, or `drop` it
    ignored: tuple[str, ...] = ()  # PostgreSQL's storage parameters, which say nothing here

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of PRIMARY KEY."""
        return next((one.columns for one in self.constraints if one.kind == "primary key"), ())


@dataclass(frozen=True)
class CreateTableAs:
    """CREATE TABLE [IF NOT EXISTS] name [(column, ...)] AS query | EXECUTE name [WITH [NO] DATA]."""

    name: str
    names: tuple[str, ...]
    query: exp.Query | Execute
    retain: int | None = None
    if_not_exists: bool = False
    data: bool = True
    ended: str = ""  # as of CreateTable
    ignored: tuple[str, ...] = ()  # as of CreateTable


@dataclass(frozen=True)
class AlterAction:
    """One change of ALTER TABLE. `kind`: `add column`, `drop column`, `rename column`, `type`, `default`,
    `set not null`, `drop not null`, `add`, `rename`, `validate` or `drop constraint`; `add`, `set`, `alter`, `restart`
    or `drop identity`, with `identity`, or `restart` (None: at the start), or `to` (`always`, or None: BY DEFAULT).
    `to`: a new name, the text of a DEFAULT (None: drop it), or that of USING (None: the cast). `beside`: the
    constraints of a new column. `lenient`: with IF [NOT] EXISTS. `cascade`: what reads it is dropped, too.
    """

    kind: str
    name: str = ""
    to: str | None = None
    column: ColumnDef | None = None
    beside: tuple[Constraint, ...] = ()
    type: SqlType | None = None
    constraint: Constraint | None = None
    identity: Identity | None = None
    restart: int | None = None
    lenient: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class AlterTable:
    """ALTER TABLE [IF EXISTS] name action, ..."""

    name: str
    actions: tuple[AlterAction, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class Rename:
    """ALTER TABLE | [MATERIALIZED] VIEW | INDEX | SEQUENCE [IF EXISTS] name RENAME TO name, or SET SCHEMA (`moves`).
    With `column`: RENAME COLUMN column TO `to` of a view."""

    kind: str
    name: str
    to: str
    if_exists: bool = False
    column: str = ""
    moves: bool = False


@dataclass(frozen=True)
class AlterRetention:
    """ALTER TABLE | MATERIALIZED VIEW [IF EXISTS] name SET (RETAIN HISTORY FOR ...) or RESET (RETAIN HISTORY).

    `retain`: in time units; None: as long as the engine retains what says nothing.
    """

    name: str
    retain: int | None
    if_exists: bool = False


@dataclass(frozen=True)
class CreateView:
    """CREATE [OR REPLACE] [MATERIALIZED] VIEW [IF NOT EXISTS] name [(column, ...)] [WITH (...)] AS query."""

    name: str
    query: exp.Query
    text: str  # the query for the catalog, as written; the column list is applied to it and to `query`
    names: tuple[str, ...] = ()
    materialized: bool = False
    retain: int | None = None
    if_not_exists: bool = False
    or_replace: bool = False
    ignored: tuple[str, ...] = ()  # as of CreateTable


@dataclass(frozen=True)
class CreateIndex:
    """CREATE INDEX [name] ON collection (expression, ...).

    `ignored`: the clauses that say nothing here, since an index has all rows, and only tells where equal keys are.
    `named`: the expressions in them.
    """

    name: str | None
    collection: str
    keys: tuple[exp.Expr, ...]
    text: str = ""  # the statement as written, for the catalog
    if_not_exists: bool = False
    ignored: tuple[str, ...] = ()
    named: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True)
class CreateSink:
    """CREATE [OR REPLACE] SINK [IF NOT EXISTS] name FROM collection INTO DELTA 'path or URL' | KAFKA (option value,
    ...). `options` are those of KAFKA, which has no `target`."""

    name: str
    collection: str
    target: str
    if_not_exists: bool = False
    or_replace: bool = False
    options: Mapping[str, OptionValue] | None = None


OptionValue: TypeAlias = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True)
class CreateSource:
    """CREATE SOURCE [IF NOT EXISTS] name FROM kind (option value, ...) INTO table, ... | TABLES [WITH (errors =
    ...)].

    `kind` is in upper case. `into`: empty for INTO TABLES, those that the source has. `errors`: `stop`, or `table` for
    a table of the records that cannot be read.
    """

    name: str
    kind: str
    options: Mapping[str, OptionValue]
    into: tuple[str, ...]
    errors: str = "stop"
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterSource:
    """ALTER SOURCE [IF EXISTS] name PAUSE (`paused`) | RESUME."""

    name: str
    paused: bool
    if_exists: bool = False


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
class Prepare:
    """PREPARE name [(type, ...)] AS statement. `text` is that of the whole PREPARE."""

    name: str
    types: tuple[exp.Expr, ...]
    statement: exp.Expr
    text: str


@dataclass(frozen=True)
class Execute:
    """EXECUTE name [(value, ...)]."""

    name: str
    values: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Deallocate:
    """DEALLOCATE name, or ALL (None)."""

    name: str | None


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


@dataclass(frozen=True)
class Drop:
    """DROP TABLE | [MATERIALIZED] VIEW | INDEX | SINK | SOURCE | TYPE | DOMAIN | SCHEMA | SEQUENCE [IF EXISTS]
    name, ... [CASCADE]."""

    kind: str  # in lower case
    names: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


Change: TypeAlias = Insert | Delete | Update | Merge  # statements that change the rows of one table
Statement: TypeAlias = (
    CreateTable | CreateTableAs | CreateView | CreateIndex | CreateSink | CreateSource | AlterSource | AlterTable
    | Rename | AlterRetention | Insert | Delete | Update | Merge | WithChanges | Copy | Truncate | Select | Subscribe
    | Explain | Maintain | Refresh | RefreshPlan | Show | SetTime | SetSetting | Begin | SetTransaction | SetConstraints
    | Commit | Rollback | Savepoint | Drop | Prepare | Execute | Deallocate | CreateEnum | CreateComposite | AlterEnum
    | CreateDomain | CreateSchema | CreateSequence | Comment | AlterSequence | AlterDomain
)
