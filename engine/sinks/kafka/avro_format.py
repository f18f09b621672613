"""Messages in Avro: each begins with its schema's number in the registry.

A written row is such a message in the envelope `upsert`; in the envelope `debezium` it is the envelope's number and the
row alone. So rows of another schema, which a topic may still show, differ from all rows of this one, and a message
that takes them back is written in their own schema.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.feeds.kafka.registry import HEADER, RegistryOptions
from halfjoin.engine.feeds.source import needed
from halfjoin.engine.sinks.kafka.avro_schemas import key_schema, registered, value_schema
from halfjoin.engine.sinks.kafka.avro_values import avro_values, longs
from halfjoin.engine.sinks.kafka.messages import Change, Shape
from halfjoin.engine.updates.updates import Updates

_JOINED = pa.scalar(b"", pa.binary())


class AvroFormat:
    """Keys and rows as Avro's records; a `Format`. It registers their schemas when it is made.

    Raises:
        Conflict, StorageError: from the constructor, as `registered` does.
    """

    def __init__(self, options: RegistryOptions, topic: str, shape: Shape) -> None:
        self.shape, self._options = shape, options
        self._key, self._value = (
            _header(registered(options, f"{topic}-{part}", schema))
            for part, schema in (("key", key_schema(topic, shape)), ("value", value_schema(topic, shape)))
        )
        self._images: dict[bytes, Any] = {}  # the schema of `before` and `after`, by a message's header

    def key(self, rows: Updates) -> pa.Array:
        """The keys of rows."""
        return self._records(self._key, rows, self.shape.key)

    def row(self, rows: Updates) -> pa.Array:
        """Rows, with all columns."""
        return self._records(self._value, rows, tuple(self.shape.columns))

    def row_as_key(self, rows: pa.Array) -> pa.Array:
        """The keys of written rows that are their own keys: the same fields in another schema."""
        return pc.binary_join_element_wise(_scalar(self._key), _parts(rows)[1], _JOINED)

    def envelope(self, some: Change, op: pa.Array, upper: int) -> pa.Array:
        """The values of messages in Debezium's envelope. A row before that has another schema is left out."""
        (before, old), (after, new) = _parts(some.before), _parts(some.after)
        header = pc.coalesce(after, before)
        old = pc.if_else(pc.fill_null(pc.equal(before, header), False), old, None)
        source = b"".join(_text(text) for text in ("halfjoin", self.shape.collection)) + _long(upper)
        return pc.binary_join_element_wise(header, _optional(old), _optional(new), _scalar(source),
                                           _scalar(_long(1)), op.cast(pa.binary()), _JOINED)  # fmt: skip

    def read(self, key: bytes, value: bytes) -> tuple[bytes, bytes | None, bytes | None]:
        """The key, the row before and the row after, in the very bytes of the message."""
        if len(key) < HEADER or len(value) < HEADER or key[0] or value[0]:
            raise ValueError("not in Avro")
        if not self.shape.debezium:
            return key, None, value
        before, place = self._image(value, HEADER)
        after, _ = self._image(value, place)
        return key, before, after

    def _records(self, header: bytes, rows: Updates, names: Sequence[str]) -> pa.Array:
        fields = [
            avro_values(rows.columns[name], self.shape.columns[name], nullable=name not in self.shape.required)
            for name in names
        ]
        return pc.binary_join_element_wise(_scalar(header), *fields, _JOINED)

    def _image(self, value: bytes, place: int) -> tuple[bytes | None, int]:
        """A row of an envelope, None for null, and the place behind it."""
        fastavro = needed("fastavro", "KAFKA", "kafka")
        header, stream = value[:HEADER], BytesIO(value)
        stream.seek(place)
        if header not in self._images:
            self._images[header] = self._schema_of_image(fastavro, header)
        found = fastavro.schemaless_reader(stream, self._images[header], None)
        return None if found is None else header + value[place + 1 : stream.tell()], stream.tell()

    def _schema_of_image(self, fastavro: Any, header: bytes) -> Any:
        schema = json.loads(self._options.registry_client().get_schema(int.from_bytes(header[1:], "big")).schema_str)
        fields = schema["fields"]
        if [field["name"] for field in fields] != ["before", "after", "source", "op"]:
            raise ValueError("not an envelope of a sink")
        return fastavro.parse_schema(fields[0]["type"])


def _optional(rows: pa.Array) -> Any:
    """Rows without their numbers, as a union of null and a row."""
    some = pc.binary_join_element_wise(_scalar(b"\2"), rows, _JOINED)
    return pc.fill_null(some, b"\0")


def _parts(rows: pa.Array) -> tuple[Any, Any]:
    """The numbers of the rows' schemas, and the rows without them."""
    filled = pa.concat_arrays([pc.fill_null(rows, bytes(HEADER))])
    offsets = np.frombuffer(filled.buffers()[1], np.int32, len(filled) + 1, 4 * filled.offset)
    data = np.frombuffer(filled.buffers()[2] or b"", np.uint8)
    places = offsets[:-1, None] + np.arange(HEADER)
    body = np.zeros(len(data), np.bool_)
    body[offsets[0] : offsets[-1]] = True
    body[places] = False
    valid = rows.is_valid()
    headers, bodies = (
        pa.Array.from_buffers(pa.binary(), len(filled), [None, pa.py_buffer(ends), pa.py_buffer(part)])
        for ends, part in ((np.arange(len(filled) + 1, dtype=np.int32) * np.int32(HEADER), data[places].tobytes()),
                           (offsets - offsets[0] - np.int32(HEADER) * np.arange(len(offsets), dtype=np.int32),
                            data[body].tobytes()))
    )  # fmt: skip
    return pc.if_else(valid, headers, None), pc.if_else(valid, bodies, None)


def _header(number: int) -> bytes:
    return b"\0" + number.to_bytes(HEADER - 1, "big")


def _text(text: str) -> bytes:
    return _long(len(text.encode())) + text.encode()


def _long(number: int) -> bytes:
    return bytes(longs(np.array([number], np.int64))[0].as_py())


def _scalar(blob: bytes) -> Any:
    return pa.scalar(blob, pa.binary())
