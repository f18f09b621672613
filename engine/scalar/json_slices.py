"""Reads json, whose parts are slices of its text: numbers, blanks and keys that come twice stay as they were written.

The text is JSON. Where a part becomes a text, its escapes must stand for characters that a text can have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from json import JSONDecoder, decoder
from json.encoder import encode_basestring
from typing import Any

from halfjoin.engine.scalar.each import Bad
from halfjoin.sql.functions.json_text import JsonError, canonical

_INDEX = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)", re.ASCII)
_BLANKS = " \t\n\r"
_KINDS = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}


class _Number(str):
    """A number as it was written."""


class _Members(list[tuple[str, Any]]):
    """The keys and values of an object, also those that come twice."""


# Finds where a value ends; it reads no number.
_scan: Callable[[str, int], tuple[Any, int]] = vars(JSONDecoder(parse_float=str, parse_int=str))["scan_once"]
_string: Callable[[str, int, bool], tuple[str, int]] = vars(decoder)["scanstring"]
_whole = JSONDecoder(parse_float=_Number, parse_int=_Number, object_pairs_hook=_Members).decode


def read(text: str) -> str:
    """A text to take parts of.

    Raises:
        JsonError: an escape in it stands for no character.
    """
    if "\\u" in text:
        try:
            canonical(text)
        except JsonError as problem:
            if problem.code != "22003":  # a number that jsonb cannot hold
                raise
    return text.strip(_BLANKS)


def kind_of(text: str) -> str:
    """The name of the kind of value, as json_typeof gives it."""
    return _KINDS.get(text.strip(_BLANKS)[0], "number")


def shown(part: str | None) -> str | None:
    """The text that `->>` gives: of a string its characters; None for null."""
    if part is None or part == "null":
        return None
    return _string(part, 1, True)[0] if part[0] == '"' else part


def members(text: str) -> list[tuple[str, str]]:
    """The keys and values of an object, in their order."""
    return list(_members(text)) if text[0] == "{" else []


def elements(text: str) -> list[str]:
    """The elements of an array."""
    return list(_elements(text)) if text[0] == "[" else []


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _members(text: str) -> Iterator[tuple[str, str]]:
    at = _skip(text, 1)
    while text[at] != "}":
        key, at = _string(text, at + 1, True)
        start = _skip(text, _skip(text, at) + 1)
        end = _scan(text, start)[1]
        yield key, text[start:end]
        at = _next(text, end)


def _elements(text: str) -> Iterator[str]:
    at = _skip(text, 1)
    while text[at] != "]":
        end = _scan(text, at)[1]
        yield text[at:end]
        at = _next(text, end)


def _next(text: str, end: int) -> int:
    """The place of the next key or element after a value, or of the bracket at the end."""
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at


def get(text: str, *steps: str | int) -> str | None:
    """The part that the steps of `->` lead to; of keys that come twice the last counts."""
    part: str | None = read(text)
    for step in steps:
        if part is None:
            return None
        if isinstance(step, str):
            part = dict(members(part)).get(step)
        else:
            items = elements(part)
            part = items[step] if -len(items) <= step < len(items) else None
    return part


def at_path(text: str, path: Sequence[str | None]) -> str | None:
    """The part at a path of keys and indexes; the value itself for an empty path, and NULL for a NULL step."""
    if None in path:
        return None
    return _at(read(text), path) if path else _all(text)


def shown_at(text: str, path: Sequence[str | None]) -> str | None:
    """The text of the part at a path."""
    if None in path:
        return None
    part = _at(read(text), path)
    return shown(part) if path or part is None or part[0] in '"n' else _all(text)


def _all(text: str) -> str:
    """The whole value; PostgreSQL keeps the blanks before one that is neither an array nor an object."""
    part = read(text)
    return part if part[0] in "[{" else text.rstrip(_BLANKS)


def _at(part: str, path: Sequence[str | None]) -> str | None:
    """As PostgreSQL, it follows all keys that come twice, and takes what it finds last."""
    if not path:
        return part
    step, rest = path[0], path[1:]
    if step is None:
        return None
    if part[0] == "{":
        found = [_at(value, rest) for key, value in _members(part) if key == step]
    else:
        items, index = elements(part), index_of(step)
        found = [_at(items[index], rest)] if index is not None and -len(items) <= index < len(items) else []
    return next((one for one in reversed(found) if one is not None), None)


def index_of(step: str) -> int | None:
    """The index that a step of a path means; None if it is not a 32-bit integer."""
    found = _INDEX.fullmatch(step)
    if found is None or len(step) > 40:
        return None
    index = int(found[1])
    return index if -(2**31) <= index < 2**31 else None


def length(text: str) -> int:
    """The number of elements of an array."""
    kind = kind_of(text)
    if kind != "array":
        raise Bad(f"cannot get array length of a {'non-array' if kind == 'object' else 'scalar'}")
    return len(elements(text.strip(_BLANKS)))


def elements_of(text: str) -> list[str]:
    """The elements for json_array_elements."""
    kind, text = kind_of(text), read(text)
    if kind != "array":
        raise Bad(f"cannot call json_array_elements on a {'non-array' if kind == 'object' else 'scalar'}")
    return elements(text)


def keys_of(text: str) -> list[str]:
    """The keys for json_object_keys."""
    kind, text = kind_of(text), read(text)
    if kind != "object":
        raise Bad(f"cannot call json_object_keys on {'an array' if kind == 'array' else 'a scalar'}")
    return [key for key, _ in members(text)]


def pairs_of(text: str) -> list[tuple[str, str]]:
    """The keys and values for json_each."""
    kind, text = kind_of(text), read(text)
    if kind != "object":
        raise Bad("cannot deconstruct an array as an object" if kind == "array" else "cannot deconstruct a scalar")
    return members(text)


def without_nulls(text: str) -> str:
    """The text without the keys whose values are null, and without blanks."""
    return _bare(_whole(read(text)))


def _bare(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, _Members):
        kept = (f"{encode_basestring(key)}:{_bare(item)}" for key, item in value if item is not None)
        return f"{{{','.join(kept)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_bare, value))}]"
    return "null" if value is None else "true" if value else "false"
