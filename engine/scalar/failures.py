"""Which rows of a batch an expression fails for, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Failures:
    """`rows` are positions in the batch, ascending; `messages` the reason of each, of the same length."""

    rows: Rows
    messages: NDArray[Any]

    @classmethod
    def of(cls, rows: Rows, message: str) -> Failures:
        """All rows for the same reason."""
        messages = np.empty(len(rows), object)
        messages[:] = message
        return cls(rows, messages)

    def only(self, mask: NDArray[np.bool_]) -> Failures | None:
        """Those at the rows of the batch where `mask` is true."""
        kept = mask[self.rows]
        return Failures(self.rows[kept], self.messages[kept]) if kept.any() else None

    def at(self, positions: Rows) -> Failures:
        """The same failures in the larger batch that row `i` came from as row `positions[i]`, ascending."""
        return Failures(positions[self.rows], self.messages)


def merge(first: Failures | None, second: Failures | None) -> Failures | None:
    """Both; where a row fails twice, the first reason stays."""
    if first is None or second is None:
        return first or second
    rows = np.concatenate([first.rows, second.rows])
    messages = np.concatenate([first.messages, second.messages])
    unique, index = np.unique(rows, return_index=True)
    return Failures(unique, messages[index])


class Failed(Exception):
    """Raised by a kernel: a value cannot be computed.

    `mask` tells at which rows, if the kernel knows; `strict` is false if NULL among the arguments is not the result.
    """

    def __init__(self, message: str, mask: NDArray[np.bool_] | None = None, *, strict: bool = True) -> None:
        super().__init__(message)
        self.message, self.mask, self.strict = message, mask, strict
