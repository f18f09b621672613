"""Cuts pairs of a lookup into pieces of bounded bytes, where their rows have long texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.arrange.run import Run
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Ints, Updates, where_true

FEW = 16  # pairs; so few are never cut, however long their texts
RowNumbers = NDArray[Any]
_WIDE = frozenset(kind.id for kind in (pa.string(), pa.binary(), pa.list_(pa.int64())))


class Pairs(NamedTuple):
    """Positions in the stream, and the rows of a run that each found. Unless `certain`, their keys may differ."""

    positions: Ints
    run: Run
    rows: RowNumbers
    certain: bool


def may_be_long(stream: Updates, run: Run, names: Sequence[str]) -> bool:
    """Whether the stream, or these columns of a run, have texts or arrays."""
    both = (*stream.columns.values(), *_columns(run, names))
    return bool([1 for column in both if column.type.id in _WIDE])


def fit(stream: Updates, found: Sequence[Pairs], names: Sequence[str]) -> bool:
    """Whether the texts of all pairs fit in one piece. `names`: the columns of partners that are read."""
    most = _text_bytes(stream.columns.values())
    most += max([_text_bytes(_columns(pairs.run, names)) for pairs in found])
    if sum([len(pairs.rows) for pairs in found]) * most <= limits.PIECE_BYTES:
        return True
    return sum(int(_widths(stream, pairs, names).sum()) for pairs in found) <= limits.PIECE_BYTES


def pieces(stream: Updates, found: Iterable[Pairs], names: Sequence[str]) -> Iterator[list[Pairs]]:
    """The pairs in pieces whose texts take about `limits.PIECE_BYTES`."""
    for pairs in found:
        steps = np.cumsum(_widths(stream, pairs, names)) // limits.PIECE_BYTES
        ends = [*(where_true(np.diff(steps)) + 1).tolist(), len(pairs.rows)]
        for start, stop in zip([0, *ends], ends, strict=False):
            yield [Pairs(pairs.positions[start:stop], pairs.run, pairs.rows[start:stop], pairs.certain)]


def _columns(run: Run, names: Sequence[str]) -> list[pa.Array]:
    """These columns of a run. Names that a table function makes are no columns."""
    columns = run.updates.columns
    return [columns[name] for name in names if name in columns]


def _widths(stream: Updates, pairs: Pairs, names: Sequence[str]) -> Ints:
    """The bytes of the texts in each pair's two rows."""
    total = np.zeros(len(pairs.rows), np.int64)
    for columns, places in ((stream.columns.values(), pairs.positions), (_columns(pairs.run, names), pairs.rows)):
        for column in columns:
            if _text_bytes([column]):
                total += _lengths_at(column, places)
    return total


def _text_bytes(columns: Iterable[pa.Array]) -> int:
    """The bytes of the buffers of columns of variable width; 0 for a fixed width. A slice has those of the whole."""
    buffers = [column.buffers() for column in columns if column.type.id in _WIDE]
    return sum([one.size for each in buffers for one in each if one is not None])


def _lengths_at(column: pa.Array, rows: RowNumbers) -> Ints:
    """The bytes of the values at some positions; for arrays, estimated from their elements' average size."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset :]
    rows = rows.astype(np.int64)
    lengths: Ints = offsets[rows + 1].astype(np.int64) - offsets[rows]
    if pt.is_list(column.type):
        lengths *= 1 + int(column.values.nbytes) // max(1, len(column.values))
    return lengths
