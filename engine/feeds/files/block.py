"""A part of a file as rows of the table, with the records that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from halfjoin.engine.updates.updates import DIFF, Ints

Bad: TypeAlias = tuple[int, str, str]  # the number of a record, its text, and what is wrong with it


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of some records that come one after the other.

    `number`: of each row its record's number in the file, from 1. `text`: shows the record of a row.
    """

    rows: pa.Table
    number: Ints
    bad: Sequence[Bad]
    text: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Raw:
    """A block that is not made yet, as one that is applied already is passed over. `last`: the number of its last
    record, bad or not."""

    last: int
    make: Callable[[], Block]


def following(raw: Raw, record: int) -> Raw:
    """The records of a block after a record."""

    def make() -> Block:
        block = raw.make()
        kept = np.flatnonzero(block.number > record)
        first = len(block.number) - len(kept)
        bad = [one for one in block.bad if one[0] > record]
        return Block(block.rows.slice(first), block.number[kept], bad, lambda row: block.text(first + row))

    return Raw(raw.last, make)


def together(blocks: Sequence[Block]) -> Block:
    """Blocks that come one after the other, as one."""
    if len(blocks) == 1:
        return blocks[0]
    starts = np.cumsum([0, *(len(one.rows) for one in blocks)])

    def text(row: int) -> str:
        which = int(np.searchsorted(starts, row, "right")) - 1
        return blocks[which].text(row - int(starts[which]))

    rows = rows_together([one.rows for one in blocks])
    return Block(rows, np.concatenate([one.number for one in blocks]), [bad for one in blocks for bad in one.bad], text)


def rows_together(parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of parts as one table. In a part without `__diff` each row is a copy more; a part without `__time` gets
    NULL, as nobody gave its rows a time."""
    parts = [part for part in parts if len(part)] or parts[:1]
    if any(DIFF in part.column_names for part in parts):
        parts = [part if DIFF in part.column_names else part.append_column(DIFF, pa.array(np.ones(len(part), np.int64)))
                 for part in parts]  # fmt: skip
    return pa.concat_tables(parts, promote_options="default")
