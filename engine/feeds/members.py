"""The members of objects in JSON texts, which may be nested however deep: Python's reader recurses, DuckDB's does not.

Of several members with one name the last one counts, as in jsonb. DuckDB finds the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import dumps
from json.decoder import scanstring  # type: ignore[attr-defined]

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.duck import rows_of

_SPACE = " \t\n\r"
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|[^\s\[\]{}",:]+')


def last_members(texts: pa.Array) -> pa.Array:
    """The texts of JSON, in which each object names its members once. Objects in them are left as they are."""
    kinds = rows_of("SELECT DISTINCT json_keys(v) AS k FROM arguments", pa.table({"v": texts}))
    if all(names is None or len(set(names)) == len(names) for names in kinds.column("k").to_pylist()):
        return texts  # nearly always, and there are few kinds
    found = rows_of("SELECT n FROM (SELECT n, json_keys(v) AS k FROM arguments) WHERE len(list_distinct(k)) < len(k)",
                    pa.table({"n": np.arange(len(texts)), "v": texts})).column("n").to_pylist()  # fmt: skip
    mask = np.zeros(len(texts), np.bool_)
    mask[found] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array([_last(texts[row].as_py()) for row in sorted(found)]))


def _last(text: str) -> str:
    """An object with the last member of each name, as it is written.

    >>> _last('{"a": 1.50, "b": [1], "a" : {"c": 2} }')
    '{"a":{"c": 2},"b":[1]}'
    """
    found = {name: text[begin:end] for name, begin, end in members(text)}
    return "{" + ",".join(f"{dumps(name)}:{value}" for name, value in found.items()) + "}"


def members(text: str, at: int = 0) -> Iterator[tuple[str, int, int]]:
    """The members of the object that begins at or after a place in a JSON text: names, and where values begin and end.

    >>> list(members('{"a": [1, {"b": "]"}], "c" :2}'))
    [('a', 6, 21), ('c', 28, 29)]
    """
    at = _after(text, text.index("{", at) + 1)
    while text[at] != "}":
        name, at = scanstring(text, at + 1)
        begin = _after(text, _after(text, at) + 1)
        end = _end(text, begin)
        yield name, begin, end
        at = _after(text, end)
        if text[at] == ",":
            at = _after(text, at + 1)


def member(text: str, name: str, at: int = 0) -> tuple[int, int] | None:
    """Where the first member of a name begins and ends, in the object that begins at or after a place."""
    return next(((begin, end) for found, begin, end in members(text, at) if found == name), None)


def _end(text: str, begin: int) -> int:
    """The place after the value that begins at one."""
    open = 0
    for token in _TOKEN.finditer(text, begin):
        open += (token[0] in "[{") - (token[0] in "]}")
        if not open:
            return token.end()
    raise ValueError(f"no value ends after {begin}")


def _after(text: str, at: int) -> int:
    """The first place from one on that is no space."""
    while text[at] in _SPACE:
        at += 1
    return at
