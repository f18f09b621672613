"""The memory that state may take: rows and indexes held in this process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from halfjoin.engine.arrange.run import Part
from halfjoin.errors import HalfjoinError, StorageError

# Of the budget: what is brought into memory leaves room for the indexes on it and for what is to come, or it would
# have to go again at once.
_FILLED = 0.5

INDEXED = 13  # bytes that an arrangement's index takes of a row


@dataclass(frozen=True, slots=True)
class Memory:
    """A budget in bytes (None: no limit), and what is held of it.

    It is for rows and indexes. Work under way takes memory beside it, in pieces whose size does not depend on that of
    the collections.
    """

    limit: int | None = None
    held: Callable[[], Iterable[Part]] = tuple

    def used(self) -> int:
        """Bytes held."""
        return sum(part.row_bytes + part.index_bytes for part in self.held())

    def takes(self, size: int) -> bool:
        """Whether so many bytes more may be held."""
        return self.limit is None or self.used() + size <= self.limit

    def invites(self, size: int) -> bool:
        """Whether so many bytes more should be held, where they might as well stay on disk."""
        return self.limit is None or self.used() + size <= self.limit * _FILLED

    def check(self, size: int) -> None:
        """Refuse so many bytes more, if they may not be held.

        Raises:
            StorageError: with what would be held, and the budget.
        """
        if not self.takes(size):
            raise StorageError(
                f"this would bring the state to {self.used() + size:,} bytes, past the budget of {self.limit:,}",
                remedy="give "
                "the engine more memory, a folder to keep its state in, less history to retain, or fewer views and "
                "indexes"
            )


def to_bytes(size: int | str) -> int:
    """A size such as `4GB` or `512 MiB` in bytes; a number is bytes already."""
    if isinstance(size, int) and size > 0:
        return size
    pattern = r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*"
    match = re.fullmatch(pattern, size, re.IGNORECASE) if isinstance(size, str) else None
    if match is None:
        raise HalfjoinError(f"memory={size!r} is not a size",
                            remedy="write it like 512MB or 4GB, or give a number of bytes")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(unit.lower() or " "))
