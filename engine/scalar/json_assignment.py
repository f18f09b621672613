"""The kernel that assigns to parts of a jsonb: `j['a'][0] = '1'`.

Unlike jsonb_set, it makes what is missing on the way, puts nulls in the gaps of arrays, and refuses what it would have
to replace: a value that is neither an object nor an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import pyarrow as pa

from halfjoin.engine.scalar.each import Bad
from halfjoin.engine.scalar.json_parts import of_json
from halfjoin.engine.scalar.json_slices import index_of
from halfjoin.engine.scalar.values import Kernel
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.json_text import Json, value_of, written
from halfjoin.sql.types import VALUE_BYTES

_GAP = 6  # the bytes of a null in an array: `null, `


def _assigned(text: str | None, new: str | None, number: bool, path: Sequence[str | None] | None) -> str | None:
    """The value with another at a path. `number`: of a NULL it makes an array, and no object. A NULL is a null. Without
    a path there is no value: so rows that have failed are run again with the others (`nodes`)."""
    if path is None:
        return None
    steps = [_step(step) for step in path]
    value: Json = value_of(text) if text is not None else [] if number else {}
    return written(_with(value, steps, 0, None if new is None else value_of(new)))


def _step(step: str | None) -> str:
    if step is None:
        raise Bad("jsonb subscript in assignment must not be null")
    return step


def _with(value: Json, path: Sequence[str], level: int, new: Json) -> Json:
    if level == len(path):
        return new
    step = path[level]
    if isinstance(value, dict):
        inner = _with(value[step], path, level + 1, new) if step in value else _made(path, level + 1, new)
        return {**value, step: inner}
    if not isinstance(value, list):
        raise Bad("cannot replace existing key: the path assumes key is a composite object, but it is a scalar value")
    index = index_of(step)
    if index is None:
        raise Bad(f'path element at position {level + 1} is not an integer: "{step}"')
    if index < -len(value):
        raise Bad(f"path element at position {level + 1} is out of range: {index}")
    at = index if index >= 0 else len(value) + index
    if at < len(value):
        return [*value[:at], _with(value[at], path, level + 1, new), *value[at + 1 :]]
    return [*value, *_nulls(at - len(value)), _made(path, level + 1, new)]


def _made(path: Sequence[str], level: int, new: Json) -> Json:
    """The objects and arrays of the rest of a path; a whole number is an index."""
    for step in reversed(path[level:]):
        index = index_of(step)
        new = {step: new} if index is None else [*_nulls(index), new]
    return new


def _nulls(count: int) -> list[Json]:
    if count * _GAP > VALUE_BYTES:
        _too_long()
    return [None] * max(count, 0)


def _too_long() -> NoReturn:
    raise Bad(f"the result would be longer than {VALUE_BYTES:,} bytes")


JSON_ASSIGNMENT: dict[str, Callable[[Call], Kernel]] = {"with part": of_json(_assigned, pa.string(), nulls=True)}
