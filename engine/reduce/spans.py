"""What a frame holds for each row: a few spans of positions, with a start and an end (the position after the last)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.engine.updates.updates import Ints, Mask


@dataclass(frozen=True, slots=True)
class Spans:
    """For each row the positions in `[start, end)` of each of the `pieces`, which ascend and do not overlap."""

    pieces: tuple[tuple[Ints, Ints], ...]

    def among(self, kept: Mask) -> Spans:
        """The spans in terms of the kept positions only, numbered from 0."""
        if kept.all():
            return self
        before = np.concatenate([[0], np.cumsum(kept)])
        return Spans(tuple((before[start], before[end]) for start, end in self.pieces))

    def without(self, first: Ints, last: Ints) -> Spans:
        """The spans without the positions in `[first, last)`."""
        left = [(start, np.clip(first, start, end)) for start, end in self.pieces]
        right = [(np.clip(last, start, end), end) for start, end in self.pieces]
        return Spans(tuple(piece for pair in zip(left, right, strict=True) for piece in pair))

    @property
    def sizes(self) -> Ints:
        """The number of positions of each row."""
        total: Ints = np.sum([end - start for start, end in self.pieces], axis=0)
        return total

    def nth(self, number: Ints) -> Ints:
        """The position with this number, from 0; -1 if there are fewer."""
        found = np.full(len(number), -1)
        left = number.copy()
        for start, end in self.pieces:
            found = np.where((found < 0) & (left >= 0) & (left < end - start), start + left, found)
            left = left - (end - start)
        return found

    def positions(self, first: int, last: int) -> Ints:
        """All positions of the rows from `first` to `last`, row after row."""
        start = np.stack([piece[0][first:last] for piece in self.pieces], axis=1).ravel()
        size = np.stack([piece[1][first:last] for piece in self.pieces], axis=1).ravel() - start
        ends = np.cumsum(size)
        found: Ints = np.arange(int(size.sum())) + np.repeat(start - (ends - size), size)
        return found


def taken(values: pa.Array, positions: Ints) -> pa.Array:
    """The values at positions; NULL for a negative one."""
    return values.take(pa.array(positions, mask=positions < 0))
