"""Computes the fingerprint of a batch. It is equal for equal content, in any order, form and number of parts.

The content of a batch is, for each table, a multiset of (row, time or none, diff), and the meaning of the rows. Rows
are hashed, and the hashes are added modulo 2**64, so their order does not matter. Each part of a batch gets a `Partial`
where the part is; the `Partial`s add up to that of the whole batch. Two batches that differ have the same fingerprint
with a probability of about 2**-64.

A column that a row does not name adds nothing to its hash. So a batch that comes again after ALTER TABLE ... ADD COLUMN
is the same batch. A NULL adds nothing either, as a row may leave it out, except in upserts, where it means another
thing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.intake.rows import Submitted
from halfjoin.engine.updates.codes import Words, codes, mix, polynomial
from halfjoin.engine.updates.updates import DIFF, TIME

# Fingerprints of the first version depended on the order of rows and had no version byte; those of the second depended
# on columns that no row names.
_VERSION = b"\x03"
_ROWS = 1 + hashlib.sha256().digest_size  # bytes that tell the content
_IDS = 16  # bytes that tell the tables; older warehouses have fingerprints without them
_BASES = np.array([[0x9E3779B97F4A7C15], [0xD1342543DE82EF95]], np.uint64)  # odd numbers, one for each sum
_NULL = np.uint64(0xA0761D6478BD642F)


@dataclass(frozen=True, slots=True)
class Partial:
    """The fingerprint of a part of a table's rows: their meaning, their number, and two sums of their hashes.

    Partials with the same meaning add up.
    """

    meaning: str
    rows: int
    sums: tuple[int, int]

    def __add__(self, other: Partial) -> Partial:
        """The fingerprint of both parts together.

        Raises:
            ValueError: the parts have different meanings.
        """
        if self.meaning != other.meaning:
            raise ValueError(f"parts of different tables or meanings: {self.meaning}, {other.meaning}")
        first, second = (sum(pair) % 2**64 for pair in zip(self.sums, other.sums, strict=True))
        return Partial(self.meaning, self.rows + other.rows, (first, second))


def partial(rows: Submitted) -> Partial:
    """The fingerprint of checked rows. Upserts must not repeat a key: their order would matter (`upserts.latest`)."""
    diff = np.ones(rows.length, np.int64) if rows.diff is None else rows.diff
    hashes = _told(DIFF, pa.array(diff))
    if rows.time is not None:
        hashes += _told(TIME, pa.array(rows.time))
    for name, column in rows.columns.items():
        if column.null_count == rows.length and not rows.upsert:  # such as a column that no row names
            continue
        told = _told(name, column)
        if column.null_count and not rows.upsert:
            told[:, column.is_null().to_numpy(zero_copy_only=False)] = 0
        elif rows.upsert:
            null = column.is_null().to_numpy(zero_copy_only=False)
            told = np.where(null, mix(told ^ _NULL), told)
            told[:, rows.unnamed.get(name, False) | (null & (diff == 0))] = 0
        hashes += told
    first, second = mix(hashes).sum(axis=1, dtype=np.uint64).tolist()
    return Partial(repr((rows.upsert, rows.whole)), rows.length, (first, second))


def _told(name: str, column: pa.Array) -> Words:
    """Two hashes of each value, by the column's name and type. NULL gets arbitrary ones."""
    told = hashlib.sha256(repr((name, str(column.type))).encode()).digest()
    return mix(_words(column) * _BASES + np.frombuffer(told, np.uint64, 2)[:, None])


def digest(tables: Mapping[str, Partial], time: int | None, close: bool, ids: Mapping[str, str] | None = None) -> bytes:
    """The fingerprint of a whole batch: of its tables by name, and of its `time` and `close`; then of the `ids` that
    tell its tables from others of their names."""
    content = [(name, part.meaning, part.rows, part.sums) for name, part in sorted(tables.items())]
    whole = _VERSION + hashlib.sha256(repr((time, close, content)).encode()).digest()
    return whole if ids is None else whole + hashlib.sha256(repr(sorted(ids.items())).encode()).digest()[:_IDS]


def agree(kept: bytes, new: bytes) -> bool:
    """Whether a `new` batch may be the batch whose fingerprint was `kept` under the same id.

    A fingerprint of another version cannot be compared. Then the id decides, and the result is true. One without the
    ids of tables is compared without them.
    """
    if kept[:1] != new[:1] or len(kept) not in (_ROWS, _ROWS + _IDS):
        return True
    return same_rows(kept, new) and kept[_ROWS:] in (b"", new[_ROWS:])


def same_rows(kept: bytes, new: bytes) -> bool:
    """Whether the rows are the same, into tables of the same names."""
    return kept[:_ROWS] == new[:_ROWS]


def _words(column: pa.Array) -> Words:
    """A 64-bit word for each value: integers as they are, other types hashed. NULL gets an arbitrary word."""
    if pt.is_struct(column.type):
        whole = np.zeros(len(column), np.uint64)
        for member in column.flatten():
            word = mix(_words(member))
            if member.null_count:
                word = np.where(member.is_null().to_numpy(zero_copy_only=False), mix(word ^ _NULL), word)
            whole = mix(whole * _BASES[0] + word)
        return whole
    if not pt.is_list(column.type):
        return codes([column], len(column)).view(np.uint64)
    inner = column.flatten()
    words = mix(_words(inner))
    if inner.null_count:
        words = np.where(inner.is_null().to_numpy(zero_copy_only=False), mix(words ^ _NULL), words)
    return polynomial(words, pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64))
