"""Reads JSON without losing a digit: numbers with a point are decimals, and objects stay texts for jsonb."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any


def loads(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not JSON.
    """
    return json.loads(text, parse_float=Decimal)


def row(given: dict[str, Any]) -> dict[str, Any]:
    """An object as a row. Values that are objects, or lists with objects, become JSON texts.

    >>> row(loads('{"a": 1.50, "b": {"c": [1.50, null]}, "d": [1]}'))
    {'a': Decimal('1.50'), 'b': '{"c": [1.50, null]}', 'd': [1]}
    """
    return {name: written(value) if holds_objects(value) else value for name, value in given.items()}


def written(value: Any) -> str:
    """A value as JSON text, with the digits that it was read with."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {written(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def holds_objects(value: Any) -> bool:
    """Whether a value is an object, or a list that has one somewhere."""
    return isinstance(value, dict) or (isinstance(value, list) and any(map(holds_objects, value)))
