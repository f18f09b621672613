"""Messages in Avro as JSON texts: by the writer's schema, whose number in the registry each message begins with.

fastavro reads one record at a time, so a source in Avro is slower than one in JSON. Values keep their plain types:
bytes become base64, and a logical type becomes an encoding of the column, as in Debezium's JSON.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from halfjoin.engine.feeds.encodings import Encoding, encoding_of
from halfjoin.engine.feeds.kafka.registry import HEADER, RegistryOptions
from halfjoin.engine.feeds.source import needed
from halfjoin.errors import StorageError

_DEPTH = 8  # levels of types that are described; a type may contain itself
_LOGICAL = {
    "date": "Date", "time-millis": "Time", "time-micros": "MicroTime", "timestamp-millis": "Timestamp",
    "timestamp-micros": "MicroTimestamp", "timestamp-nanos": "NanoTimestamp", "local-timestamp-millis": "Timestamp",
    "local-timestamp-micros": "MicroTimestamp", "local-timestamp-nanos": "NanoTimestamp", "decimal": "Decimal",
}  # fmt: skip


class Unreadable(Exception):
    """A message that cannot be read; its text is the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Writer:
    """A schema that messages were written with: what fastavro reads them by, and Kafka Connect's words for its fields.
    """

    parsed: Any
    fields: tuple[dict[str, Any], ...]

    def encodings(self, *, envelope: bool) -> Mapping[str, Encoding]:
        """How the columns are written. The columns of an envelope are those of its images."""
        fields = self.fields
        if envelope:
            fields = tuple(part for one in fields if one["field"] in ("before", "after")
                           for part in one.get("fields", ()))  # fmt: skip
        return {field["field"]: encoding_of(field) for field in fields}


class Schemas:
    """The schemas of a registry, each asked for once."""

    def __init__(self, options: RegistryOptions) -> None:
        self._registry = needed("confluent_kafka.schema_registry", "KAFKA", "kafka")
        self._fastavro = needed("fastavro", "KAFKA", "kafka")
        self._client = options.registry_client()
        self._known: dict[int, Writer | Unreadable] = {}

    def read(self, message: bytes) -> tuple[Writer, str]:
        """A message's schema, and the message as JSON.

        Raises:
            Unreadable: it is not such a message.
            StorageError: the registry cannot be reached.
        """
        if len(message) < HEADER or message[0] != 0:
            raise Unreadable("does not begin with the number of a schema, as messages in Avro do")
        writer = self._writer(int.from_bytes(message[1:HEADER], "big"))
        stream = BytesIO(message)
        stream.seek(HEADER)
        try:
            value = self._fastavro.schemaless_reader(stream, writer.parsed, None)
        except MemoryError:
            raise
        except Exception as problem:  # fastavro lets through whatever its parts raise
            raise Unreadable(f"is not a record of its schema: {problem!r}") from None
        if stream.tell() != len(message):
            raise Unreadable("has bytes behind the record of its schema")
        return writer, _json(value)

    def _writer(self, number: int) -> Writer:
        found = self._known.get(number)
        if found is None:
            try:
                found = self._asked(number)
            except Unreadable as problem:
                found = problem
            self._known[number] = found
        if isinstance(found, Unreadable):
            raise Unreadable(*found.args)
        return found

    def _asked(self, number: int) -> Writer:
        try:
            schema = self._client.get_schema(number)
            if (schema.schema_type or "AVRO") != "AVRO":
                raise Unreadable(f"is in {schema.schema_type}, by the schema {number}, and not in Avro")
            named: dict[str, Any] = {}
            bare: dict[str, Any] = {}
            for text in self._referred(schema):
                self._parsed(text, named, bare)
            return self._parsed(schema.schema_str, named, bare)
        except self._registry.SchemaRegistryError as problem:
            if problem.http_status_code == 404:
                raise Unreadable(f"has the schema {number}, which the registry does not have") from None
            raise StorageError(f"the schema registry cannot be asked: {problem}") from problem
        except OSError as problem:
            raise StorageError(f"the schema registry cannot be reached: {problem}") from problem

    def _referred(self, schema: Any) -> list[str]:
        """The texts of the schemas that a schema refers to, each behind those that it refers to itself."""
        found: list[str] = []
        for one in schema.references or ():
            other = self._client.get_version(one.subject, one.version).schema
            found += [*self._referred(other), other.schema_str]
        return found

    def _parsed(self, text: str, named: dict[str, Any], bare: dict[str, Any]) -> Writer:
        try:
            whole = self._fastavro.parse_schema(json.loads(text), named_schemas=named)
            parsed = self._fastavro.parse_schema(_bare(json.loads(text)), named_schemas=bare)
        except (ValueError, TypeError, KeyError, self._fastavro.schema.SchemaParseException) as problem:
            raise Unreadable(f"has a schema that cannot be read: {problem!r}") from None
        return Writer(parsed, tuple(_field("", whole, named, _DEPTH).get("fields", ())))


def _bare(schema: Any) -> Any:
    """The schema without logical types, so that values are read as they are written."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: value if name in ("symbols", "default", "doc") else _bare(value)
            for name, value in schema.items() if name != "logicalType"}  # fmt: skip


def _field(name: str, schema: Any, named: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """A field in the words of Kafka Connect's schemas, which `encoding_of` reads."""
    if isinstance(schema, list):
        some = [one for one in schema if one != "null"]
        return _field(name, some[0], named, depth) if len(some) == 1 else {"field": name, "type": "union"}
    if isinstance(schema, str):
        schema = named.get(schema, {"type": schema})
    kind = schema["type"]
    if isinstance(kind, dict | list) or (isinstance(kind, str) and kind in named and depth):
        return _field(name, kind, named, depth)
    found: dict[str, Any] = {"field": name, "type": kind}
    meant = schema.get("connect.name") or _LOGICAL.get(schema.get("logicalType", ""))
    if meant:
        found["name"] = meant
    scale = schema.get("scale", (schema.get("connect.parameters") or {}).get("scale"))
    if scale is not None:
        found["parameters"] = {"scale": scale}
    if kind == "array" and depth:
        found["items"] = _field("", schema["items"], named, depth - 1)
    if kind == "record" and depth:
        found["fields"] = [_field(one["name"], one["type"], named, depth - 1) for one in schema["fields"]]
    return found


def _json(value: Any) -> str:
    try:
        return json.dumps(value, default=_base64, allow_nan=False, ensure_ascii=False)
    except ValueError:
        return json.dumps(_finite(value), default=_base64, ensure_ascii=False)


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode()


def _finite(value: Any) -> Any:
    """The value with texts in place of the floats that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list) else value
