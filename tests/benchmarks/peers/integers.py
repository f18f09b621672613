"""Rows as integers, which every contender keeps exactly, and a checksum of them.

Money is in units of its last digit, dates are days since 1970, and segments are positions in `SEGMENTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from examples.tpch import Q3_DATE, SEGMENTS, Ints

Tables: TypeAlias = dict[str, pa.Table]
Columns: TypeAlias = Mapping[str, Ints]

DAY = int(Q3_DATE.astype("datetime64[D]").astype(np.int64))  # of query 3's filters
BUILDING = SEGMENTS.index("BUILDING")
CENTS, REVENUE = pa.decimal128(38, 2), pa.decimal128(38, 4)  # a revenue is a price times a discount


def integers(rows: pa.Table) -> dict[str, Ints]:
    """Each column as integers."""
    return {name: _integers(rows[name].combine_chunks(), name) for name in rows.column_names}


def checksum(rows: Columns) -> str:
    """The number of rows, and the sum of their 64-bit hashes, which does not depend on their order."""
    hashes = np.zeros(len(next(iter(rows.values()))), np.uint64)
    for name in sorted(rows):
        hashes = _mixed(hashes + rows[name].astype(np.uint64))
    return f"{len(hashes):,} rows, checksum {int(hashes.sum(dtype=np.uint64)):016x}"


def _integers(column: pa.Array, name: str) -> Ints:
    if pa.types.is_decimal(column.type):
        column = column.cast(REVENUE if name == "revenue" else CENTS)
        words = np.frombuffer(column.buffers()[1], np.int64)  # two for each value, the low one first
        return words[2 * column.offset : 2 * (column.offset + len(column)) : 2].copy()
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_string(column.type):
        column = pc.index_in(column, pa.array(SEGMENTS))
    values: Ints = column.to_numpy().astype(np.int64)
    return values


def _mixed(values: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Spread each bit over all others: the last steps of SplitMix64 (Steele, Lea and Flood 2014)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray[tuple[int], np.dtype[np.uint64]] = values ^ (values >> np.uint64(31))
    return mixed
