"""Kernels that read json and jsonb: parts of a value, tests of it, its elements, and bytes that order as the values do.

A function runs once for each distinct text of a batch. Values of short texts are also kept between functions, so
`j ->> 'a', j ->> 'b'` reads each text once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from halfjoin.engine.scalar import json_slices as slices
from halfjoin.engine.scalar.each import Bad, each
from halfjoin.engine.scalar.values import Kernel
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.json_text import Json, JsonError, value_of, written
from halfjoin.sql.types import Kind

_MOST_PAIRS = 10_000_000  # of elements to compare in one `@>`
Path: TypeAlias = Sequence[str | None]


class _Absent:
    """What is not there; None is a JSON null."""


ABSENT = _Absent()


def of_json(compute: Callable[..., Any], type: Any, *, nulls: bool = False) -> Callable[[Call], Kernel]:
    """The builder of a kernel that computes each row's value from texts; a JsonError is a failure of the row."""

    def guarded(*args: Any) -> Any:
        try:
            return compute(*args)
        except JsonError as error:
            raise Bad(error.reason) from None

    kernel = each(guarded, type, nulls=nulls)
    return lambda _: kernel


def shown(value: Json | _Absent) -> str | None:
    """The text that `->>` gives: of a string its characters."""
    if value is None or isinstance(value, _Absent):
        return None
    return value if isinstance(value, str) else written(value)


def _step(value: Json, step: str | int) -> Json | _Absent:
    """One step of `->`."""
    if isinstance(step, str):
        return value[step] if isinstance(value, dict) and step in value else ABSENT
    if isinstance(value, dict):
        return ABSENT
    items = value if isinstance(value, list) else [value]  # a scalar is an array of itself
    return items[step] if -len(items) <= step < len(items) else ABSENT


def _get(text: str, *steps: str | int) -> Json | _Absent:
    value = value_of(text)
    for step in steps:
        found = _step(value, step)
        if isinstance(found, _Absent):
            return found
        value = found
    return value


def _path(text: str, path: Path) -> Json | _Absent:
    value = value_of(text)
    for step in path:
        place: str | int | None = step
        if isinstance(value, list) and step is not None:
            place = slices.index_of(step)
        found = ABSENT if place is None or not isinstance(value, (dict, list)) else _step(value, place)
        if isinstance(found, _Absent):
            return found
        value = found
    return value


def _as_json(found: Json | _Absent) -> str | None:
    return None if isinstance(found, _Absent) else written(found)


def _has(text: str, key: str) -> bool:
    value = value_of(text)
    return key in value if isinstance(value, dict) else key in _strings(value)


def _strings(value: Json) -> set[str]:
    """The strings among the elements; a string is its own element."""
    return {item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)}


def _has_of(text: str, keys: Sequence[str | None], decide: Callable[..., bool]) -> bool:
    value = value_of(text)
    among = value if isinstance(value, dict) else _strings(value)
    return decide(key in among for key in keys if key is not None)


class _Containment:
    """`@>`, with a bound on the pairs of elements that it compares."""

    def __init__(self) -> None:
        self._left = _MOST_PAIRS

    def holds(self, a: Json, b: Json) -> bool:
        """Whether `a` contains `b`, which is of the same kind or a scalar."""
        if isinstance(b, dict):
            return isinstance(a, dict) and all(key in a and self.holds(a[key], item) for key, item in b.items())
        if not isinstance(b, list):
            return type(a) is type(b) and a == b
        if not isinstance(a, list):
            return False
        scalars = {(type(item), item) for item in a if not isinstance(item, (dict, list))}
        nested = [item for item in a if isinstance(item, (dict, list))]
        return all(self._among(nested, item) if isinstance(item, (dict, list)) else (type(item), item) in scalars
                   for item in b)  # fmt: skip

    def _among(self, items: list[dict[str, Json] | list[Json]], wanted: Json) -> bool:
        self._left -= len(items)
        if self._left < 0:
            raise JsonError(f"@> compares at most {_MOST_PAIRS:,} pairs of elements")
        return any(type(item) is type(wanted) and self.holds(item, wanted) for item in items)


def _contains(a: str, b: str) -> bool:
    whole, part = value_of(a), value_of(b)
    if isinstance(whole, list) and not isinstance(part, (dict, list)):  # an array contains a scalar
        part = [part]
    return _Containment().holds(whole, part)


def kind_of(value: Json) -> str:
    """The name of the kind of value, as jsonb_typeof gives it."""
    return "null" if value is None else _KINDS[type(value)]


_KINDS: dict[type, str] = {dict: "object", list: "array", str: "string", Decimal: "number", bool: "boolean"}


def _length(text: str) -> int:
    value = value_of(text)
    if not isinstance(value, list):
        raise Bad(f"cannot get array length of a {'non-array' if isinstance(value, dict) else 'scalar'}")
    return len(value)


def _elements(text: str) -> list[Json]:
    value = value_of(text)
    if not isinstance(value, list):
        raise Bad(f"cannot extract elements from {'an object' if isinstance(value, dict) else 'a scalar'}")
    return value


def _keys(text: str) -> list[str]:
    value = value_of(text)
    if not isinstance(value, dict):
        raise Bad(f"cannot call jsonb_object_keys on {'an array' if isinstance(value, list) else 'a scalar'}")
    return list(value)


def _pairs(text: str) -> dict[str, Json]:
    value = value_of(text)
    if not isinstance(value, dict):
        raise Bad("cannot call jsonb_each on a non-object")
    return value


