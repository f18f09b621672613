"""Turn Debezium's change events into rows of a batch: upserts and deletions by key, or rows to add and to remove.

Debezium sends each message at least once, and the messages of a key in order. In a table with a PRIMARY KEY an event
states what the row of its key is from now on, so a repeated event changes nothing. Without a key an event removes its
image before the change and adds its image after the change. Then only the batch's id keeps a message from counting
twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import ColumnModel, Table
from halfjoin.engine.feeds.decode import Undecodable, Values, decoded, fields
from halfjoin.engine.feeds.encodings import Encoding, from_schema, from_user
from halfjoin.engine.feeds.envelopes import Images, images
from halfjoin.engine.feeds.messages import Texts, invalid_message, texts
from halfjoin.engine.feeds.order import Places, last_of_keys, unplaced
from halfjoin.engine.intake.given import given_names
from halfjoin.engine.intake.rows import GivenRows, Submitted
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.columns import convert
from halfjoin.engine.scalar.duck import rows_of
from halfjoin.engine.updates.consolidate import groups
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import HalfjoinError, InvalidRow, UnknownName
from halfjoin.sql.functions.json_text import JsonError
from halfjoin.sql.types import Kind


@dataclass(frozen=True, slots=True)
class Messages(GivenRows):
    """Debezium's messages as rows of a batch. `debezium` makes them."""

    encodings: Mapping[str, str | Encoding] = field(default_factory=dict)
    columns: Sequence[str] | None = None

    def checked(self, table: Table) -> Submitted:
        """The rows that the messages make, with only the last message about each key where a DataFrame has no order.

        Raises:
            InvalidRow: with the number of a message that is not an envelope, or whose values the table cannot take.
            UnknownName: the table does not have a field or a column.
        """
        read = self.read(table)
        if read.rows.whole and not read.texts.total and len(read.texts.json) > 1:
            raise unplaced(table.name)
        return read.rows if self.ordered or not table.primary_key else read.last(table).rows

    def read(self, table: Table) -> Read:
        """What the messages say, one by one. Raises the same errors as `checked`."""
        wanted = [column.name for column in table.columns]
        for name in (*(self.columns or ()), *self.encodings):
            if name not in wanted:
                raise UnknownName(f"column of {table.name}", name, wanted)
        given = texts(table.name, self.data, ordered=self.ordered)
        try:
            return self._read(table, given)
        except InvalidRow as problem:
            raise problem if self.ordered else given.unnumbered(problem) from None

    def _read(self, table: Table, given: Texts) -> Read:
        found = images(table.name, given.json, keyed=bool(table.primary_key))
        if self.columns is None:
            _check_fields(table, found)
        wanted = [column.name for column in table.columns] if self.columns is None else self.columns
        values = fields(found.json, wanted)
        columns = {
            column.name: _Column(table, column, found, self.encodings.get(column.name)).array(values.get(column.name))
            for column in table.columns
        }
        weight, keyed = found.after.astype(np.int64), bool(table.primary_key)
        rows = Submitted(columns, len(weight), None, weight if keyed else 2 * weight - 1, keyed,
                         found.truncated is not None, numbered=self.ordered)  # fmt: skip
        return Read(rows, found.message, given, found.truncated)


