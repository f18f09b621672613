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

    def of_groups(self, group: RowNumbers) -> Failures:
        """One failure for each group with a failing row; `group`: of each row of the batch. Of several reasons it is
        the least, so the order of the rows does not show."""
        least: dict[int, str] = {}
        for number, message in zip(group[self.rows].tolist(), self.messages, strict=True):
            least[number] = min(message, least.get(number, message))
        found = Failures.of(np.array(sorted(least), np.int64), "")
        found.messages[:] = [least[number] for number in found.rows.tolist()]
        return found


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
    `messages`: the reason for each row that the mask marks, if the reasons differ.
    """

    def __init__(
        self, message: str, mask: NDArray[np.bool_] | None = None, *, strict: bool = True,
        messages: NDArray[Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.message, self.mask, self.strict, self.messages = message, mask, strict, messages

    @classmethod
    def of(cls, failures: Failures, length: int) -> Failed:
        """The failures of some of `length` rows."""
        mask = np.zeros(length, np.bool_)
        mask[failures.rows] = True
        return cls(str(failures.messages[0]), mask, messages=failures.messages)

    def failures(self, length: int) -> Failures:
        """The failing rows of `length` rows, and their reasons."""
        rows = np.arange(length) if self.mask is None else np.flatnonzero(self.mask)
        return Failures.of(rows, self.message) if self.messages is None else Failures(rows, self.messages)