def _either(jsonb: Callable[..., Any], json: Callable[..., Any], type: Any) -> Callable[[Call], Kernel]:
    """The builder of a kernel that reads a jsonb, or a json."""
    of_jsonb, of_text = of_json(jsonb, type), of_json(json, type)
    return lambda call: (of_text if call.args[0].type.kind is Kind.JSON else of_jsonb)(call)


def _only_object(text: str | None) -> str:
    """The argument of jsonb_to_record as that of jsonb_to_recordset."""
    kind = "object" if text is None else slices.kind_of(text)
    if kind != "object":
        raise Bad(f"cannot call populate_composite on {'an array' if kind == 'array' else 'a scalar'}")
    return f"[{text or '{}'}]"


def _fields(text: str, key: str, missing: Json = None) -> list[Json]:
    """A key's values in the objects of an array; `missing` where an object has no such key."""
    value = value_of(text)
    if not isinstance(value, list):
        raise Bad("cannot call jsonb_to_recordset on a non-array")
    found = []
    for item in value:
        if not isinstance(item, dict):
            raise Bad("argument of jsonb_to_recordset must be an array of objects")
        found.append(item.get(key, missing))
    return found


def _field_values(text: str, key: str, missing: str | None = None) -> list[str | None]:
    other = None if missing is None else value_of(missing)
    return [None if value is None else written(value) for value in _fields(text, key, other)]


def _field_texts(text: str, key: str, missing: str | None = None) -> list[str | None]:
    return list(map(shown, _fields(text, key, missing)))


def _parts(text: str, key: str, missing: str | None = None) -> list[str | None]:
    """As `_fields`, of a json."""
    if slices.kind_of(text) != "array":
        raise Bad(f"cannot call json_to_recordset on {'an object' if slices.kind_of(text) == 'object' else 'a scalar'}")
    found = []
    for item in slices.elements(slices.read(text)):
        if item[0] != "{":
            raise Bad("argument of json_to_recordset must be an array of objects")
        found.append(dict(slices.members(item)).get(key, missing))
    return found


def _part_texts(text: str, key: str, missing: str | None = None) -> list[str | None]:
    return list(map(slices.shown, _parts(text, key, missing)))


def _array_texts(text: str) -> list[str | None]:
    """The elements of an array as texts, for a field that is an array of one dimension."""
    if slices.kind_of(text) != "array":
        raise Bad("expected JSON array")
    items = slices.elements(slices.read(text))
    if any(item[0] == "[" for item in items):
        raise Bad("an array of JSON with arrays inside does not fit a field of one dimension")
    return list(map(slices.shown, items))


_TEXTS = pa.list_(pa.string())


def _contained(flip: bool) -> Callable[[Call], Kernel]:
    return of_json((lambda a, b: _contains(b, a)) if flip else _contains, pa.bool_())


JSON_PARTS: dict[str, Callable[[Call], Kernel]] = {
    # The steps of `->` are texts and integers; a NULL among them makes the result NULL.
    "->": _either(lambda text, *steps: _as_json(_get(text, *steps)), slices.get, pa.string()),
    "->>": _either(lambda text, *steps: shown(_get(text, *steps)), lambda *args: slices.shown(slices.get(*args)),
                   pa.string()),
    "#>": _either(lambda text, path: _as_json(_path(text, path)), slices.at_path, pa.string()),
    "#>>": _either(lambda text, path: shown(_path(text, path)), slices.shown_at, pa.string()),
    "jsonb @>": _contained(False),
    "jsonb <@": _contained(True),
    "?": of_json(_has, pa.bool_()),
    "?|": of_json(lambda text, keys: _has_of(text, keys, any), pa.bool_()),
    "?&": of_json(lambda text, keys: _has_of(text, keys, all), pa.bool_()),
    "jsonb_typeof": of_json(lambda text: kind_of(value_of(text)), pa.string()),
    "jsonb_array_length": of_json(_length, pa.int32()),
    "json_typeof": of_json(slices.kind_of, pa.string()),
    "json_array_length": of_json(slices.length, pa.int32()),
    "json_strip_nulls": of_json(slices.without_nulls, pa.string()),
    "jsonb elements": _either(lambda text: list(map(written, _elements(text))), slices.elements_of, _TEXTS),
    "jsonb element texts": _either(lambda text: list(map(shown, _elements(text))),
                                   lambda text: list(map(slices.shown, slices.elements_of(text))), _TEXTS),
    "jsonb array texts": of_json(_array_texts, _TEXTS),
    "jsonb only object": of_json(_only_object, pa.string(), nulls=True),
    "jsonb field texts": _either(_field_texts, _part_texts, _TEXTS),
    "jsonb field values": _either(_field_values, _parts, _TEXTS),
    "jsonb keys": _either(_keys, slices.keys_of, _TEXTS),
    "jsonb each keys": _either(lambda text: list(_pairs(text)), lambda text: [key for key, _ in slices.pairs_of(text)],
                               _TEXTS),
    "jsonb values": _either(lambda text: list(map(written, _pairs(text).values())),
                            lambda text: [part for _, part in slices.pairs_of(text)], _TEXTS),
    "jsonb value texts": _either(lambda text: list(map(shown, _pairs(text).values())),
                                 lambda text: [slices.shown(part) for _, part in slices.pairs_of(text)], _TEXTS),
}
