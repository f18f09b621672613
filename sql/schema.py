"""What the binder may ask about the collections that exist; the catalog answers, tests answer with a stand-in."""

from __future__ import annotations

from typing import Protocol

from halfjoin.sql.expr import Column
from halfjoin.sql.types import SqlType


class Schema(Protocol):
    """Names to meanings, for the binder. Names are as PostgreSQL folds them: lower case unless quoted."""

    def columns(self, collection: str) -> tuple[Column, ...] | None:
        """Columns (bare names) of a table or materialized view, None if there is none of that name."""

    def plain_view(self, name: str) -> str | None:
        """The SELECT text of a plain view (inlined where used; column list already applied), None if none."""

    def names(self) -> tuple[str, ...]:
        """All tables, materialized and plain views."""

    def table_function(self, name: str) -> tuple[tuple[str, SqlType], ...] | None:
        """The columns (name, type) of a table function that the user registered, None if none."""

    def table_functions(self) -> tuple[str, ...]:
        """Names of the user's table functions."""
