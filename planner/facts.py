"""What the planner may ask about the collections that exist; the engine answers, tests answer with a stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from halfjoin.planner.plan import ArrangementKey, Node


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
