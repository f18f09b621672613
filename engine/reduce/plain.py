"""Sums of integers and numerics by a kernel: the same bytes as those of `Totals`, in one call for a sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from halfjoin.engine.kernels import native
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.updates.updates import Ints

KINDS = frozenset(("count", "integers"))  # those that the kernel may know


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

    def running(self, moments: Moments, old: pa.Array | None) -> pa.Array | None:
        """As `Few.running`; None without a kernel for this kind or these values."""
        if self.kind not in KINDS:
            return None
        summed = None if self.kind == "count" else self.arrays[0]
        return native.totals(summed, list(self.arrays), old, self.diff, moments.rows, moments.starts, moments.group,
                             moments.was, moments.begins)  # fmt: skip
