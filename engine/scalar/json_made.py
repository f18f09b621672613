"""Kernels that make json and jsonb from values of other types, by their texts.

PostgreSQL writes json without blanks in arrays and rows, and keeps numbers as they are printed; jsonb is canonical.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.bounds import check, sizes
from halfjoin.engine.scalar.casts_text import part_text, to_text
from halfjoin.engine.scalar.each import Bad, each
from halfjoin.engine.scalar.json_order import to_canonical
from halfjoin.engine.scalar.json_parts import of_json
from halfjoin.engine.scalar.values import Kernel, on_arrays, valid
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.functions.json_made import LINES
from halfjoin.sql.functions.json_text import DEPTH, checked, key_order, number_text, value_of, written
from halfjoin.sql.types import FLOATS, INTEGERS, TEXT, VALUE_BYTES, Kind, SqlType

_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_quoted = each(encode_basestring, pa.string())


def to_jsonb(type: SqlType) -> Kernel:
    """The kernel from values of a type to their canonical texts as JSON."""
    if type.kind is Kind.JSONB:
        return lambda a: a
    if type.kind is Kind.JSON:
        return to_canonical
    if type.kind is Kind.ARRAY:
        assert type.element is not None
        return _array(to_jsonb(type.element), ", ")
    if type.kind is Kind.RECORD:
        last = {name: place for place, (name, _) in enumerate(type.fields)}
        return _row([(name, last[name], to_jsonb(type.fields[last[name]][1])) for name in sorted(last, key=key_order)],
                    ": ", ", ")  # fmt: skip
    if type.kind is Kind.NUMERIC or type.kind in FLOATS:
        return _printed(type, each(_number, pa.string()))
    return _scalar(type)


def to_json(type: SqlType, separator: str = ",", lines: bool = False) -> Kernel:
    """The kernel from values of a type to texts of JSON as PostgreSQL's `to_json` writes them.

    `separator`: between the elements of an array; `lines`: those that are not NULL begin a line.
    """
    if type.kind in (Kind.JSON, Kind.JSONB):
        return lambda a: a
    if type.kind is Kind.ARRAY:
        assert type.element is not None
        return _array(to_json(type.element), separator, lines)
    if type.kind is Kind.RECORD:
        return _row([(name, place, to_json(field)) for place, (name, field) in enumerate(type.fields)], ":", ",")
    if type.kind is Kind.NUMERIC or type.kind in FLOATS:
        return _printed(type, _as_printed)
    return _scalar(type)


def _printed(type: SqlType, number: Kernel) -> Kernel:
    printed = to_text(type, TEXT) or (lambda a: a)
    return lambda a: number(printed(a))


def _scalar(type: SqlType) -> Kernel:
    if type.kind is Kind.CHAR:
        return lambda a: _quoted(part_text(type)(a))
    printed = to_text(type, TEXT) or (lambda a: a)
    if type.kind in (*INTEGERS, Kind.BOOLEAN):
        return printed
    if type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return lambda a: _quoted(_with_t(printed(a)))
    return lambda a: _quoted(printed(a))


def _number(text: str) -> str:
    return f'"{text}"' if text in _NOT_FINITE else number_text(Decimal(text))


@on_arrays
def _as_printed(texts: Any) -> Any:
    """Numbers as they are; NaN and infinities in quotes."""
    named = pc.is_in(texts, pa.array(_NOT_FINITE))
    return pc.if_else(named, pc.binary_join_element_wise('"', texts, '"', ""), texts)


@on_arrays
def _with_t(texts: Any) -> Any:
    """Timestamps as ISO 8601 writes them."""
    return pc.replace_substring_regex(pc.replace_substring(texts, " ", "T", max_replacements=1), r"\+00( BC)?$",
                                      r"+00:00\1")  # fmt: skip


def _array(element: Kernel, separator: str, lines: bool = False) -> Kernel:
    @on_arrays
    def run(array: Any) -> Any:
        counts = pc.fill_null(pc.list_value_length(array), 0)
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts.to_numpy())]).astype(np.int32))
        flat = array.flatten()
        texts = element(flat) if len(flat) else pa.array([], pa.string())
        if lines:
            texts = pc.binary_join_element_wise("\n ", texts, "")
        lists = pa.ListArray.from_arrays(offsets, pc.fill_null(texts, "null"))
        check(sizes(lists) + len(separator) * counts.to_numpy() + 2, len(array))
        made = pc.binary_join_element_wise("[", pc.binary_join(lists, separator), "]", "")
        if lines:
            made = pc.replace_substring_regex(made, r"^\[\n ", "[")
        return _shallow(pc.if_else(pa.array(valid(array)), made, pa.scalar(None, pa.string())))

    return run


def _row(members: Sequence[tuple[str, int, Kernel]], colon: str, comma: str) -> Kernel:
    """Objects of rows. `members`: the key, the place in the row and the printer of each."""

    @on_arrays
    def run(rows: Any) -> Any:
        parts = rows.flatten()
        texts = []
        for name, place, printed in members if len(rows) else ():
            text = pc.fill_null(printed(parts[place]), "null")
            texts.append(pc.binary_join_element_wise(f"{encode_basestring(name)}{colon}", text, ""))
        check(sum((sizes(one) + len(comma) for one in texts), np.full(len(rows), 2, np.int64)), len(rows))
        inner = pc.binary_join_element_wise(*texts, comma) if texts else pa.array([""] * len(rows), pa.string())
        made = pc.binary_join_element_wise("{", inner, "}", "")
        return _shallow(pc.if_else(pa.array(valid(rows)), made, pa.scalar(None, pa.string())))

    return run


def _checked(text: str) -> str:
    """A text that was put together from others, if it is not nested too deeply."""
    return checked(text) if text.count("[") + text.count("{") > DEPTH else text


_shallow = of_json(_checked, pa.string())(Call("to_jsonb", (), TEXT))


def _build_array(*items: str | None) -> str:
    return _assembled(["null" if item is None else item for item in items], "[", "]")


def _assembled(parts: Sequence[str], start: str, end: str, between: str = ", ") -> str:
    if sum(map(len, parts)) > VALUE_BYTES:
        raise Bad(f"the result would be longer than {VALUE_BYTES:,} bytes")
    return _checked(f"{start}{between.join(parts)}{end}")


def _object(members: Mapping[str, str | None]) -> str:
    """The object of keys and the texts of their values."""
    return _assembled([f"{encode_basestring(key)}: {members[key] or 'null'}" for key in sorted(members, key=key_order)],
                      "{", "}")  # fmt: skip


def _build_object(*items: str | None) -> str:
    members = {}
    for place, (key, value) in enumerate(zip(items[::2], items[1::2], strict=True)):
        if key is None:
            raise Bad(f"argument {2 * place + 1}: key must not be null")
        members[key] = value
    return _object(members)


def _of_texts(keys: Sequence[str | None], *values: Sequence[str | None]) -> str:
    return _object({key: None if value is None else encode_basestring(value)
                    for key, value in _keys_and_values(keys, *values)})


def _keys_and_values(keys: Sequence[str | None], *values: Sequence[str | None]) -> list[tuple[str, str | None]]:
    if values and len(keys) != len(values[0]):
        raise Bad("mismatched array dimensions")
    if not values and len(keys) % 2:
        raise Bad("array must have even number of elements")
    found = zip(keys, values[0], strict=True) if values else zip(keys[::2], keys[1::2], strict=True)
    made = []
    for key, value in found:
        if key is None:
            raise Bad("null value not allowed for object key")
        made.append((key, value))
    return made


def _json_object(between: str, after: str, *items: str | None) -> str:
    """The json of keys and the texts of their values; keys may come twice."""
    parts = []
    for place, (key, value) in enumerate(zip(items[::2], items[1::2], strict=True)):
        if key is None:
            raise Bad(f"argument {2 * place + 1} cannot be null")
        parts.append(f"{encode_basestring(key)}{after}{'null' if value is None else value}")
    return _assembled(parts, "{", "}", between)


def _json_of_texts(keys: Sequence[str | None], *values: Sequence[str | None]) -> str:
    found = _keys_and_values(keys, *values)
    return _assembled([f"{encode_basestring(key)} : {'null' if value is None else encode_basestring(value)}"
                       for key, value in found], "{", "}")  # fmt: skip


def _pair(key: str | None, value: str | None) -> str | None:
    """A member of the object of json_object_agg."""
    return None if key is None else f"{encode_basestring(key)} : {'null' if value is None else value}"


def _json_of_pairs(pairs: Sequence[str | None]) -> str:
    made = [pair for pair in pairs if pair is not None]
    if len(made) < len(pairs):
        raise Bad("field name must not be null")
    return _assembled(made, "{ ", " }")


def _of_pairs(pairs: Sequence[str]) -> str:
    """The object of jsonb_object_agg, from arrays of a key and a value."""
    members = {}
    for pair in pairs:
        found = value_of(pair)
        assert isinstance(found, list)
        key, value = found
        if not isinstance(key, str):
            raise Bad("field name must not be null")
        members[key] = written(value)
    return _object(members)


def _to_json(expr: Call) -> Kernel:
    """The kernel of to_json of a value, and a constant: what is between the elements of an array."""
    separator = str(expr.args[1].value) if len(expr.args) > 1 and isinstance(expr.args[1], Literal) else ","
    lines = separator == LINES
    kernel = to_json(expr.args[0].type, ", " if lines else separator, lines)
    return lambda value, *_: kernel(value)


JSON_MADE: dict[str, Callable[[Call], Kernel]] = {
    "to_jsonb": lambda expr: to_jsonb(expr.args[0].type),
    "jsonb_build_array": of_json(_build_array, pa.string(), nulls=True),
    "jsonb_build_object": of_json(_build_object, pa.string(), nulls=True),
    "jsonb_object": of_json(_of_texts, pa.string()),
    "jsonb of pairs": of_json(_of_pairs, pa.string()),
    "to_json": _to_json,
    "json_build_array": of_json(_build_array, pa.string(), nulls=True),
    "json object": of_json(_json_object, pa.string(), nulls=True),
    "json_object": of_json(_json_of_texts, pa.string()),
    "json in line": lambda _: lambda value: value,
    "json pair": of_json(_pair, pa.string(), nulls=True),
    "json of pairs": of_json(_json_of_pairs, pa.string()),
}
