"""The reader of a Kafka topic: from a position to the rows of the next batch and the position behind them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.feeds.debezium import Messages
from halfjoin.engine.feeds.kafka.avro import Schemas
from halfjoin.engine.feeds.kafka.decoding import Rows, rows
from halfjoin.engine.feeds.kafka.options import RECORD, KafkaOptions, check
from halfjoin.engine.feeds.kafka.records import Position, Records
from halfjoin.engine.feeds.source import BadRecord, Kind, Lag, Mode, Opening, Polled, needed
from halfjoin.engine.updates.updates import DIFF, MINIMUM, TIME, Ints, Mask
from halfjoin.errors import HalfjoinError


class KafkaReader:
    """Reads one topic into one table."""

    def __init__(self, opening: Opening) -> None:
        needed("confluent_kafka", "KAFKA", "kafka")
        from halfjoin.engine.feeds.kafka.consuming import TopicConsumer

        self._options: KafkaOptions = opening.options
        self._table = opening.tables[0]
        self._schemas = Schemas(self._options) if self._options.registry is not None else None
        self._consumer: TopicConsumer | None = TopicConsumer(self._options, f"halfjoin-{opening.id}")
        self._at: tuple[str | None] | None = None  # the position that the consumer is at, once it is at one
        self._idle = False

    def poll(self, position: str | None, seconds: float) -> Polled | None:
        """The messages after a position, as `Reader.poll` says."""
        consumer = self._consumer
        if consumer is None:
            raise HalfjoinError("the reader is closed")
        before = None if position is None else Position.read(position)
        skipped = False
        if self._at != (position,):
            consumer.go(before)
            skipped = before is None and bool(consumer.offsets)  # a new source that begins at the end says so at once
        elif self._idle:
            consumer.grown()
        self._at = None  # until the position behind these messages is asked for, the consumer is ahead
        messages = consumer.take(seconds)
        self._idle = not messages
        if not messages and not skipped:
            self._at = (position,)
            return None
        return self._polled(Records.of(self._options.topic, messages), before)

    def acknowledge(self, position: str) -> None:
        """Show the position as the group's offsets."""
        if self._consumer is not None:
            self._consumer.show(Position.read(position))

    def lag(self) -> Lag:
        """How many messages are left, as far as the brokers have said."""
        return Lag(None if self._consumer is None else self._consumer.lag(), "messages")

    def close(self) -> None:
        """Leave the brokers."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _polled(self, records: Records, before: Position | None) -> Polled:
        assert self._consumer is not None
        found = rows(records, self._options, self._table, self._schemas)
        offsets = self._consumer.offsets
        if found.end < len(records):
            offsets = _until(records, found.end, offsets)
        found, time = self._timed(records, found, before)
        position = Position(self._consumer.topic_id, offsets, time).text()
        if found.end == len(records):
            self._at = (position,)
        bad = [BadRecord(records.place(row), records.text(row), why) for row, why in sorted(found.bad.items())]
        given: Any = self._truncated(records, found) if found.truncated else found.table
        mode: Mode = "upserts" if self._table.primary_key else "rows"

        def origin(_: str, row: int) -> tuple[str, str]:
            number = int(found.message[row])
            return records.place(number), records.text(number)

        batches = {self._table.name: given} if found.truncated or len(found.table) else {}
        return Polled(batches, mode, position, bad, origin=None if found.truncated else origin)

    def _truncated(self, records: Records, found: Rows) -> Messages:
        """All messages as they are, when one of them empties the table."""
        if found.bad or len(np.unique(records.partition)) > 1 or self._options.format != "debezium":
            raise HalfjoinError(
                "one of Debezium's messages truncates the table, which the engine can follow only in JSON, in a "
                "topic with one partition, and beside no bad messages",
                remedy="let the connector delete the rows instead, and leave truncations out "
                "(skipped.operations=t, which is its default)",
            )
        columns = [column.name for column in self._table.columns if column.generated is None]
        encodings = self._options.encoded(self._table)
        return Messages(list(records.value), "messages", encodings=encodings, columns=columns)

    def _timed(self, records: Records, found: Rows, before: Position | None) -> tuple[Rows, int | None]:
        """The rows with their times, if the source has such, and the greatest time so far.

        A message that comes late, with a time that an earlier batch has closed, counts from the first open time on. A
        deletion, which has no columns but its key, has the greatest time before it.
        """
        given, latest = self._options.time, None if before is None else before.time
        if given is None or found.truncated or not len(found.table):
            return found, latest
        least = MINIMUM if latest is None else latest + 1
        if given == RECORD:
            times = records.timestamp[found.message]
        else:
            times, known = _milliseconds(found.table[given])
            deletions = bool(self._table.primary_key) & (found.table[DIFF].to_numpy() == 0)
            before_it = np.maximum.accumulate(np.append(least, times))[1:]
            times = np.where(deletions & ~known, before_it, times)
            none = ~known & (~deletions | (times == MINIMUM))
            if none.any():
                left = found.without(np.unique(found.message[none]), f"{given}: is NULL, and gives the row its time")
                return self._timed(records, left, before)
        times = np.maximum(times, least)
        if not len(times):
            return found, latest
        return replace(found, table=found.table.append_column(TIME, pa.array(times))), int(times.max())


def _until(records: Records, end: int, offsets: dict[int, int]) -> dict[int, int]:
    """The next offsets when the messages from number `end` on wait for the next poll."""
    left = {int(partition): int(offset) for partition, offset in
            zip(records.partition[end:][::-1], records.offset[end:][::-1], strict=True)}  # fmt: skip
    return {**offsets, **left}


def _milliseconds(column: pa.ChunkedArray) -> tuple[Ints, Mask]:
    """The times that a column has, the least where it is NULL; and where it is not NULL."""
    known: Mask = column.is_valid().to_numpy()
    if pa.types.is_temporal(column.type):
        micros = column.cast(pa.timestamp("us", getattr(column.type, "tz", None))).cast(pa.int64())
        numbers = pc.fill_null(micros, 0).to_numpy() // 1000
    else:
        numbers = pc.fill_null(pc.cast(column, pa.int64()), 0).to_numpy()
    return np.where(known, numbers, MINIMUM), known


KAFKA = Kind("KAFKA", KafkaOptions, KafkaReader, check, times="give the source the option time (record or a column)")

