"""The questions that the planner asks about existing collections. The engine answers them; tests use a stand-in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from halfjoin.planner.plan import ArrangementKey, Node


@dataclass(frozen=True, slots=True)
class Kept:
    """What a node keeps: updates, and bytes of its rows and indexes in memory. `rounds`: of a binding of a loop, the
    updates that the last batch which ran the loop made in each round, of the outermost loop; empty before there is one.
    """

    updates: int
    bytes: int
    rounds: tuple[int, ...] = ()


class Facts(Protocol):
    """Sizes and indexes, for choosing join orders."""

    def rows(self, collection: str) -> int:
        """Updates held, an upper bound of the number of rows; 0 for a collection that does not exist yet."""

    def unique_keys(self, collection: str) -> tuple[tuple[str, ...], ...]:
        """Sets of columns that identify a row."""

    def users(self, key: ArrangementKey) -> tuple[str, ...] | None:
        """Views (and `index name`) that share an existing arrangement; None if it does not exist."""

    def distinct(self, key: ArrangementKey) -> int | None:
        """Number of distinct keys of an existing arrangement; None if unknown."""

    def values(self, collection: str, column: str) -> int | None:
        """About how many different values a column has now; None if unknown, or if the plan outlives it."""

    def incarnation(self, collection: str) -> str:
        """A text that tells a table or materialized view apart from earlier and later ones of the same name."""

    def node_name(self, fingerprint: str) -> str:
        """The name of the node with that fingerprint: the fingerprint, or the one that the node had before its tables
        were altered."""

    def node(self, name: str) -> Node | None:
        """The node of that name if its output is kept already, else None."""

    def node_users(self, name: str) -> tuple[str, ...]:
        """Views that share an existing node."""

    def kept(self, name: str) -> Kept | None:
        """What an existing node keeps, for explanations."""
