"""The memory budget for state: for the rows and indexes that this process holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from halfjoin.engine.arrange.part import Part
from halfjoin.errors import HalfjoinError, StorageError

# A share of the budget. Rows that could stay on disk are loaded only up to this share. The rest is for their indexes
# and for later rows; without it the loaded rows would have to be dropped at once.
_FILLED = 0.5

# Below 1/8 of the budget it is far. Runs that batches add may take three times as much once they are merged, since each
# row then has its own time, and rows that are loaded meanwhile fill half of the budget: together less than all of it.
_FAR = 8

INDEXED = 13  # bytes that an arrangement's index takes per row


@dataclass(slots=True)
class Memory:
    """A budget in bytes (None: no limit), and the parts that use it.

    The budget is for rows and indexes. A running batch takes additional memory, in pieces whose size does not depend
    on the size of the collections.
    """

    limit: int | None = None
    held: Callable[[], Iterable[Part]] = tuple
    _spare: int = -1  # bytes that batches may add before the next count

    def used(self) -> int:
        """The bytes that all parts hold."""
        return sum([part.row_bytes + part.index_bytes for part in self.held()])

    def allows(self, size: int) -> bool:
        """Whether `size` more bytes fit into the budget."""
        return self.limit is None or self.used() + size <= self.limit

    def takes(self, size: int) -> bool:
        """As `allows`, for a batch that adds `size` bytes. Nobody counts as long as batches alone add bytes and no more
        than an eighth of the budget is used: a count may take longer than a small batch."""
        if self.limit is None:
            return True
        self._spare -= size
        if self._spare >= 0:
            return True
        used = self.used() + size
        self._spare = self.limit // _FAR - used
        return used <= self.limit

    def recommends(self, size: int) -> bool:
        """Whether to load `size` bytes that could stay on disk: they fit into the share `_FILLED` of the budget."""
        self.recount()
        return self.limit is None or self.used() + size <= self.limit * _FILLED

    def recount(self) -> None:
        """Count all parts before the next batch, since something else than a batch adds bytes."""
        self._spare = -1

    def check(self, size: int) -> None:
        """Refuse `size` more bytes if they do not fit into the budget.

        Raises:
            StorageError: names the bytes that the state would take, and the budget.
        """
        if not self.allows(size):
            raise StorageError(
                f"this would bring the state to {self.used() + size:,} bytes, over the budget of {self.limit:,}",
                remedy="give "
                "the engine more memory, a folder to keep its state in, less history to retain, or fewer views and "
                "indexes"
            )


def to_bytes(size: int | str) -> int:
    """A size such as `4GB` or `512 MiB` in bytes. A number counts bytes already.

    Raises:
        HalfjoinError: the size is neither.
    """
    if isinstance(size, int) and size > 0:
        return size
    pattern = r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*"
    match = re.fullmatch(pattern, size, re.IGNORECASE) if isinstance(size, str) else None
    if match is None:
        raise HalfjoinError(f"memory={size!r} is not a size",
                            remedy="write it like 512MB or 4GB, or give a number of bytes")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(unit.lower() or " "))
