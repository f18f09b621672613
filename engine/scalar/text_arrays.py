"""Kernels from text to arrays of text, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.bounds import Sizes, check, lengths, sizes
from halfjoin.engine.scalar.casts_text import part_text
from halfjoin.engine.scalar.each import each
from halfjoin.engine.scalar.values import Datum, Kernel, call, on_arrays, raw, valid
from halfjoin.sql.expr import Call, Literal

_TEXTS = pa.list_(pa.string())
_join = call("binary_join")
_length = call("list_value_length")


def _string_to_array(expr: Call) -> Kernel:
    constants = [arg.value for arg in expr.args[1:] if isinstance(arg, Literal)]
    if len(constants) < len(expr.args) - 1 or not constants[0]:
        return each(_parts, _TEXTS, nulls=True)
    split = call("split_pattern", pc.SplitPatternOptions(constants[0]))
    null = constants[1] if len(constants) > 1 else None
    nothing = pa.scalar([], _TEXTS)

    @on_arrays
    def run(a: Any, *_: Any) -> Datum:
        parts = pc.if_else(pc.equal(a, ""), nothing, split(a))
        if null is None:
            return parts
        values = pc.if_else(pc.equal(parts.values, null), pa.scalar(None, pa.string()), parts.values)
        return pa.ListArray.from_arrays(parts.offsets, values, mask=parts.is_null())

    return run


def _parts(text: str | None, separator: str | None, null: str | None = None) -> list[str | None] | None:
    """The parts of a text; its characters if the separator is NULL."""
    if text is None:
        return None
    parts = [] if not text else list(text) if separator is None else text.split(separator) if separator else [text]
    return [None if part == null else part for part in parts]


def _array_to_string(expr: Call) -> Kernel:
    element = expr.args[0].type.element
    assert element is not None
    printed = part_text(element)

    @on_arrays
    def run(array: Any, separator: Any, null: Any = None) -> Datum:
        lists = pa.ListArray.from_arrays(*_offsets(array), mask=array.is_null() if array.null_count else None)
        texts = printed(lists.values) if len(lists.values) else pa.nulls(0, pa.string())  # a printer wants rows
        rows = np.repeat(np.arange(len(lists)), np.where(valid(lists), raw(_length(lists)), 0))
        if null is not None:
            texts = pc.coalesce(texts, null.take(pa.array(rows)))
        given = valid(texts)
        rows, texts = rows[given], texts.filter(pa.array(given))
        counts = np.bincount(rows, minlength=len(lists))
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        size: Sizes = np.bincount(rows, sizes(texts), len(lists)).astype(np.int64) + counts * lengths(_bytes(separator))
        check(size, len(lists))
        made = _join(pa.ListArray.from_arrays(offsets, texts), separator)
        return pc.if_else(array.is_valid(), made, pa.scalar(None, pa.string()))

    return run


_bytes = call("binary_length")


def _offsets(array: Any) -> tuple[Any, Any]:
    """The offsets and the elements of lists, from 0 and without elements of NULL lists."""
    counts = np.where(valid(array), raw(_length(array)), 0)
    return pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)), array.flatten()


TEXT_ARRAYS: dict[str, Callable[[Call], Kernel]] = {
    "string_to_array": _string_to_array,
    "array_to_string": _array_to_string,
}
