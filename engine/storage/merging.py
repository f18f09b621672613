"""Merge files into one run, a range of keys at a time, so that memory holds only a part of large files."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from halfjoin.engine.storage.parquet import StoredFile, file_name, write_file
from halfjoin.engine.storage.parquet_reader import Bounds, OpenFile, opened
from halfjoin.engine.storage.place import Place
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Mask, Updates, concat

RANGE_BYTES = 16 << 20  # bytes of updates to merge at a time; the work needs several times as much
_POINTS = 8  # at how many points of its range the rows of a row group are assumed to be


def merged(
    place: Place, files: Sequence[StoredFile], schema: Mapping[str, pa.DataType], sort: Sequence[str], since: int
) -> Iterator[StoredFile]:
    """Merge files into one run of files with all their updates. Each file is durable when it is yielded.

    Equal rows have equal keys, so they are in the same range. Ranges divide the first column by which files are sorted,
    if the statistics of all row groups have its bounds. Otherwise they divide the codes of whole rows, and each range
    reads everything.

    Compaction law. Times below `since` may move up to `since`. Then equal rows add up, and zeros are dropped. No read
    at or above `since` can tell.
    """
    sources = [opened(place, file.name) for file in files]
    rows, size = sum(file.rows for file in files), sum(source.loaded_bytes(schema) for source in sources)
    most = max(1, rows * RANGE_BYTES // max(size, 1))
    known = bool(sources and sort) and all(source.bounds(sort[0], schema[sort[0]]) for source in sources)
    lead = sort[0] if known else None
    splits = _evenly(rows, most) if lead is None else _by_statistics(sources, lead, schema[lead], most)
    run, number = uuid.uuid4(), 0
    for low, high in zip([MINIMUM, *splits], [*splits, MAXIMUM], strict=True):
        parts = [part for source in sources for part in _between(source, schema, lead, low, high)]
        updates = consolidate(concat(parts).not_before(since)) if parts else None
        if updates is not None and len(updates):
            yield write_file(place, file_name(run, number), updates, schema, sort)
            number += 1


def _evenly(rows: int, most: int) -> list[int]:
    """Bounds that divide the codes, which are hashes, into equal ranges."""
    count = -(-rows // most)
    return [MINIMUM + (i << 64) // count for i in range(1, count)]


def _by_statistics(sources: Sequence[OpenFile], lead: str, kind: pa.DataType, most: int) -> list[int]:
    """Bounds of ranges with about `most` rows each, if the rows of a group lie evenly between its bounds."""
    bounds = [_bounds(source, lead, kind) for source in sources]
    least, greatest = (np.concatenate([one[side] for one in bounds]).astype(np.float64) for side in (0, 1))
    points = np.linspace(least, greatest, _POINTS).ravel()
    rows = np.tile(np.concatenate([source.group_rows for source in sources]) / _POINTS, _POINTS)
    order = np.argsort(points, kind="stable")
    steps = np.cumsum(rows[order]) // most
    starts = points[order][1:][np.diff(steps) > 0]
    return [int(value) for value in np.unique(starts) if MINIMUM < value < MAXIMUM]


def _between(
    source: OpenFile, schema: Mapping[str, pa.DataType], lead: str | None, low: int, high: int
) -> Iterator[Updates]:
    """A file's updates whose code is in `[low, high)`. The last range includes its end."""
    groups: Mask = np.ones(source.groups, np.bool_)
    if lead is not None:
        least, greatest, nulls = _bounds(source, lead, schema[lead])
        groups = ((greatest >= low) & ((least < high) | (high == MAXIMUM))) | nulls
    for updates in source.read(groups, schema, limits.READ_ROWS):
        # With a further column, because the code of a single column of integers is its value, not a hash.
        keys = [updates.columns[lead]] if lead is not None else [*updates.columns.values(), pa.nulls(len(updates))]
        values = codes(keys, len(updates))
        found = updates.filter((values >= low) & ((values < high) | (high == MAXIMUM)))
        if len(found):
            yield found


def _bounds(source: OpenFile, lead: str, kind: pa.DataType) -> Bounds:
    found = source.bounds(lead, kind)
    assert found is not None
    return found
