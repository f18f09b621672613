"""Values as texts that order as the values do, byte by byte (C collation): for SEARCH of WITH RECURSIVE.

A number, date or time becomes the 20 digits of each 64-bit word of it, counted from the least one. Of floats, NaN is
the greatest, and -0 is 0. An array is the texts of its elements between marks: a prefix comes before what it begins,
and a NULL element after all others.

>>> import pyarrow as pa
>>> texts = order_text(pa.array([2.5, float("nan"), -1.0, None, 10.0]))
>>> sorted(range(5), key=lambda n: texts[n].as_py() or "~")
[2, 0, 4, 1, 3]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.scalar.values import on_arrays, raw, valid

_SIGN = np.uint64(1 << 63)
_END, _ELEMENT, _NULL = "0", "1", "2"  # marks in an array
_AFTER = "\x01"  # after an element; below all that a text has there


@on_arrays
def order_text(column: Any) -> Any:
    """The texts of a column."""
    made = _lists(column) if pt.is_list(column.type) else _texts(column)
    return pc.if_else(pc.is_valid(column), made, pa.scalar(None, pa.string()))


def _texts(column: Any) -> Any:
    kind = column.type
    if pt.is_string(kind) or pt.is_large_string(kind):
        return column.cast(pa.string())
    if pt.is_boolean(kind):
        return column.cast(pa.string())  # false, true
    if not len(column):
        return pa.array([], pa.string())
    if pt.is_floating(kind):
        values = raw(column).astype(np.float64) + 0.0
        bits = np.where(np.isnan(values), np.nan, values).view(np.uint64)
        return _digits(np.where(bits & _SIGN, ~bits, bits | _SIGN))
    if pt.is_decimal(kind):
        parts = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, 2)[column.offset :][: len(column)]
        return pc.binary_join_element_wise(_digits(parts[:, 1] ^ _SIGN), _digits(parts[:, 0]), "")
    return _digits(raw(column).astype(np.int64).view(np.uint64) ^ _SIGN)


def _digits(words: NDArray[np.uint64]) -> Any:
    return pc.utf8_lpad(pa.array(words).cast(pa.string()), 20, "0")


def _lists(column: Any) -> Any:
    elements = column.flatten()
    texts = _texts(elements).fill_null("")
    for found, instead in (("\x02", "\x02\x02"), (_AFTER, "\x02\x01")):  # what may stand for the mark in a text
        texts = pc.replace_substring(texts, found, instead)
    marked = pc.binary_join_element_wise(_ELEMENT, texts, _AFTER, "")
    marked = pc.if_else(pa.array(valid(elements)), marked, _NULL)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), marked), "")
    return pc.binary_join_element_wise(joined, _END, "")
