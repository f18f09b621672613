"""Failures: the rows of a batch for which an expression fails, and the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RowNumbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Failures:
    """The failing rows: `rows` are ascending positions in the batch, and `messages[i]` is the reason of `rows[i]`."""

    rows: RowNumbers
    messages: NDArray[Any]

    @classmethod
    def of(cls, rows: RowNumbers, message: str) -> Failures:
        """Failures of all these rows for the same reason."""
        messages = np.empty(len(rows), object)
        messages[:] = message
        return cls(rows, messages)

    def only(self, mask: NDArray[np.bool_]) -> Failures | None:
        """The failures at the rows of the batch where `mask` is true. None if there are none."""
        kept = mask[self.rows]
        return Failures(self.rows[kept], self.messages[kept]) if kept.any() else None

    def at(self, positions: RowNumbers) -> Failures:
        """The same failures in the larger batch, in which row `i` is row `positions[i]`. `positions` ascend."""
        return Failures(positions[self.rows], self.messages)


def merge(first: Failures | None, second: Failures | None) -> Failures | None:
    """Both failures. If a row fails twice, the first reason stays."""
    if first is None or second is None:
        return first or second
    rows = np.concatenate([first.rows, second.rows])
    messages = np.concatenate([first.messages, second.messages])
    unique, index = np.unique(rows, return_index=True)
    return Failures(unique, messages[index])


class Failed(Exception):
    """A kernel raises this if it cannot compute a value.

    `mask` marks the failing rows, if the kernel knows them. `strict`: a NULL argument makes the result NULL.
    """

    def __init__(self, message: str, mask: NDArray[np.bool_] | None = None, *, strict: bool = True) -> None:
        super().__init__(message)
        self.message, self.mask, self.strict = message, mask, strict