@dataclass(frozen=True, slots=True)
class Read:
    """Rows, the number of the message that each row comes from, the messages, and the last number that truncates."""

    rows: Submitted
    message: Ints
    texts: Texts
    truncated: int | None

    def last(self, table: Table) -> Read:
        """Keep only the last message about each key of a table with a key.

        Raises:
            InvalidRow: several messages are about one key, and their order is not known.
        """
        one = self._said_once(table)
        return one._taken(last_of_keys(table, one.rows.columns, one.diff, one.places))

    @property
    def places(self) -> Places | None:
        """The places of the rows' messages; None if they are not known."""
        return None if self.texts.places is None else self.texts.places.take(self.message)

    @property
    def diff(self) -> Ints:
        """The diffs of the rows."""
        assert self.rows.diff is not None
        return self.rows.diff

    def _said_once(self, table: Table) -> Read:
        """Drop a message's row before the change if its row after the change has the same key."""
        keys = groups([self.rows.columns[name] for name in table.primary_key], self.rows.length)
        again = (self.message[1:] == self.message[:-1]) & (keys[1:] == keys[:-1])
        return self._taken(np.flatnonzero(np.append(~again, True)[: self.rows.length]))

    def _taken(self, positions: Ints) -> Read:
        columns = {name: column.take(pa.array(positions)) for name, column in self.rows.columns.items()}
        rows = replace(self.rows, columns=columns, length=len(positions), diff=self.diff[positions])
        return replace(self, rows=rows, message=self.message[positions])


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of the images. `encoding` is the encoding that the user named, if any."""

    table: Table
    column: ColumnModel
    images: Images
    encoding: str | Encoding | None

    def array(self, values: Values | None) -> pa.Array:
        """The column in the table's type. `values` is None if no image has the column."""
        length, name = len(self.images.message), self.column.name
        array = pa.nulls(length, arrow_type(self.column.type)) if values is None else self._converted(values)
        key = name in self.table.primary_key
        told = self.images.after if self.table.primary_key and not key else np.ones(length, np.bool_)
        if self.column.not_null and array.null_count:
            bad = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False) & told)
            if len(bad):
                number = int(self.images.message[bad[0]])
                raise invalid_message(self.table.name, number, "is NULL, and the column is NOT NULL", name)
        return array

    def _converted(self, values: Values) -> pa.Array:
        """Decode the values of each schema; nearly always there is only one."""
        if self.table.primary_key and self.column.name not in self.table.primary_key:
            values = values.where(self.images.after)  # a deletion needs only its key
        schemas = self.images.schema.dictionary_encode()
        which = schemas.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        parts, places = [pa.nulls(0, arrow_type(self.column.type))], []
        for number in np.unique(which):
            places.append(np.flatnonzero(which == number))
            schema = None if number < 0 else schemas.dictionary[int(number)].as_py()
            encoding = self._encoding(schema, int(places[-1][0]))
            parts.append(self._part(values.take(places[-1]), places[-1], encoding))
        if len(places) < 2:
            return parts[-1]
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(places))))

    def _encoding(self, schema: str | None, row: int) -> Encoding | None:
        """The column's encoding, which an image has that comes with a schema."""
        if self.encoding is None:
            try:
                return from_schema(schema).get(self.column.name)
            except ValueError as problem:
                raise invalid_message(self.table.name, int(self.images.message[row]), str(problem)) from None
        return self.encoding if isinstance(self.encoding, Encoding) else from_user(self.column.name, self.encoding)

    def _part(self, values: Values, rows: Ints, encoding: Encoding | None) -> pa.Array:
        def exactly(some: Ints) -> list[str]:
            if self.column.type.kind is Kind.ARRAY:
                return [self._written(row) for row in rows[some]]
            return [self.images.number(row, self.column.name) for row in rows[some]]

        if self.column.type.kind in (Kind.JSON, Kind.JSONB):
            values = values.as_json(lambda some: [self._written(row) for row in rows[some]])
        try:
            array = decoded(values, self.column.type, encoding, exactly)
            return convert(self.table.name, self.column.name, self.column.type, array)
        except Undecodable as problem:
            number = int(self.images.message[rows[problem.row]])
            raise invalid_message(self.table.name, number, problem.why, self.column.name) from None
        except InvalidRow as problem:  # its row number counts within the converted rows
            number = int(self.images.message[rows[problem.row or 0]])
            nanos = encoding is not None and encoding.name.startswith("Nano") and problem.remedy is not None
            remedy = "declare the column bigint, and compute what it says in a view" if nanos else problem.remedy
            raise problem.with_(row=number, called=f"message {number}", remedy=remedy) from None

    def _written(self, row: int) -> str:
        try:
            return self.images.written(row, self.column.name)
        except JsonError as problem:
            number = int(self.images.message[row])
            raise invalid_message(self.table.name, number, problem.reason, self.column.name) from None


def _check_fields(table: Table, found: Images) -> None:
    """Refuse fields that are not columns of the table."""
    wanted = [column.name for column in table.columns]
    keys = rows_of("SELECT DISTINCT unnest(json_keys(v)) AS k FROM arguments", pa.table({"v": found.json}))
    for name in sorted(keys.column("k").to_pylist()):
        if name not in wanted:
            raise UnknownName(f"column of {table.name}", name, wanted)


def debezium(
    messages: Any, *, encodings: Mapping[str, str] | None = None, columns: Sequence[str] | None = None
) -> Messages:
    """Change events in Debezium's JSON envelopes, with or without their schema, in the order of their topic.

    In a table with a PRIMARY KEY, `c`, `r` and `u` replace the row of their key and `d` deletes it. There a repeated
    message does no harm. Without a key an event removes the row before the change and adds the row after it, so its
    message must have both. `t` deletes all rows. NULL (a tombstone) changes nothing. An image is a whole row: a column
    that it does not have is NULL.

    The rows of a Spark DataFrame have no order. Without offsets no two of its messages may be about one key. A `t`
    needs offsets in one partition, unless it is the only message. Spark's tasks read the messages (twice if there is a
    `t`), and this process reads none.

    Args:
        messages: JSON texts, bytes or dicts, or a column of texts: an Arrow array, or a table or DataFrame with one
            column or with a column `value`. If there is a column `offset`, `partition` and `offset` give the order of
            the rows, and two rows with the same place are one message.
        encodings: for each column how its values are written, if messages come without a schema: `Date`, `Time`,
            `MicroTime`, `NanoTime`, `Timestamp`, `MicroTimestamp`, `NanoTimestamp`, `Decimal(scale)`,
            `VariableScaleDecimal`, `string` (of a number), `base64`, `hex`.
        columns: the columns of the table to take, if the messages have more.
    """
    if encodings is not None and not isinstance(encodings, Mapping):
        raise HalfjoinError(f"{encodings!r} is not a dict of encodings", remedy="encodings={'at': 'MicroTimestamp'}")
    wanted = None if columns is None else given_names(columns, "a column")
    return Messages(messages, "messages", encodings=dict(encodings or {}), columns=wanted)
