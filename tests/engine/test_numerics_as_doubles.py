"""Numerics become the nearest doubles, whether a division finds them or their texts; and few digits need no texts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from halfjoin.engine.scalar import casts, compile
from halfjoin.sql.expr import Cast, Column
from halfjoin.sql.types import DOUBLE, REAL, numeric


def cast(values: list[Decimal | None], precision: int, scale: int, to: Any = DOUBLE) -> list[float | None]:
    column = pa.array([None, *values], pa.decimal128(precision, scale)).slice(1)
    made = compile(Cast(Column("a", numeric(precision, scale)), to)).evaluate({"a": column}, len(column))
    assert made.failures is None
    found: list[float | None] = made.values.to_pylist()
    return found


@pytest.mark.parametrize("seed", range(6))
def test_numerics_become_the_nearest_doubles(seed: int) -> None:
    random = np.random.default_rng(seed)
    for scale in (0, 1, 2, 7, 15, 22, 23, 30):
        bits = int(random.choice([10, 52, 53, 54, 62]))
        ends = [0, 1, -1, (1 << 53) - 1, 1 << 53, -(1 << 53), (1 << 53) + 1][: 7 if bits > 53 else 4]
        numbers = [*ends, *random.integers(-(1 << bits), 1 << bits, 300).tolist()]
        values: list[Decimal | None] = [None if random.random() < 0.1 else Decimal(int(number)).scaleb(-scale)
                                        for number in numbers]  # fmt: skip
        expected = [None if value is None else float(value) for value in values]
        assert list(map(repr, cast(values, 38, scale))) == list(map(repr, expected)), scale
        reals = [None if value is None else float(np.float32(str(value))) for value in values]
        assert cast(values, 38, scale, REAL) == reals


def test_few_digits_need_no_texts() -> None:
    values: list[Decimal | None] = [Decimal(number).scaleb(-2) for number in range(-500, 500)]
    with patch.object(casts, "_is_inf", side_effect=AssertionError):
        assert cast(values, 15, 2) == [number / 100 for number in range(-500, 500)]
