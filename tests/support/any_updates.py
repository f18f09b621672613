"""Columns and updates of any types, for tests that compare kernels with NumPy and Arrow."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from halfjoin.engine.kernels import native
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Updates, constant

SEEDS = st.integers(0, 10**9)
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, MAXIMUM, MINIMUM],
    pa.int32(): [0, 7, -(2**31)],
    pa.int16(): [3, -3],
    pa.bool_(): [True, False],
    pa.date32(): [0, 19_000],
    pa.timestamp("us"): [0, 1 << 50],
    pa.float64(): [0.0, -0.0, float("nan"), 1.5, float("inf")],
    pa.float32(): [0.0, -0.0, float("nan"), 0.25],
    pa.decimal128(12, 2): [Decimal("1.50"), Decimal("-3.25")],
    pa.decimal256(60, 1): [Decimal("10") ** 50, Decimal("-0.5")],
    pa.month_day_nano_interval(): [(1, 0, 0), (0, 30, 0)],
    pa.string(): ["", "a", "ab", "é", "x" * 40],
    pa.large_string(): ["", "a"],
    pa.binary(): [b"", b"\0", b"\xff"],
}


def both(run: Callable[[], Any]) -> tuple[Any, Any]:
    """The result with kernels, and without."""
    with native.used(True):
        fast = run()
    with native.used(False):
        return fast, run()


def some_columns(random: np.random.Generator, length: int, most: int = 3) -> list[pa.Array]:
    """Columns of any types with few distinct values, some with NULLs, some of them slices of longer ones."""
    columns = []
    kinds = list(VALUES)
    for _ in range(random.integers(1, most + 1)):
        kind = kinds[random.integers(len(kinds))]
        values = [*VALUES[kind], *([None] if random.random() < 0.5 else [])]
        before = int(random.integers(0, 4))
        picked = [values[i] for i in random.integers(0, len(values), length + before)]
        columns.append(pa.array(picked, kind).slice(before))
    return columns


def some_updates(random: np.random.Generator, columns: list[pa.Array], length: int) -> Updates:
    times = np.array([0, 1, 2, MAXIMUM - 1], np.int64)[random.integers(0, 4, length)]
    if random.random() < 0.3:
        times = constant(5, length)
    most = [2, 2, 1 << 62][random.integers(3)]
    diffs = random.integers(-most, most, length)
    return Updates({f"c{i}": column for i, column in enumerate(columns)}, times, diffs)
