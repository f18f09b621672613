"""A guide to sorted codes: it says where each range of values starts, so a search begins near its result.

A binary search waits for memory at each of its steps. A guide computes a probe's range from the probe's value. Then it
narrows the windows of all probes together, so the processor can fetch memory for many probes at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfjoin.engine.kernels import indexing
from halfjoin.engine.updates.updates import Ints

_RANGE = 8  # codes, on average


@dataclass(frozen=True, slots=True)
class Guide:
    """Range `i` holds the codes from `least + (i << shift)`. They are at positions `starts[i]` to `starts[i + 1]`.

    A guide takes half a byte per code.
    """

    least: np.uint64
    shift: np.uint64
    starts: NDArray[np.uint32]

    @property
    def plain(self) -> tuple[NDArray[np.uint32], int, int]:
        """The starts, the least code and the shift, as kernels read them."""
        return self.starts, int(self.least), int(self.shift)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.starts.nbytes

    def first_at_least(self, codes: Ints, probes: Ints) -> Ints:
        """For each probe, the position of the first code that is at least the probe.

        For a probe that is not among the codes, the position may be any other.
        """
        ranges = (probes.view(np.uint64) - self.least) >> self.shift  # a probe below `least` wraps around
        ranges = np.minimum(ranges, np.uint64(len(self.starts) - 2)).view(np.int64)
        position = self.starts.take(ranges).astype(np.int64)
        widest = int((self.starts.take(ranges + 1) - position).max())
        below: Ints = position - 1  # the last position known to hold less than the probe
        step = (1 << widest.bit_length()) >> 1
        while step:
            further = below + step
            np.copyto(below, further, where=codes.take(further, mode="clip") < probes)
            step >>= 1
        below += 1
        return below


def guide_to(codes: Ints) -> Guide:
    """The guide to sorted codes. There must be at least one code."""
    least, span = codes[:1].view(np.uint64)[0], int(codes[-1]) - int(codes[0])
    shift = np.uint64((span // max(1, len(codes) // _RANGE)).bit_length())
    made = indexing.starts(codes, int(shift))
    if made is not None:
        return Guide(least, shift, made)
    ranges = ((codes.view(np.uint64) - least) >> shift).view(np.int64)
    starts = np.zeros(int(ranges[-1]) + 2, np.uint32)
    starts[1:] = np.bincount(ranges).cumsum()
    return Guide(least, shift, starts)
