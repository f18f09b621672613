"""Messages as users have them, to one column of JSON texts in the order in which they happened."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.sql.errors import InvalidRow

_VALUE, _PARTITION, _OFFSET = "value", "partition", "offset"  # as Kafka's source in Spark calls them


@dataclass(frozen=True, slots=True)
class Texts:
    """JSON texts; `by_key`: whether the order is known for each key, `total`: for all of them."""

    json: pa.Array
    by_key: bool
    total: bool


def texts(table: str, messages: Any, *, ordered: bool) -> Texts:
    """The texts in a list, an array, or a table's column; `ordered`: whether they stand in the order that counts.

    Raises:
        InvalidRow: they are not of a form that messages have.
    """
    if isinstance(messages, pa.RecordBatch):
        messages = pa.Table.from_batches([messages])
    if isinstance(messages, pa.Array | pa.ChunkedArray):
        return Texts(_decoded(table, messages), ordered, ordered)
    if hasattr(messages, "__arrow_c_stream__"):
        try:
            messages = pa.table(messages)
        except pa.ArrowInvalid:  # one column by itself
            return Texts(_decoded(table, pa.chunked_array(messages)), ordered, ordered)
        return _of_table(table, messages, ordered)
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise InvalidRow(f"{table}: messages must be a list of JSON texts, bytes or dicts, or a column of texts, "
                         f"not {type(messages).__name__}")  # fmt: skip
    parts = [_text(table, number, message) for number, message in enumerate(messages)]
    return Texts(pa.array(parts, pa.string()), ordered, ordered)


def _of_table(table: str, messages: pa.Table, ordered: bool) -> Texts:
    names = messages.column_names
    if _VALUE not in names and len(names) != 1:
        raise InvalidRow(f"{table}: messages must be one column, or one called {_VALUE} among others; "
                         f"there are {', '.join(names) or 'none'}")  # fmt: skip
    total = ordered
    if _OFFSET in names:
        keys = [name for name in (_PARTITION, _OFFSET) if name in names]
        messages = messages.sort_by([(name, "ascending") for name in keys])
        ordered = True
        total = _PARTITION not in keys or pc.count_distinct(messages.column(_PARTITION)).as_py() <= 1
    return Texts(_decoded(table, messages.column(_VALUE if _VALUE in names else names[0])), ordered, total)


def _decoded(table: str, column: Any) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    binary = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not (binary or text or pa.types.is_string_view(column.type) or pa.types.is_null(column.type)):
        raise InvalidRow(f"{table}: messages must be JSON texts, not {column.type}")
    if binary:
        try:
            column = column.cast(pa.string())
        except pa.ArrowInvalid:  # say which
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
        raise InvalidRow(f"{table}: message {number}: is no JSON text: {problem}") from None
