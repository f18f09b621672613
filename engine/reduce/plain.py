"""Sums of integers, numerics and floats by a kernel: the same as those of `Totals`, in one call for a sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.kernels import native, summing
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.updates.updates import Ints

KINDS = frozenset(("count", "integers"))  # those that the kernel may know
_FLOATS = frozenset(("floats", "float products"))


@dataclass(frozen=True, slots=True)
class Plain:
    """What updates add to a sum of one kind: the arguments and diffs as they are, from which nothing is made yet.

    Most sums of most batches fit into the kernel's 128 bits. For the others the caller asks for `totals`.
    """

    kind: str
    arrays: Sequence[Any]
    diff: Ints

    def totals(self) -> Totals:
        """The same as `Totals`."""
        return Totals.lifted(self.kind, self.arrays, self.diff)

    def added(self, moments: Moments) -> Totals:
        """What the updates of each moment add, for those that have updates."""
        starts, rows = moments.starts, moments.rows
        if self.kind in _FLOATS and len(starts) and native.on:
            group = np.empty(len(rows), np.int64)
            group[rows] = np.arange(len(starts)).repeat(np.diff(starts, append=len(rows)))
            found = Totals.of_floats(self.kind, self.arrays, self.diff, group, len(starts))
            if found is not None:
                return found
        return self.totals().take(rows).added(starts)

    def running(self, moments: Moments, old: pa.Array | None) -> pa.Array | None:
        """As `Few.running`; None without a kernel for this kind or these values."""
        if self.kind not in KINDS:
            return None
        summed = None if self.kind == "count" else self.arrays[0]
        return summing.totals(summed, list(self.arrays), old, self.diff, moments.rows, moments.starts, moments.group,
                              moments.was, moments.begins)  # fmt: skip
