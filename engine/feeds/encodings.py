"""How Debezium writes values into JSON: the semantic type of a column, from a message's schema or as a user says it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from halfjoin.errors import HalfjoinError

# In a user's words; a message's schema has others, too, whose values are texts, or numbers as they are.
KNOWN = (
    "Date", "Time", "MicroTime", "NanoTime", "Timestamp", "MicroTimestamp", "NanoTimestamp", "Decimal",
    "VariableScaleDecimal", "string", "base64", "hex",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Encoding:
    """A column's semantic type.

    `name` is the last part of Debezium's or Kafka Connect's (`MicroTimestamp`, `Decimal`), or the plain type where
    there is none (`string`, `bytes`); `scale` is Decimal's, None where nobody says; `items` is that of an array's
    elements.
    """

    name: str
    scale: int | None = None
    items: Encoding | None = None


def from_user(column: str, text: str) -> Encoding:
    """From `MicroTimestamp`, `io.debezium.time.MicroTimestamp`, `Decimal(2)`.

    Raises:
        HalfjoinError: there is no such encoding.
    """
    found = re.fullmatch(r"(?:[a-z.]*\.)?([A-Za-z0-9]+)(?:\((\d+)\))?", text)
    if found is None or found[1] not in KNOWN or (found[1] == "Decimal") != (found[2] is not None):
        raise HalfjoinError(
            f"{column}: unknown encoding {text!r}", remedy=f"encodings: {', '.join(KNOWN)}, Decimal as Decimal(2)"
        )
    return Encoding(found[1], None if found[2] is None else int(found[2]))


@lru_cache(maxsize=64)
def from_schema(text: str | None) -> Mapping[str, Encoding]:
    """By column, from the schema that an envelope came with; nothing where it came without."""
    schema = json.loads(text) if text else None
    if not isinstance(schema, dict):
        return {}
    images = [field for field in schema.get("fields") or () if field.get("field") in ("after", "before")]
    return {field["field"]: _encoding(field) for image in images for field in image.get("fields") or ()}


def _encoding(field: dict[str, Any]) -> Encoding:
    name = field.get("name") or field["type"]
    scale = (field.get("parameters") or {}).get("scale")
    items = field.get("items")
    return Encoding(
        name.rpartition(".")[2], None if scale is None else int(scale), None if items is None else _encoding(items)
    )
