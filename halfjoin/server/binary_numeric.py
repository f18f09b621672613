"""PostgreSQL's binary format of numerics: digits to the base 10,000, made from their texts with numpy.

A value is four 16-bit numbers (how many digits, the weight of the first one, the sign, the decimals to show), then the
digits, without zeros at either end.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.values import raw

_SIGNS = {"NaN": 0xC000, "Infinity": 0xD000, "-Infinity": 0xF000}
_NEGATIVE = 0x4000
_GROUP = 4  # decimal digits in one digit to the base 10,000


def numeric_values(texts: pa.Array) -> pa.Array:
    """Texts of numerics, such as `-12.50`, in the binary format. NULL stays NULL."""
    given = pc.fill_null(texts.cast(pa.string()), "0")
    special = pc.is_in(given, pa.array(list(_SIGNS)))
    plain = pc.if_else(special, "0", given)
    negative = raw(pc.starts_with(plain, "-").cast(pa.uint8())).astype(bool)
    plain = pc.utf8_ltrim(plain, "-")
    pointed = pc.if_else(pc.match_substring(plain, "."), plain, pc.binary_join_element_wise(plain, "", "."))
    parts = pc.split_pattern(pointed, ".")
    whole, decimals = pc.list_element(parts, 0), pc.list_element(parts, 1)
    scales = raw(pc.binary_length(decimals)).astype(np.int64)
    left = -(-int(pc.max(pc.binary_length(whole)).as_py() or 0) // _GROUP) * _GROUP
    right = -(-int(scales.max(initial=0)) // _GROUP) * _GROUP
    padded = pc.binary_join_element_wise(pc.ascii_lpad(whole, left, "0"), pc.ascii_rpad(decimals, right, "0"), "")
    rows, groups = len(texts), (left + right) // _GROUP
    chars = np.frombuffer(padded.cast(pa.binary(left + right)).buffers()[1], np.uint8)[: rows * (left + right)]
    digits = (chars.reshape(rows, groups, _GROUP) - ord("0")) @ np.array([1000, 100, 10, 1], np.int64)
    there = digits != 0
    some = there.any(axis=1)
    first = np.where(some, there.argmax(axis=1), 0)
    end = np.where(some, groups - there[:, ::-1].argmax(axis=1), 0)
    places = np.arange(groups)
    shown = (places >= first[:, None]) & (places < end[:, None])
    heads = np.zeros((rows, 4), ">u2")
    heads[:, 0] = end - first
    heads[:, 1] = np.where(some, left // _GROUP - 1 - first, 0) & 0xFFFF
    heads[:, 2] = np.where(negative & some, _NEGATIVE, 0)
    heads[:, 3] = scales
    for word, sign in _SIGNS.items():
        heads[raw(pc.equal(given, word).cast(pa.uint8())).astype(bool)] = (0, 0, sign, 0)
    body = digits[shown].astype(">i2").tobytes()
    offsets = np.concatenate([[0], np.cumsum(2 * (end - first))]).astype(np.int32)
    bodies = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(body)])
    head = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), rows, [None, pa.py_buffer(heads.tobytes())])
    made = pc.binary_join_element_wise(head.cast(pa.binary()), bodies, b"")
    return pc.if_else(texts.is_valid(), made, pa.scalar(None, pa.binary()))
