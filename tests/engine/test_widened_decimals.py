"""Decimals with more digits before the point are the same words: equal to Arrow's cast, and not copied."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from halfjoin.engine.scalar.widened import widened

VALUES = [Decimal("1.50"), None, Decimal("-7.25"), Decimal("99999.99"), Decimal("0.00")]
TYPES = [pa.decimal128(7, 2), pa.decimal128(38, 2), pa.decimal128(20, 9), pa.decimal256(50, 2)]


@pytest.mark.parametrize("type", TYPES, ids=str)
@pytest.mark.parametrize("given", [pa.array(VALUES, TYPES[0]), pa.array(VALUES, TYPES[0]).slice(1, 3),
                                   pa.scalar(VALUES[0], TYPES[0]), pa.scalar(None, TYPES[0])])  # fmt: skip
def test_a_widened_decimal_is_the_cast_one(given: Any, type: pa.DataType) -> None:
    assert widened(given, type).equals(given.cast(type))


def test_the_words_are_the_same() -> None:
    given = pa.array(VALUES, TYPES[0])
    assert widened(given, TYPES[1]).buffers()[1].address == given.buffers()[1].address
