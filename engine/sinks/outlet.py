"""The protocol of what a courier writes to: a Delta table, or a topic of Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from halfjoin.engine.updates.updates import Updates


class Outlet(Protocol):
    """Shows a collection elsewhere, and keeps there how far it has come. One thread at a time. No other writer.

    Raises:
        StorageError: from every method, if the place fails. Then `open` must be called again.
    """

    is_open: bool

    def open(self) -> int | None:
        """Open it. Returns the `upper` of what it shows; None if it shows nothing yet."""

    def change(self, changes: Iterable[Updates], upper: int, note: str | None = None) -> bool:
        """Apply changes, all or none, after which it shows the contents as of below `upper`.

        Returns whether anything changed. If not, it keeps the `upper` it had. Iterating over `changes` again gives the
        same pieces.
        """

    def rewrite(self, contents: Iterable[Updates], upper: int, note: str | None = None) -> bool:
        """Show contents instead of what it shows, all or none. Returns as `change`."""

    def undo(self) -> None:
        """Remove as much as possible of what could not be filled."""
