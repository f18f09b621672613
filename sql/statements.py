"""SQL statements as data: `parse` builds them from SQL text, and `Engine.execute` runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from halfjoin.sql.expr import Expr
from halfjoin.sql.types import SqlType

Query: TypeAlias = exp.Query  # a parsed query; only the package `sql` looks inside


@dataclass(frozen=True)
class ColumnDef:
    """A column of CREATE TABLE."""

    name: str
    type: SqlType
    not_null: bool = False


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE [IF NOT EXISTS] name (...) [WITH (RETAIN HISTORY FOR ...)]."""

    name: str
    columns: tuple[ColumnDef, ...]
    primary_key: tuple[str, ...] = ()
    retain: int | None = None  # time units (ms for an interval text)
    if_not_exists: bool = False


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


@dataclass(frozen=True)
class CreateIndex:
    """CREATE INDEX [name] ON collection (expression, ...)."""

    name: str | None
    collection: str
    keys: tuple[exp.Expr, ...]
    text: str = ""  # the statement as written, for the catalog
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateSink:
    """CREATE [OR REPLACE] SINK [IF NOT EXISTS] name FROM collection INTO DELTA 'path or URL'."""

    name: str
    collection: str
    target: str
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True)
class Insert:
    """INSERT INTO table [(column, ...)] query."""

    table: str
    columns: tuple[str, ...]
    query: exp.Query


@dataclass(frozen=True)
class Delete:
    """DELETE FROM table [WHERE ...]."""

    table: str
    alias: str
    where: exp.Expr | None


@dataclass(frozen=True)
class Update:
    """UPDATE table SET column = expression, ... [WHERE ...]."""

    table: str
    alias: str
    assignments: tuple[tuple[str, exp.Expr], ...]
    where: exp.Expr | None


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
    """EXPLAIN [MATERIALIZED VIEW name | VIEW name | SELECT ...]."""

    view: str | None = None
    query: exp.Query | None = None


@dataclass(frozen=True)
class RefreshPlan:
    """REFRESH PLAN view: plan the view again, from the present figures of its collections."""

    view: str


@dataclass(frozen=True)
class Show:
    """SHOW TABLES | VIEWS | MATERIALIZED VIEWS | INDEXES | SINKS | COLUMNS FROM name."""

    what: str
    collection: str | None = None


@dataclass(frozen=True)
class SetTime:
    """SET TIME = time: the time of the batches of later statements. RESET TIME, SET TIME TO DEFAULT: None."""

    time: Expr | None = None


@dataclass(frozen=True)
class Begin:
    """BEGIN: the statements up to COMMIT are one batch."""


@dataclass(frozen=True)
class Commit:
    """COMMIT: apply the batch."""


@dataclass(frozen=True)
class Rollback:
    """ROLLBACK: discard the changes of the statements since BEGIN."""


@dataclass(frozen=True)
class Drop:
    """DROP TABLE | [MATERIALIZED] VIEW | INDEX | SINK [IF EXISTS] name, ..."""

    kind: str  # "table", "view", "materialized view", "index", "sink"
    names: tuple[str, ...]
    if_exists: bool = False


Statement: TypeAlias = (
    CreateTable | CreateView | CreateIndex | CreateSink | Insert | Delete | Update | Select | Subscribe | Explain
    | RefreshPlan | Show | SetTime | Begin | Commit | Rollback | Drop
)
