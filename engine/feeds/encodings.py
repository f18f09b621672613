"""How Debezium writes values into JSON: a column's semantic type, from a message's schema or from the user."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from halfjoin.catalog.models import Table
from halfjoin.errors import HalfjoinError, UnknownName
from halfjoin.sql.types import Kind, innermost

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


def pairs(option: str, given: str | tuple[str, ...]) -> list[tuple[str, str]]:
    """Pairs of words that an option of a source has, with commas between the pairs.

    Raises:
        HalfjoinError: it has something else.
    """
    texts = given.split(",") if isinstance(given, str) else given
    found = [text.split() for text in texts if text.strip()]
    for pair in found:
        if len(pair) != 2:
            raise HalfjoinError(f"{option}: {' '.join(pair)!r} is not a pair of words",
                                remedy="write include = 'offset a, timestamp b', or encodings = 'a MicroTimestamp'")
    return [(first, second) for first, second in found]


def of_plain(table: Table) -> Mapping[str, str]:
    """How plain JSON, which Debezium did not write, has a table's columns: a text in a numeric is its digits."""
    return {column.name: "string" for column in table.columns if innermost(column.type).kind is Kind.NUMERIC}


def check_encodings(table: Table, encodings: Mapping[str, str]) -> None:
    """Refuse encodings that a user gives, if a table has no such column, or there is no such encoding.

    Raises:
        HalfjoinError, UnknownName: says which.
    """
    names = [column.name for column in table.columns]
    for column, encoding in encodings.items():
        if column not in names:
            raise UnknownName(f"column of {table.name}", column, names)
        from_user(column, encoding)


@lru_cache(maxsize=64)
def from_schema(text: str | None) -> Mapping[str, Encoding]:
    """The encoding of each column, from the schema in an envelope. Empty if the envelope has no schema.

    Raises:
        ValueError: it is not a schema of Kafka Connect.
    """
    try:
        schema = json.loads(text) if text else None
        if schema is None:
            return {}
        images = [field for field in schema.get("fields") or () if field.get("field") in ("after", "before")]
        return {field["field"]: encoding_of(field) for image in images for field in image.get("fields") or ()}
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise ValueError("has a schema that is not one of Kafka Connect") from None


def encoding_of(field: Mapping[str, Any]) -> Encoding:
    """The encoding of a field, as a schema of Kafka Connect describes it."""
    name = field.get("name") or field["type"]
    scale = (field.get("parameters") or {}).get("scale")
    items = field.get("items")
    return Encoding(
        name.rpartition(".")[2], None if scale is None else int(scale), None if items is None else encoding_of(items)
    )
