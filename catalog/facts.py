"""What the planner may ask about the collections that exist; the engine answers, tests answer with a stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from halfjoin.sql.expr import Column
from halfjoin.sql.types import SqlType

if TYPE_CHECKING:
    from halfjoin.planner.plan import ArrangementKey, Node


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


class Facts(Protocol):
    """Sizes and indexes, for choosing join orders."""

    def rows(self, collection: str) -> int:
        """Updates held, an upper bound of the number of rows; none of a collection that does not exist yet."""

    def unique_keys(self, collection: str) -> tuple[tuple[str, ...], ...]:
        """Sets of columns that identify a row."""

    def users(self, key: ArrangementKey) -> tuple[str, ...] | None:
        """Views (and `index name`) that share an existing arrangement; None where it does not exist."""

    def distinct(self, key: ArrangementKey) -> int | None:
        """Distinct keys of an existing arrangement, None where unknown."""

    def incarnation(self, collection: str) -> str:
        """What tells a table or materialized view apart from another that had its name, or will have it."""

    def node(self, name: str) -> Node | None:
        """The node of that name whose output is kept already, None if there is none."""

    def node_users(self, name: str) -> tuple[str, ...]:
        """Views that share an existing node."""
