"""Objects in JSON that name a member twice: the last one counts, as in jsonb. DuckDB finds the first."""

from __future__ import annotations

from json import JSONDecoder, dumps
from json.decoder import scanstring  # type: ignore[attr-defined]

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.duck import rows_of

_DECODER = JSONDecoder()
_SPACE = " \t\n\r"


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
    found: dict[str, str] = {}
    at = _after(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = scanstring(text, at + 1)
        begin = _after(text, _after(text, at) + 1)
        _, end = _DECODER.raw_decode(text, begin)
        found[name] = text[begin:end]
        at = _after(text, end)
        if text[at] == ",":
            at = _after(text, at + 1)
    return "{" + ",".join(f"{dumps(name)}:{value}" for name, value in found.items()) + "}"


def _after(text: str, at: int) -> int:
    """The first place from one on that is no space."""
    while text[at] in _SPACE:
        at += 1
    return at
