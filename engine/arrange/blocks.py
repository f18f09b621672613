"""The ends of the blocks of a column in memory, and which rows of a run are left of its blocks.

Ends are found once for a run and column. Where the rows have no order, as most columns, any block has values from
everywhere; a sample tells so, and nothing is known of the column.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.scalar.ends import Ends
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.updates import Ints, Mask

ROWS = 1 << 15  # of a block
FEW = 1 << 17  # rows; to leave out some of fewer spares nothing
_PIECES, _PIECE = 16, 1 << 10  # of a sample: how many, and the rows of each
_LONGEST = 1 << 8  # bytes; longer texts are not kept
_MOST = 16  # stretches of rows; more cost more to read than a few rows between them


def ends_of(column: pa.Array) -> Ends | None:
    """The ends of a column's blocks. None: of this type they are not known, or all blocks have about the same."""
    if pt.is_boolean(column.type) or not (is_exact([column]) or _is_ordered(column)):
        return None
    starts = np.arange(0, len(column), ROWS)
    if len(starts) * ROWS > 2 * _PIECES * _PIECE:
        places = np.linspace(0, len(column) - _PIECE, _PIECES).astype(np.int64).tolist()
        sample = [_ends(column.slice(place, _PIECE), np.zeros(1, np.int64)) for place in places]
        least, greatest = (pa.concat_arrays(list(side)) for side in zip(*sample, strict=True))
        if not bool(pc.greater(pc.max(least), pc.min(greatest)).as_py()):
            return None
    found = _ends(column, starts)
    if pt.is_string(column.type) and any((pc.max(pc.binary_length(side)).as_py() or 0) > _LONGEST for side in found):
        return None
    return found


def _is_ordered(column: pa.Array) -> bool:
    """Whether Arrow, or NumPy, orders values as SQL does. Where some floats are NULL, nobody knows which are NaN."""
    kind = column.type
    if pt.is_floating(kind):
        return not column.null_count
    return bool(pt.is_string(kind) or pt.is_decimal128(kind) or (column.null_count and is_exact([pa.nulls(0, kind)])))


def _ends(column: pa.Array, starts: Ints) -> Ends:
    """The ends of the stretches that begin at `starts`."""
    if pt.is_floating(column.type):
        values = column.to_numpy()
        return Ends(pa.array(np.fmin.reduceat(values, starts)), pa.array(np.maximum.reduceat(values, starts)))
    if is_exact([column]):
        values = codes([column], len(column))
        sides = (np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts))
        return Ends(*(_values(side, column.type) for side in sides))
    stops = [*starts[1:].tolist(), len(column)]
    found = [pc.min_max(column.slice(start, stop - start)) for start, stop in zip(starts.tolist(), stops, strict=True)]
    return Ends(*(pa.array([each[side] for each in found], column.type) for side in ("min", "max")))


def _values(numbers: Ints, kind: pa.DataType) -> pa.Array:
    """Integers as the values whose codes they are."""
    return pa.array(numbers.astype(f"i{kind.bit_width // 8}")).view(kind)


def stretches(mask: Mask, rows: int) -> Iterator[tuple[int, int]]:
    """Where the rows of marked blocks begin and end, in few stretches: small gaps between them are read, too."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    if len(starts) > _MOST:
        gaps = np.sort((starts[1:] - stops[:-1]).argsort()[-_MOST + 1 :])
        starts, stops = starts[np.append(0, gaps + 1)], stops[np.append(gaps, len(stops) - 1)]
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        yield start * ROWS, min(stop * ROWS, rows)
