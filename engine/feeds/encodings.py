"""How Debezium writes values into JSON: a column's semantic type, from a message's schema or from the user."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from halfjoin.errors import HalfjoinError

# The encodings that a user can name. A schema has more; their values are texts, or numbers as they are.
KNOWN = (
    "Date", "Time", "MicroTime", "NanoTime", "Timestamp", "MicroTimestamp", "NanoTimestamp", "Decimal",
    "VariableScaleDecimal", "string", "base64", "hex",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Encoding:
    """A column's semantic type.

    `name` is the last part of Debezium's or Kafka Connect's name (`MicroTimestamp`, `Decimal`), or else the plain type
    (`string`, `bytes`). `scale` is that of `Decimal`, or None if nobody gives it. `items` is the encoding of an array's
    elements.
    """

    name: str
    scale: int | None = None
    items: Encoding | None = None


def from_user(column: str, text: str) -> Encoding:
    """The encoding that a text like `MicroTimestamp`, `io.debezium.time.MicroTimestamp` or `Decimal(2)` names.

    Raises:
        HalfjoinError: there is no such encoding.
    """
    found = re.fullmatch(r"(?:[a-z.]*\.)?([A-Za-z0-9]+)(?:\((\d+)\))?", text) if isinstance(text, str) else None
    if found is None or found[1] not in KNOWN or (found[1] == "Decimal") != (found[2] is not None):
        raise HalfjoinError(
            f"{column}: unknown encoding {text!r}", remedy=f"encodings: {', '.join(KNOWN)}, Decimal as Decimal(2)"
        )
    return Encoding(found[1], None if found[2] is None else int(found[2]))


@lru_cache(maxsize=64)
def from_schema(text: str | None) -> Mapping[str, Encoding]:
    """The encoding of each column, from the schema in an envelope. Empty if the envelope has no schema."""
    schema = json.loads(text) if text else None
    if not isinstance(schema, dict):
        return {}
    images = [field for field in schema.get("fields") or () if field.get("field") in ("after", "before")]
    return {field["field"]: encoding_of(field) for image in images for field in image.get("fields") or ()}


def encoding_of(field: Mapping[str, Any]) -> Encoding:
    """The encoding of a field, as a schema of Kafka Connect describes it."""
    name = field.get("name") or field["type"]
    scale = (field.get("parameters") or {}).get("scale")
    items = field.get("items")
    return Encoding(
        name.rpartition(".")[2], None if scale is None else int(scale), None if items is None else encoding_of(items)
    )
