"""The memory that state may take: rows and indexes held in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from halfjoin.engine.run import Part


@dataclass(frozen=True, slots=True)
class Memory:
    """A budget in bytes (None: no limit), and what is held of it."""

    limit: int | None = None
    held: Callable[[], Iterable[Part]] = tuple

    def used(self) -> int:
        """Bytes held."""
        return sum(part.row_bytes + part.index_bytes for part in self.held())

    def takes(self, size: int) -> bool:
        """Whether so many bytes more may be held."""
        return self.limit is None or self.used() + size <= self.limit
