"""Read Debezium's messages from a DataFrame: tasks read them, and other tasks keep the last message of each key.

The task that reads a message does not know when it was sent. So in a table with a key, rows travel with the places of
their messages, and Spark brings all rows of a key's code to one task, sorted by code. That task holds at most one lot,
however many messages are about one key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.debezium import Messages
from halfjoin.engine.feeds.messages import OFFSET, PARTITION, placed, used
from halfjoin.engine.feeds.order import Places, last_of_keys, unplaced
from halfjoin.engine.intake.rows import Submitted
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.spark.intake import Intake
from halfjoin.engine.spark.layout import Frame, Layout
from halfjoin.engine.spark.session import quiet, translated
from halfjoin.engine.spark.task_errors import call
from halfjoin.engine.spark.tasks import Batches, array_of, gathered, outgoing, updates_of
from halfjoin.engine.spark.writing import WRITTEN_ROWS, note
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.updates import Updates, constant

TRUNCATED = "truncated"  # in notes: the offset of a message that truncates the table, if it has one
_CODE, _PARTITION, _OFFSET = "k0", "k1", "k2"  # the code of a row's key (NULL for a truncation), its message's place


def in_order(
    frame: Frame, names: tuple[str, ...], meant: Messages, intake: Intake, *, whole: bool
) -> tuple[Frame, Callable[[Batches], Batches]]:
    """A frame of the messages' rows, and the task that keeps the last row of each key and writes it."""
    table = intake.table
    schema = tuple((column.name, arrow_type(column.type)) for column in table.columns)
    layout = Layout(schema, (pa.int64(), pa.int64(), pa.int64()))
    needed = used(table.name, names)
    read = _Read(table, tuple(names[i] for i in needed), meant, intake.time, layout)
    with quiet():
        frame = frame.select(*(f"c{i}" for i in needed)).mapInArrow(partial(call, read), layout.struct)
    if table.primary_key:
        frame = frame.repartition(_CODE).sortWithinPartitions(_CODE)
    return frame, _Settle(layout, intake, placed(names), whole)


def after_truncation(table: Table, frame: Frame, truncations: Sequence[int | None]) -> Frame:
    """The messages after the last one that truncates the table.

    Raises:
        InvalidRow: it is not known which messages come after it.
    """
    names = list(frame.columns)
    plain = frame.toDF(*(f"c{i}" for i in range(len(names))))
    offset = f"c{names.index(OFFSET)}" if placed(names) else None
    parts = F.count_distinct(f"c{names.index(PARTITION)}") if PARTITION in names else F.lit(1)
    with translated(plain.sparkSession):
        found = plain.agg(F.count(F.lit(1)).alias("messages"), parts.alias("partitions")).first()
    if found.messages > 1 and (offset is None or found.partitions > 1):
        raise unplaced(table.name)
    last = max((one for one in truncations if one is not None), default=None)
    return plain.where(F.lit(False) if offset is None else F.col(offset) > F.lit(last)).toDF(*names)


@dataclass(frozen=True, slots=True)
class _Read:
    """The task that reads messages. It passes on only the last row of each key in a lot."""

    table: Table
    names: tuple[str, ...]
    meant: Messages
    time: int
    layout: Layout

    def __call__(self, batches: Batches) -> Batches:
        for lot in gathered(batches):
            given = lot.rename_columns(list(self.names))
            read = replace(self.meant, data=given, ordered=False).read(self.table)
            if read.truncated is not None:
                offset = None if read.texts.places is None else int(read.texts.places.offset[read.truncated])
                place = [pa.array([value], pa.int64()) for value in (None, None, offset)]
                yield from outgoing(self._truncation(), place, self.layout)
            if self.table.primary_key:
                read = read.last(self.table)
            rows, places = read.rows, read.places
            key = [rows.columns[name] for name in self.table.primary_key]
            at = [pa.nulls(rows.length, pa.int64())] * 2 if places is None else map(pa.array, (
                places.partition, places.offset))  # fmt: skip
            updates = Updates(rows.columns, constant(self.time, rows.length), read.diff)
            yield from outgoing(updates, [pa.array(codes(key, rows.length)), *at], self.layout)

    def _truncation(self) -> Updates:
        columns = {name: pa.nulls(1, kind) for name, kind in self.layout.columns}
        return Updates(columns, constant(self.time, 1), constant(0, 1))


@dataclass(frozen=True, slots=True)
class _Settle:
    """The task that gets all rows of some keys, sorted by their codes (in a table without a key: any rows).

    `placed`: whether the messages have places. `whole`: whether they come after a truncation.
    """

    layout: Layout
    intake: Intake
    placed: bool
    whole: bool

    def __call__(self, batches: Batches) -> Batches:
        keyed, waiting = bool(self.intake.table.primary_key), None
        for lot in gathered(batches, WRITTEN_ROWS):
            if lot.column(_CODE).null_count:  # then the other messages will be read again
                truncations = lot.filter(lot.column(_CODE).is_null()).column(_OFFSET)
                yield note(json.dumps({TRUNCATED: pc.max(truncations).as_py()}))
                continue
            if keyed:
                lot = self._last(lot if waiting is None else pa.concat_tables([waiting, lot]))
                code = array_of(lot, _CODE).to_numpy()
                more = int(np.searchsorted(code, code[-1]))  # further rows of the last code may follow
                lot, waiting = lot.slice(0, more), lot.slice(more)
            yield from self._written(lot)
        if waiting is not None:
            yield from self._written(waiting)

    def _last(self, lot: pa.Table) -> pa.Table:
        updates, places = updates_of(lot, self.layout), None
        if self.placed:
            places = Places(*(array_of(lot, name).to_numpy() for name in (_PARTITION, _OFFSET)))
        return lot.take(pa.array(last_of_keys(self.intake.table, updates.columns, updates.diff, places)))

    def _written(self, lot: pa.Table) -> Batches:
        found = updates_of(lot, self.layout)
        keyed = bool(self.intake.table.primary_key)
        rows = Submitted(found.columns, len(found), None, found.diff, keyed, self.whole, numbered=False)
        yield from self.intake.written(rows)
