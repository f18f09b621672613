"""Definitions as data: CREATE, ALTER and DROP of tables, views, indexes, sinks and sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from halfjoin.sql.named import SequenceOptions
from halfjoin.sql.prepared import Execute
from halfjoin.sql.types import SqlType

if TYPE_CHECKING:
    from sqlglot import exp


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
class Drop:
    """DROP TABLE | [MATERIALIZED] VIEW | INDEX | SINK | SOURCE | TYPE | DOMAIN | SCHEMA | SEQUENCE [IF EXISTS]
    name, ... [CASCADE]."""

    kind: str  # in lower case
    names: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False
