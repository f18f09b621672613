"""Find the last of several messages about one key, by their places in the topic, when rows have no order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.scalar.cells import cell
from halfjoin.engine.updates.consolidate import groups
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import InvalidRow, key_text

_UNORDERED = "and the rows of a Spark DataFrame have no order"
_REMEDY = "keep the columns partition and offset beside value, or give the messages as a list in their order"


@dataclass(frozen=True, slots=True)
class Places:
    """The places of messages in their topic: partitions, and offsets within them. The partition is 0 if not given."""

    partition: Ints
    offset: Ints

    def take(self, positions: Ints) -> Places:
        """The places at some positions."""
        return Places(self.partition[positions], self.offset[positions])

    def __str__(self) -> str:
        """The first place, in words."""
        return f"partition {int(self.partition[0])}, offset {int(self.offset[0])}"


def last_of_keys(table: Table, columns: Mapping[str, pa.Array], diff: Ints, places: Places | None) -> Ints:
    """Positions of the last row of each key, in ascending order. Two equal rows with the same place are one message.

    Raises:
        InvalidRow: a key comes twice without places, or two different rows of a key have its last place.
    """
    if not len(diff):
        return np.zeros(0, np.int64)
    keys = groups([columns[name] for name in table.primary_key], len(diff))
    order = np.argsort(keys, kind="stable") if places is None else np.lexsort((places.offset, places.partition, keys))
    same = keys[order][1:] == keys[order][:-1]
    if places is None:
        if same.any():
            key = _key(table, columns, int(order[1:][same][0]))
            raise InvalidRow(f"several messages are about one key, {key_text(key)}, {_UNORDERED}", remedy=_REMEDY,
                             table=table.name, key=key, called="")  # fmt: skip
        return np.arange(len(diff))
    last: Ints = order[np.append(~same, True)]
    final = last[np.cumsum(np.append(False, ~same))]  # for each position in `order`: the last of its key
    again = (order != final) & (places.partition[order] == places.partition[final])
    again &= places.offset[order] == places.offset[final]
    if again.any():
        rows = groups([*columns.values(), pa.array(diff)], len(diff))
        other = again & (rows[order] != rows[final])
        if other.any():
            row = int(order[other][0])
            key = _key(table, columns, row)
            raise InvalidRow(
                f"two messages about one key, {key_text(key)}, have the same place, {places.take(np.array([row]))}, so "
                "the engine cannot tell which is the last",
                remedy="add a column partition with the number of the topic's partition",
                table=table.name, key=key, called="",
            )  # fmt: skip
    return np.sort(last)


def unplaced(table: str) -> InvalidRow:
    """The refusal of a message that truncates a table, when other messages may come before or after it."""
    return InvalidRow(f"a message truncates the table before some messages and after others, {_UNORDERED}",
                      remedy=_REMEDY, table=table)  # fmt: skip


def _key(table: Table, columns: Mapping[str, pa.Array], row: int) -> dict[str, Any]:
    return {name: cell(columns[name], row) for name in table.primary_key}
