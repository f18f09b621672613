"""Decimals as decimals with more digits before the point. Their words are the same, so nothing is copied."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.scalar.values import Datum


def widened(datum: Datum, type: Any) -> Datum:
    """A datum as one of a type that holds all its values."""
    given = datum.type
    if given == type:
        return datum
    same = pt.is_decimal128(given) and pt.is_decimal128(type) and given.scale == type.scale
    if not same or given.precision > type.precision or not isinstance(datum, pa.Array):
        return datum.cast(type)
    return pa.Array.from_buffers(type, len(datum), datum.buffers(), offset=datum.offset)
