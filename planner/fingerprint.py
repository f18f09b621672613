"""Computes the fingerprint of a node. Equal nodes have the same one, in every view and every process; others do not.

It covers the node's kind, its normal form, the incarnations of the collections that it reads, and the version of the
state that nodes keep. The normal form must not hold names that a view gives: see `planner.canonical`.

The normal form names all columns of a table, read or not, so ALTER TABLE changes the fingerprints above the table. A
node whose work stays the same keeps its name then (`Facts.node_name`), and so its state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache

from halfjoin.sql.unseen import Unseen

STATE_VERSION = 1  # of the state that nodes keep; another version of the engine may keep another state
DIGITS = 16


def fingerprint(kind: str, normal_form: object, incarnations: Mapping[str, str]) -> str:
    """The name of a node's output collection: `kind#` and a digest. No table or view has a `#` in its name."""
    text = written((STATE_VERSION, kind, normal_form, sorted(incarnations.items())))
    return f"{kind}#{hashlib.sha256(text.encode()).hexdigest()[:DIGITS]}"


def written(value: object) -> str:
    """A value of the planner as its complete text, the same in every process. Fields that follow from others are left
    out; so are later fields (`LATER`) that are empty, so that nodes of older versions keep their names.

    >>> written((1, frozenset({"b", "a"})))
    "(1,{'a','b'})"
    """
    kind: type = type(value)
    if kind in _PLAIN:
        return repr(value)
    if isinstance(value, Enum):
        return f"{kind.__name__}.{value.name}"
    if isinstance(value, tuple | list):
        return f"({','.join(map(written, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(written, value)))}}}"
    if (names := _fields(kind)) is None:
        return repr(value)
    parts = [(name, getattr(value, name)) for name in names]
    return f"{kind.__name__}({','.join([written(part) for name, part in parts if name not in LATER or part])})"


LATER = ("named", "labels", "fields", "made")
_PLAIN = {str, int, bool, type(None), Unseen}


@cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """The names of a dataclass's fields that count when values are compared; None for any other type."""
    return tuple(field.name for field in fields(kind) if field.compare) if is_dataclass(kind) else None
