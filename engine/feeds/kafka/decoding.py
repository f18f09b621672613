"""Messages as typed rows of the table, and the messages that cannot be: one bad message does not spoil the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.debezium import Messages, Read
from halfjoin.engine.feeds.encodings import Encoding
from halfjoin.engine.feeds.kafka.avro import Schemas
from halfjoin.engine.feeds.kafka.envelopes import Envelopes, envelopes
from halfjoin.engine.feeds.kafka.options import KafkaOptions
from halfjoin.engine.feeds.kafka.records import Records
from halfjoin.engine.updates.updates import DIFF, Ints
from halfjoin.errors import InvalidRow

MOST_BAD = 1000  # messages of one batch, about. The messages from the next bad one on wait for the next poll


@dataclass(frozen=True, slots=True)
class Rows:
    """What messages say.

    `table` has the columns and `__diff`. `message` is the number of the message that a row comes from. `bad` has the
    reasons against messages. Messages from number `end` on are not in it. `truncated`: one of Debezium's messages
    empties the table, and then `table` is not what the messages say.
    """

    table: pa.Table
    message: Ints
    bad: Mapping[int, str]
    end: int
    truncated: bool

    def without(self, messages: Ints, why: str) -> Rows:
        """The rows without those of some messages, which are bad."""
        good = ~np.isin(self.message, messages)
        bad = {**self.bad, **dict.fromkeys(messages.tolist(), why)}
        return Rows(self.table.filter(pa.array(good)), self.message[good], bad, self.end, self.truncated)


@dataclass(slots=True)
class _Sieve:
    """Reads messages, and finds the bad ones by halving."""

    table: Table
    columns: list[str]
    found: Envelopes
    bad: dict[int, str]
    end: int
    parts: list[tuple[Ints, Read]] = field(default_factory=list)
    left: int = 0  # how many more may be bad

    def pour(self, numbers: Ints, encodings: Mapping[str, str | Encoding]) -> None:
        """Read the messages of some numbers, in ascending order."""
        numbers = numbers[numbers < self.end]
        if not len(numbers):
            return
        try:
            messages = Messages(self.found.json.take(pa.array(numbers)), "messages", encodings=encodings,
                                columns=self.columns)  # fmt: skip
            self.parts.append((numbers, messages.read(self.table)))
        except InvalidRow as problem:
            if len(numbers) > 1:
                middle = len(numbers) // 2
                self.pour(numbers[:middle], encodings)
                self.pour(numbers[middle:], encodings)
            elif self.left:
                self.left -= 1
                self.bad[int(numbers[0])] = str(problem.with_(table=None, row=None, called=None))
            else:
                self.end = int(numbers[0])


def rows(records: Records, options: KafkaOptions, table: Table, schemas: Schemas | None) -> Rows:
    """The rows of messages, in the order of the messages.

    In a table with a PRIMARY KEY they are upserts, and `__diff` 0 deletes the row of a key. Otherwise they are rows
    that come and go. Fields that the table does not have are left out; columns that a message does not have are NULL.
    """
    columns = [column.name for column in table.columns if column.generated is None]
    found = envelopes(records, options, table, schemas)
    told = options.encoded(table)
    end = len(records) if len(found.bad) <= MOST_BAD else sorted(found.bad)[MOST_BAD]
    sieve = _Sieve(table, columns, found, dict(found.bad), end)
    good = found.json.is_valid().to_numpy(zero_copy_only=False)
    for number, encodings in enumerate(found.encodings):
        known = {name: one for name, one in encodings.items() if name in columns}
        sieve.left = MOST_BAD
        sieve.pour(np.flatnonzero(good & (found.group == number)), {**known, **told})
    return _joined(sieve, columns)


def _joined(sieve: _Sieve, columns: list[str]) -> Rows:
    pieces, numbers, truncated = [], [np.zeros(0, np.int64)], False
    for given, read in sieve.parts:
        truncated |= read.rows.whole
        pieces.append(pa.table({name: read.rows.columns[name] for name in columns} | {DIFF: read.diff}))
        numbers.append(given[read.message])
    message = np.concatenate(numbers)
    bad = {row: why for row, why in sieve.bad.items() if row < sieve.end}
    if not pieces:
        return Rows(pa.table({}), message, bad, sieve.end, False)
    order = np.argsort(message, kind="stable")
    order = order[message[order] < sieve.end]
    table = pa.concat_tables(pieces).take(pa.array(order)).combine_chunks()
    return Rows(table, message[order], bad, sieve.end, truncated)
