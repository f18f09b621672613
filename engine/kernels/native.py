"""Whether native kernels are used, and how what they give becomes arrays. The files beside this one call them.

Each call answers None where there is no kernel for the case; then the caller uses NumPy and Arrow.

The extension is optional: `pip install` builds it where a C compiler is, and goes on where not. So each caller has the
other way, too, and both give the same answer: the laws are tested on both. `HALFJOIN_NATIVE=0` turns the kernels off.
A kernel knows integers, booleans, dates, times, floats, decimals, intervals and texts, with NULLs. It does not know
arrays and other nested values.

Rows of several runs are given as `counts`: so many rows of the first run, then so many of the second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_VERSION = 21  # of the extension; each change of what its functions take or give raises it, here and in module.c

try:
    from halfjoin.engine.kernels import _native
except ImportError:  # it was not built
    BUILT = False
else:
    BUILT = getattr(_native, "VERSION", 1) == _VERSION  # no: it was built from other sources

Ints = NDArray[np.int64]
RowNumbers = NDArray[np.uint32]
Words = NDArray[np.uint64]
Positions = NDArray[Any]  # int64 or uint32
# Codes in order, the row of each, and the guide: starts of ranges (None: there is no guide), least code, shift.
SortedCodes: TypeAlias = tuple[Ints, RowNumbers, RowNumbers | None, int, int]
Weights: TypeAlias = tuple[Ints, Ints, Ints | None, Ints | None]  # times, diffs; netted rows, and their diffs

ARRAY, BUFFER = pa.Array.from_buffers, pa.py_buffer
NONE = np.zeros(0, np.int64)
VARIABLE = "HALFJOIN_NATIVE"
on = BUILT and os.environ.get(VARIABLE, "1") != "0"  # whether kernels are used


@contextmanager
def used(wanted: bool) -> Iterator[None]:
    """Use kernels, or not, for a while; kernels that were not built are not used."""
    global on
    before, on = on, wanted and BUILT
    try:
        yield
    finally:
        on = before


def arrays_of(like: list[pa.Array], made: list[Any], length: int) -> list[pa.Array] | None:
    """Columns of these buffers, with the types of `like`. None: the texts of one are too long for one array."""
    if None in made:
        return None
    return [ARRAY(column.type, length, [part if part is None else BUFFER(part) for part in parts])
            for column, parts in zip(like, made, strict=True)]  # fmt: skip


def column_of(type: pa.DataType, length: int, parts: tuple[bytes | None, ...]) -> pa.Array:
    """A column of these buffers."""
    return ARRAY(type, length, [None if part is None else BUFFER(part) for part in parts])


def ints(made: bytearray) -> Ints:
    """The numbers in what a kernel gave."""
    return np.frombuffer(made, np.int64)
