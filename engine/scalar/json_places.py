"""Where PostgreSQL keeps the arrays and objects of a jsonb value: the ids of `.keyvalue()` are made of these places."""

from __future__ import annotations

from decimal import Decimal

from halfjoin.sql.functions.json_text import Json, key_order

_LEVELS_OF_SHORT = 64  # a numeric of so many groups of four digits before and after the point has a short head


def places(value: Json) -> dict[int, int]:
    """The offset in bytes of each array and object in a value, by Python's id of it.

    A container is a head, four bytes for each member (a key and a value are two), and the members: the keys come first.
    Numbers and containers begin at a multiple of four.
    """
    found: dict[int, int] = {}
    _put(value, 0, found)
    return found


def _put(value: Json, at: int, found: dict[int, int]) -> int:
    """The place after a value that begins at a place."""
    if isinstance(value, str):
        return at + len(value.encode())
    if value is None or isinstance(value, bool):
        return at
    at = -(-at // 4) * 4
    if isinstance(value, Decimal):
        return at + _size(value)
    found[id(value)] = at
    if isinstance(value, list):
        at += 4 + 4 * len(value)
        members = value
    else:
        keys = sorted(value, key=key_order)
        at += 4 + 8 * len(keys) + sum(len(key.encode()) for key in keys)
        members = [value[key] for key in keys]
    for one in members:
        at = _put(one, at, found)
    return at


def _size(value: Decimal) -> int:
    """The bytes of a numeric: groups of four digits, without those that are 0 at either end."""
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(text)
    text = text.lstrip("0")
    if not text:
        return 6
    low, top = exponent // 4, (exponent + len(text) - 1) // 4
    short = -_LEVELS_OF_SHORT <= top < _LEVELS_OF_SHORT and -exponent < _LEVELS_OF_SHORT
    return (6 if short else 8) + 2 * (top - low + 1)
