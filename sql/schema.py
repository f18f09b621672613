"""The questions that the binder asks about existing collections; the catalog answers them, in tests a stand-in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from halfjoin.sql.expr import Column
from halfjoin.sql.named import Domain
from halfjoin.sql.system import System
from halfjoin.sql.types import SqlType
from halfjoin.sql.user_aggregate import UserAggregate


class Schema(Protocol):
    """What names mean, for the binder. Names are folded as in PostgreSQL: lower case unless quoted."""

    def columns(self, collection: str) -> tuple[Column, ...] | None:
        """The columns (bare names) of a table or materialized view, None if none has that name."""

    def primary_key(self, collection: str) -> tuple[str, ...]:
        """The columns of a table's primary key; empty for a table without one, and for a view."""

    def identifying(self, collection: str) -> tuple[tuple[str, ...], ...]:
        """The sets of columns that identify a row of a table; none for a view."""

    def default(self, table: str, column: str) -> str | None:
        """The text of a column's DEFAULT, None if it has none."""

    def generated(self, table: str) -> tuple[str, ...]:
        """The columns of a table that are GENERATED from others."""

    def keys(self, table: str) -> Mapping[str, tuple[str, ...]]:
        """The columns of a table's PRIMARY KEY and UNIQUE constraints, by the constraints' names."""

    def system(self) -> System | None:
        """PostgreSQL's catalog over this one, for queries; None if there is none."""

    def named_type(self, name: str) -> SqlType | None:
        """The enum of that name, or the type of the domain; None if there is neither."""

    def domain(self, name: str) -> Domain | None:
        """The domain of that name, None if there is none."""

    def sequence(self, table: str, column: str) -> tuple[str, bool]:
        """The sequence that numbers a table's column (empty: none), and whether statements cannot give other values."""

    def serial(self, table: str, column: str) -> bool:
        """Whether the sequence that numbers a table's column is that of a serial, and no identity."""

    def next_number(self, sequence: str, count: int = 1) -> Sequence[int]:
        """The next numbers of a sequence."""

    def last_number(self, sequence: str) -> int | None:
        """The last number of a sequence (empty: of any) that the session got; None: it got none."""

    def set_number(self, sequence: str, number: int, *, called: bool) -> None:
        """Let a sequence go on after a number that is given out (`called`), or with that number."""

    def plain_view(self, name: str) -> str | None:
        """The SELECT text of a plain view, with its column list applied, None if none has that name."""

    def names(self) -> tuple[str, ...]:
        """The names of all tables, materialized and plain views."""

    def table_function(self, name: str) -> tuple[tuple[str, SqlType], ...] | None:
        """The columns (name, type) of a table function that the user registered, None if none has that name."""

    def table_functions(self) -> tuple[str, ...]:
        """The names of the user's table functions."""

    def reduce(self, name: str) -> tuple[tuple[str, SqlType], ...] | None:
        """The columns (name, type) of a reduce that the user registered, None if none has that name."""

    def reduces(self) -> tuple[str, ...]:
        """The names of the user's reduces."""

    def aggregate(self, name: str) -> UserAggregate | None:
        """The aggregate of the user's that has that name, None if none has."""
