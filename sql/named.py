"""The statements about types, domains, schemas, sequences and comments, as data; and what a domain is."""

from __future__ import annotations

from dataclasses import dataclass

from halfjoin.sql.types import SqlType


@dataclass(frozen=True)
class Domain:
    """A type with conditions for its values. `checks`: names and texts of conditions over VALUE. `base`: the
    domain that it was made from, whose conditions it has.
    """

    name: str
    type: SqlType
    not_null: bool = False
    default: str | None = None
    checks: tuple[tuple[str, str], ...] = ()
    base: str = ""


@dataclass(frozen=True)
class CreateEnum:
    """CREATE TYPE name AS ENUM (label, ...)."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class CreateComposite:
    """CREATE TYPE name AS (field type, ...)."""

    name: str
    fields: tuple[tuple[str, SqlType], ...]


@dataclass(frozen=True)
class AlterEnum:
    """ALTER TYPE name ADD VALUE [IF NOT EXISTS] label [BEFORE | AFTER `beside`], or RENAME VALUE `old` TO label, or
    RENAME TO `to`, then without a label."""

    name: str
    label: str = ""
    old: str | None = None
    beside: str | None = None
    before: bool = False
    if_not_exists: bool = False
    to: str = ""


@dataclass(frozen=True)
class CreateDomain:
    """CREATE DOMAIN name AS type ... The names of its checks may be empty."""

    domain: Domain


@dataclass(frozen=True)
class CreateSchema:
    """CREATE SCHEMA [IF NOT EXISTS] name."""

    name: str
    if_not_exists: bool = False


@dataclass(frozen=True)
class SequenceOptions:
    """The options that a statement gives; None: it does not. `least`, `most`: True stands for NO MINVALUE, NO MAXVALUE.
    `owner`: the table and column of OWNED BY, empty for NONE."""

    start: int | None = None
    step: int | None = None
    least: int | None = None
    most: int | None = None
    cycle: bool | None = None
    type: str | None = None
    owner: tuple[str, str] | None = None


@dataclass(frozen=True)
class CreateSequence:
    """CREATE SEQUENCE [IF NOT EXISTS] name ..."""

    name: str
    options: SequenceOptions = SequenceOptions()
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterSequence:
    """ALTER SEQUENCE [IF EXISTS] name ...; None: as it is. `restart` without `at`: at the start."""

    name: str
    restart: bool = False
    at: int | None = None
    options: SequenceOptions = SequenceOptions()
    if_exists: bool = False


@dataclass(frozen=True)
class AlterDomain:
    """ALTER DOMAIN name ...; `action` as in `sql.parse.syntax`. `text`: of a DEFAULT or a condition. `constraint`: its
    name. `to`: a new name."""

    name: str
    action: str
    text: str = ""
    constraint: str = ""
    to: str = ""
    if_exists: bool = False


@dataclass(frozen=True)
class Comment:
    """COMMENT ON kind name IS text; None: no comment. `part`: of a table or view, the column or constraint."""

    kind: str
    name: str
    text: str | None
    part: str = ""
