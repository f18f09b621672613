"""Window functions that only count rows: row_number, rank, dense_rank, percent_rank, cume_dist, ntile."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.partitions import Partitions
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.updates.updates import Ints, where_true


def _row_number(rows: Partitions) -> pa.Array:
    return pa.array(rows.place - rows.first + 1)


def _rank(rows: Partitions) -> pa.Array:
    return pa.array(rows.first_peer - rows.first + 1)


def _dense_rank(rows: Partitions) -> pa.Array:
    return pa.array(rows.peers - rows.peers[rows.first] + 1)


def _percent_rank(rows: Partitions) -> pa.Array:
    others = rows.end - rows.first - 1
    return pa.array((rows.first_peer - rows.first) / np.maximum(others, 1))


def _cume_dist(rows: Partitions) -> pa.Array:
    return pa.array((rows.peer_end - rows.first) / (rows.end - rows.first))


RANKS: dict[str, Callable[[Partitions], pa.Array]] = {
    "row_number": _row_number, "rank": _rank, "dense_rank": _dense_rank, "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
}  # fmt: skip


def ntile(rows: Partitions, buckets: pa.Array) -> pa.Array:
    """The number of the row's bucket, from 1; the first buckets have one row more than the others.

    As in PostgreSQL the first number of buckets of a partition that is not NULL decides, and rows before it have NULL.

    Raises:
        Failed: a number of buckets is not positive; the mask marks the rows.
    """
    given = where_true(valid(buckets))
    known = np.searchsorted(given, rows.first)
    begin = np.append(given, len(rows))[known]  # the row that decides
    null = (rows.place < begin) | (begin >= rows.end)
    number: Ints = np.where(null, 1, np.append(raw(buckets).astype(np.int64), 1)[np.minimum(begin, len(rows))])
    if (number <= 0).any():
        raise Failed("argument of ntile must be greater than zero", number <= 0)
    size, longer = np.divmod(rows.end - rows.first, number)
    at = rows.place - begin
    in_longer = longer * (size + 1)
    found = np.where(at < in_longer, at // (size + 1), longer + (at - in_longer) // np.maximum(size, 1))
    return pa.array(found + 1, mask=null)
