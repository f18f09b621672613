"""The schemas of a sink's messages in Avro, and their numbers in the registry.

The names are as Debezium's: `<topic>.Key`, `<topic>.Value`, `<topic>.Envelope`, under the subjects `<topic>-key` and
`<topic>-value`. Every field may be null and is null by default, so that a column more or less is a compatible change;
columns of a PRIMARY KEY are not null, and have no default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from halfjoin.engine.feeds.kafka.registry import RegistryOptions
from halfjoin.engine.feeds.source import needed
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.sinks.kafka.avro_values import avro_type
from halfjoin.engine.sinks.kafka.messages import Shape
from halfjoin.errors import Conflict, StorageError, UnsupportedSQL

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INCOMPATIBLE = 409


def check_names(shape: Shape) -> None:
    """Refuse columns that no field can be called.

    Raises:
        UnsupportedSQL: names the column.
    """
    for name in shape.columns:
        if _NAME.fullmatch(name) is None:
            raise UnsupportedSQL(f"Avro has no field of the name {name!r}: letters, digits and _ only",
                                 remedy="name the column otherwise in a view, and write that view")  # fmt: skip


def key_schema(topic: str, shape: Shape) -> dict[str, Any]:
    """The schema of the keys: the key's columns, or all without a key."""
    return _record(topic, "Key", [_field(shape, name) for name in shape.key or shape.columns])


def value_schema(topic: str, shape: Shape) -> dict[str, Any]:
    """The schema of the values: a row, or Debezium's envelope around two of them."""
    row = _record(topic, "Value", [_field(shape, name) for name in shape.columns])
    if not shape.debezium:
        return row
    source = _record(topic, "Source", [{"name": "connector", "type": "string"}, {"name": "table", "type": "string"},
                                       {"name": "upper", "type": "long"}])  # fmt: skip
    return _record(topic, "Envelope", [
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", f"{row['namespace']}.Value"], "default": None},
        {"name": "source", "type": source}, {"name": "op", "type": "string"},
    ])  # fmt: skip


def registered(options: RegistryOptions, subject: str, schema: dict[str, Any]) -> int:
    """The number of a schema in the registry. It is registered unless it is there.

    Raises:
        Conflict: the registry says that it does not fit the subject's other schemas.
        StorageError: the registry cannot be asked, or refuses for another reason.
    """
    module = needed("confluent_kafka.schema_registry", "KAFKA", "kafka")
    client, given = options.registry_client(), module.Schema(json.dumps(schema), "AVRO")
    try:
        try:
            return int(client.lookup_schema(subject, given).schema_id)
        except module.SchemaRegistryError as problem:
            if problem.http_status_code != 404:
                raise
        return int(client.register_schema(subject, given))
    except module.SchemaRegistryError as problem:
        if problem.http_status_code == _INCOMPATIBLE:
            raise Conflict(
                f"the schema of {subject} does not fit the schemas that the registry has: {problem.error_message}",
                remedy="choose another topic, or set the subject's compatibility to NONE",
            ) from problem
        raise StorageError(f"the schema registry refuses {subject}: {problem}") from problem
    except Exception as problem:  # the client lets through what its HTTP library raises
        raise StorageError(f"the schema registry {options.registry} cannot be reached: {problem}") from problem


def _field(shape: Shape, name: str) -> dict[str, Any]:
    type = avro_type(shape.columns[name], arrow_type(shape.columns[name]))
    return {"name": name, "type": type} if name in shape.required else {
        "name": name, "type": ["null", type], "default": None
    }  # fmt: skip


def _record(topic: str, name: str, fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
    parts = [re.sub(r"[^A-Za-z0-9_]", "_", part) for part in topic.split(".") if part]
    space = ".".join(part if _NAME.fullmatch(part) else f"_{part}" for part in parts)
    return {"type": "record", "name": name, "namespace": space, "fields": list(fields)}
