"""Bins of a constant length, for a whole column, are those of each moment alone."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from halfjoin.engine.scalar import compile
from halfjoin.sql.expr import Column, Literal
from halfjoin.sql.functions import resolve
from halfjoin.sql.functions.calendar import Far
from halfjoin.sql.types import INTERVAL, TIMESTAMP

DAY = 86_400_000_000


@pytest.mark.parametrize("seed", range(6))
def test_bins_of_a_column_are_those_of_each_moment(seed: int) -> None:
    pick = random.Random(seed)
    for _ in range(60):
        some_days = pick.randint(2, 400), pick.randint(-DAY, DAY)
        size = pick.choice([(0, 1), (0, 10**6 * pick.randint(1, 10**5)), some_days])
        origin = pick.choice([0, 10**15, -(10**16), pick.randint(-2 * 10**17, 9 * 10**18)])
        moments = [pick.choice([None, pick.randint(-2 * 10**17, 9 * 10**18), pick.randint(-(10**16), 10**16)])
                   for _ in range(5)]  # fmt: skip
        stride, start = Literal((0, *size), INTERVAL), Literal(Far(origin), TIMESTAMP)
        call = resolve("date_bin", (stride, Column("m", TIMESTAMP), start))
        found = compile(call).evaluate({"m": _moments(moments)}, 5)
        assert found.failures is None
        assert found.values.view(pa.int64()).to_pylist() == [_bin(one, origin, size) for one in moments]


def _moments(values: list[int | None]) -> pa.Array:
    return pa.array(values, pa.int64()).view(pa.timestamp("us"))


def _bin(moment: int | None, origin: int, size: tuple[int, int]) -> int | None:
    return None if moment is None else moment - (moment - origin) % (size[0] * DAY + size[1])
