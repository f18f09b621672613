"""Kernels that change jsonb: concatenation, removal, and new values at a path."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from halfjoin.engine.scalar.each import Bad
from halfjoin.engine.scalar.json_parts import of_json
from halfjoin.engine.scalar.json_slices import index_of
from halfjoin.engine.scalar.values import Kernel
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.json_text import Json, value_of, written

Path = Sequence[str | None]
_INDENT = "    "


def _joined(a: str, b: str) -> str:
    """`||`: two objects become one; otherwise what is not an array is an array of itself."""
    first, second = value_of(a), value_of(b)
    if isinstance(first, dict) and isinstance(second, dict):
        return written({**first, **second})
    lists = (value if isinstance(value, list) else [value] for value in (first, second))
    return written([item for items in lists for item in items])


def _without(text: str, what: str | int | Sequence[str | None]) -> str:
    value = value_of(text)
    if not isinstance(value, (dict, list)):
        raise Bad("cannot delete from scalar")
    if isinstance(what, int):
        if isinstance(value, dict):
            raise Bad("cannot delete from object using integer index")
        at = what if what >= 0 else len(value) + what
        return written([item for place, item in enumerate(value) if place != at])
    gone = {what} if isinstance(what, str) else {key for key in what if key is not None}
    if isinstance(value, dict):
        return written({key: item for key, item in value.items() if key not in gone})
    return written([item for item in value if not (isinstance(item, str) and item in gone)])


class _Change:
    """What happens at the end of a path. `at` changes an array or object in which the last step is looked up.

    `value`: what to put there. `create`: also where nothing is. `keep`: whether the old element stays, and on which
    side of it the new one goes.
    """

    def __init__(self, value: Json = None, *, remove: bool = False, create: bool = False, keep: str = "") -> None:
        self.value, self.remove, self.create, self.keep = value, remove, create, keep

    def of(self, value: Json, path: Path, level: int = 0) -> Json:
        """The value with the change at the path, which begins at a level."""
        step = path[level]
        if step is None:
            raise Bad(f"path element at position {level + 1} is null")
        if isinstance(value, dict):
            return self._of_object(value, path, level, step)
        if isinstance(value, list):
            return self._of_array(value, path, level, step)
        return value

    def _of_object(self, value: dict[str, Json], path: Path, level: int, step: str) -> Json:
        last = level == len(path) - 1
        if step not in value:
            return {**value, step: self.value} if last and self.create else value
        if not last:
            return {**value, step: self.of(value[step], path, level + 1)}
        if self.keep:
            raise Bad("cannot replace existing key")
        if self.remove:
            return {key: item for key, item in value.items() if key != step}
        return {**value, step: self.value}

    def _of_array(self, value: list[Json], path: Path, level: int, step: str) -> Json:
        index = index_of(step)
        if index is None:
            raise Bad(f'path element at position {level + 1} is not an integer: "{step}"')
        at = index if index >= 0 else len(value) + index
        if not 0 <= at < len(value):
            if level < len(path) - 1 or not self.create:
                return value
            return [self.value, *value] if at < 0 else [*value, self.value]
        if level < len(path) - 1:
            made = [self.of(value[at], path, level + 1)]
        elif self.remove:
            made = []
        else:
            made = {"": [self.value], "before": [self.value, value[at]], "after": [value[at], self.value]}[self.keep]
        return [*value[:at], *made, *value[at + 1 :]]


def _without_path(text: str, path: Path) -> str:
    value = value_of(text)
    if not isinstance(value, (dict, list)):
        raise Bad("cannot delete path in scalar")
    return written(_Change(remove=True).of(value, path)) if path and value else text


def _set(text: str, path: Path, new: str, create: bool = True) -> str:
    value = value_of(text)
    if not isinstance(value, (dict, list)):
        raise Bad("cannot set path in scalar")
    if not path or not (value or create):
        return text
    return written(_Change(value_of(new), create=create).of(value, path))


def _insert(text: str, path: Path, new: str, after: bool = False) -> str:
    value = value_of(text)
    if not isinstance(value, (dict, list)):
        raise Bad("cannot set path in scalar")
    if not path:
        return text
    return written(_Change(value_of(new), create=True, keep="after" if after else "before").of(value, path))


def _stripped(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _stripped(item) for key, item in value.items() if item is not None}
    return [_stripped(item) for item in value] if isinstance(value, list) else value


def _pretty(value: Json, indent: str = "\n") -> str:
    """The text with a line for each member."""
    if not isinstance(value, (dict, list)):
        return written(value)
    inner = indent + _INDENT
    if isinstance(value, dict):
        parts = [f"{inner}{written(key)}: {_pretty(item, inner)}" for key, item in value.items()]
        return f"{{{','.join(parts)}{indent}}}"
    return f"[{','.join(inner + _pretty(item, inner) for item in value)}{indent}]"


JSON_CHANGES: dict[str, Callable[[Call], Kernel]] = {
    "jsonb ||": of_json(_joined, pa.string()),
    "jsonb -": of_json(_without, pa.string()),
    "#-": of_json(_without_path, pa.string()),
    "jsonb_set": of_json(_set, pa.string()),
    "jsonb_insert": of_json(_insert, pa.string()),
    "jsonb_strip_nulls": of_json(lambda text: written(_stripped(value_of(text))), pa.string()),
    "jsonb_pretty": of_json(lambda text: _pretty(value_of(text)), pa.string()),
}
