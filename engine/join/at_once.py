"""Partners that a kernel has found in all runs of an arrangement, where more is to be done before they are joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.run import Run
from halfjoin.engine.kernels import joining
from halfjoin.engine.scalar.values import mask_of
from halfjoin.engine.updates.updates import Ints, Mask, Positions

Fetch = tuple[tuple[str, str], ...]  # columns of the collection, and their names in the stream


class Partners(NamedTuple):
    """Pairs of a position in the stream and a row: `counts[i]` pairs with rows of `runs[i]`, run after run."""

    positions: Ints
    runs: list[Run]
    rows: Positions
    counts: list[int]

    def __len__(self) -> int:
        return len(self.rows)

    def apart(self) -> Iterator[tuple[Ints, Run, Positions]]:
        """The pairs of each run."""
        start = 0
        for run, count in zip(self.runs, self.counts, strict=True):
            stop = start + count
            yield self.positions[start:stop], run, self.rows[start:stop]
            start = stop

    def filter(self, mask: Mask) -> Partners:
        """The pairs where the mask is true."""
        if mask.all():
            return self
        starts = np.cumsum([0, *self.counts[:-1]])
        left = np.add.reduceat(mask, starts, dtype=np.int64).tolist()
        some = [(run, count) for run, count in zip(self.runs, left, strict=True) if count]
        runs, counts = [run for run, _ in some], [count for _, count in some]
        return Partners(self.positions[mask], runs, self.rows[mask], counts)

    def passing(self, mask: pa.Array) -> Partners:
        """The pairs where a condition is true, not false or NULL."""
        made = joining.passing(mask, self.positions, self.rows, self.counts)
        if made is None:
            return self.filter(mask_of(mask))
        return self if made[2] is self.counts else partners_of(self.runs, *made)

    def sources(self, names: Sequence[str]) -> list[list[pa.Array]]:
        """These columns of each run."""
        return [[columns[name] for name in names] for columns in [run.updates.columns for run in self.runs]]

    def columns(self, fetch: Fetch) -> dict[str, pa.Array] | None:
        """The partners' columns. None: there is no kernel for some type."""
        if not fetch:
            return {}
        made = joining.gather(self.sources([name for name, _ in fetch]), self.rows, self.counts)
        return None if made is None else dict(zip([name for _, name in fetch], made, strict=True))

    def weights(self, closed: int) -> tuple[Ints, Ints] | None:
        """The partners' times and diffs. Updates below `closed` are added up, where a run has netted them."""
        return joining.weights([run.weights(closed) for run in self.runs], self.rows, self.counts)


def partners_of(runs: Sequence[Run], positions: Ints, rows: Positions, counts: list[int]) -> Partners:
    """The pairs of the runs that have some."""
    if 0 in counts:
        runs, counts = [run for run, count in zip(runs, counts, strict=True) if count], [one for one in counts if one]
    return Partners(positions, list(runs), rows, counts)
