"""Turn the forms in which users have messages into one column of JSON texts, in the order in which they happened."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.feeds.order import Places
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import InvalidRow

_VALUE, PARTITION, OFFSET = "value", "partition", "offset"  # the names in Spark's Kafka source


@dataclass(frozen=True, slots=True)
class Texts:
    """JSON texts in the order of their `places`, if these are known. `total`: whether the order of all is known."""

    json: pa.Array
    total: bool
    places: Places | None = None

    def unnumbered(self, problem: InvalidRow) -> InvalidRow:
        """The same refusal, with the message's place or its beginning instead of its number."""
        return _unnumbered(problem, self.places, self.json)


def texts(table: str, messages: Any, *, ordered: bool) -> Texts:
    """The texts in a list, an array, or a table's column. `ordered`: whether they come in the order that counts.

    Raises:
        InvalidRow: `messages` does not have a form that messages can have.
    """
    if isinstance(messages, pa.RecordBatch):
        messages = pa.Table.from_batches([messages])
    if isinstance(messages, pa.Array | pa.ChunkedArray):
        return Texts(_decoded(table, messages), ordered)
    if hasattr(messages, "__arrow_c_stream__"):
        try:
            messages = pa.table(messages)
        except pa.ArrowInvalid:  # a single column
            return Texts(_decoded(table, pa.chunked_array(messages)), ordered)
        return _of_table(table, messages, ordered)
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise InvalidRow("messages must be a list of JSON texts, bytes or dicts, or a column of texts, "
                         f"not {type(messages).__name__}", table=table)  # fmt: skip
    parts = [_text(table, number, message) for number, message in enumerate(messages)]
    return Texts(pa.array(parts, pa.string()), ordered)


def used(table: str, names: Sequence[str]) -> list[int]:
    """The numbers of the columns that the engine reads: the messages, and the columns that give their order.

    Raises:
        InvalidRow: it is not clear which column has the messages.
    """
    if _VALUE not in names and len(names) != 1:
        raise InvalidRow(f"messages must be one column, or one called {_VALUE} among others; "
                         f"the columns are {', '.join(names) or 'none'}", table=table)  # fmt: skip
    return [i for i, name in enumerate(names) if len(names) == 1 or name in (_VALUE, PARTITION, OFFSET)]


def placed(names: Sequence[str]) -> bool:
    """Whether messages in a table with these columns have places."""
    return OFFSET in names


def _of_table(table: str, messages: pa.Table, ordered: bool) -> Texts:
    messages = messages.select(used(table, messages.column_names))
    names = messages.column_names
    places, total = None, ordered
    if placed(names):
        offset = _whole(table, messages, OFFSET)
        partition = _whole(table, messages, PARTITION) if PARTITION in names else np.zeros_like(offset)
        order = np.lexsort((offset, partition))
        messages, places = messages.take(pa.array(order)), Places(partition[order], offset[order])
        total = len(np.unique(partition)) <= 1
    try:
        return Texts(_decoded(table, messages.column(_VALUE if _VALUE in names else names[0])), total, places)
    except InvalidRow as problem:
        raise problem if ordered else _unnumbered(problem, places, None) from None


def _whole(table: str, messages: pa.Table, name: str) -> Ints:
    column = messages.column(name)
    if column.null_count or not (pa.types.is_integer(column.type) or not len(column)):
        raise InvalidRow(f"the column {name} gives the order of the messages, so it must be whole numbers without "
                         f"NULL, not {column.type if not column.null_count else 'NULL'}", table=table)  # fmt: skip
    numbers: Ints = column.cast(pa.int64()).to_numpy()
    return numbers


def _unnumbered(problem: InvalidRow, places: Places | None, json: pa.Array | None) -> InvalidRow:
    if problem.row is None:
        return problem
    if places is not None:
        name = f"the message of {places.take(np.array([problem.row]))}"
    else:
        name = "a message" if json is None else f"the message {json[problem.row].as_py()[:60]!r}"
    return problem.with_(row=None, called=name)


def invalid_message(table: str, number: int, reason: str, column: str | None = None) -> InvalidRow:
    """The refusal of a message, with its number."""
    return InvalidRow(reason, table=table, column=column, row=number, called=f"message {number}")


def _decoded(table: str, column: Any) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    binary = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not (binary or text or pa.types.is_string_view(column.type) or pa.types.is_null(column.type)):
        raise InvalidRow(f"messages must be JSON texts, not {column.type}", table=table)
    if binary:
        try:
            column = column.cast(pa.string())
        except pa.ArrowInvalid:  # find the message that is not UTF-8
            return pa.array([_text(table, number, each) for number, each in enumerate(column.to_pylist())], pa.string())
    column = column.cast(pa.string())
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) and column.num_chunks else (
        pa.nulls(0, pa.string()) if isinstance(column, pa.ChunkedArray) else column
    )  # fmt: skip


def _text(table: str, number: int, message: Any) -> str | None:
    try:
        if message is None or isinstance(message, str):
            return message
        return message.decode() if isinstance(message, bytes) else json.dumps(message, allow_nan=True)
    except (UnicodeDecodeError, TypeError, ValueError) as problem:
        raise invalid_message(table, number, f"is not a JSON text: {problem}") from None
