"""Sums of a few updates in Python's integers, and sums by kernels, are kept as the same bytes as the sums of many."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from halfjoin.engine.reduce.aggregates import _sum
from halfjoin.engine.reduce.few import FEW, Few
from halfjoin.engine.reduce.law import moments_of
from halfjoin.engine.reduce.lifted import lift, lift_change
from halfjoin.engine.scalar import kept
from halfjoin.engine.updates.updates import Updates
from halfjoin.planner.group_functions import Aggregates, Sums
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT, BYTEA, DOUBLE, numeric
from tests.support.kernels import both_ways  # noqa: F401

ARGS = {"x": BIGINT, "f": DOUBLE, "d": numeric(38, 2)}
PARTS = [("count", "x"), ("count", "xf"), ("integers", "x"), ("integers", "d"), ("floats", "f"),
         ("integer products", "xd"), ("integer products", "xx"), ("float products", "ff")]  # fmt: skip
COUNT = Column("n", BIGINT)
FUNCTION = Aggregates(COUNT, tuple(
    Sums(Column(f"s{number}", BIGINT if kind == "count" else BYTEA), kind, tuple(Column(x, ARGS[x]) for x in args))
    for number, (kind, args) in enumerate(PARTS)), ())  # fmt: skip
EVERY = (Sums(COUNT, "count", ()), *FUNCTION.sums)


def value(rng: random.Random, name: str, odd: bool) -> Any:
    if rng.random() < 0.2:
        return None
    if name == "f":
        return rng.choice([0.0, -0.0, 1.5, 5e-324, -2.0**1000, 0.1, *([float("nan"), float("inf")] if odd else [])])
    number = rng.choice([0, 1, -1, 255, -256, 2**31, 2**63 - 1, -(2**63), rng.randrange(-(10**9), 10**9)])
    return number if name == "x" else Decimal(number * rng.choice([1, 10**15])) / 100


@pytest.mark.parametrize("seed", range(60))
def test_sums_of_a_change_are_kept_as_all_are(seed: int) -> None:
    rng = random.Random(seed)
    length, odd, always = rng.randint(1, FEW if seed % 2 else 3 * FEW), rng.random() < 0.2, rng.random() < 0.2
    updates = Updates({
        "k": pa.array([rng.choice([1, 2, None]) for _ in range(length)], pa.int64()),
        "x": pa.array([value(rng, "x", odd) for _ in range(length)], pa.int64()),
        "f": pa.array([value(rng, "f", odd) for _ in range(length)], pa.float64()),
        "d": pa.array([value(rng, "d", odd) for _ in range(length)], pa.decimal128(38, 2)),
    }, np.array([rng.randint(1, 3) for _ in range(length)]), np.array([rng.choice([1, -1, 3]) for _ in range(length)])
    )  # fmt: skip
    keys = [] if always else ["k"]
    moments = moments_of(updates, keys, always=always)
    few, many = lift_change(FUNCTION, keys, updates), lift(FUNCTION, keys, updates)
    assert any(isinstance(part, Few) for part in few.parts) is (length <= FEW)
    old: dict[str, pa.Array] | None = None
    if not always and rng.random() < 0.7:  # some groups were there before; now and then with NaN among their values
        next = pa.array(np.flatnonzero(moments.was) + 1)
        old = {part.column.name: _sum(part, n, many, moments, None).take(next) for n, part in enumerate(EVERY)}
        if rng.random() < 0.3:
            old = {name: pa.array([None, *one.to_pylist()[1:]], one.type) for name, one in old.items()}
    for number, part in enumerate(EVERY):
        found, expected = (_sum(part, number, one, moments, old) for one in (few, many))
        assert found.equals(expected), part.kind


def test_a_few_updates_add_to_a_sum_with_nan() -> None:
    """What was kept has NaN among its values, so the sum goes the way of many."""
    columns = {"k": pa.array([1]), "x": pa.array([1]), "f": pa.array([1.0]), "d": pa.array([1], pa.decimal128(38, 2))}
    updates = Updates(columns, np.array([1]), np.array([1]))
    moments = moments_of(updates, ["k"])
    nan = lift(FUNCTION, ["k"], updates.with_columns({"f": pa.array([float("nan")])}))
    place = [kind for kind, _ in PARTS].index("floats") + 1
    old = {f"s{place - 1}": nan.totals[place].kept()}
    part = FUNCTION.sums[place - 1]
    few, many = lift_change(FUNCTION, ["k"], updates), lift(FUNCTION, ["k"], updates)
    assert any(isinstance(one, Few) for one in few.parts)
    assert _sum(part, place, few, moments, old).equals(_sum(part, place, many, moments, old))


@pytest.mark.parametrize("number", [0, 1, -1, 127, 128, -128, -129, 2**31, -(2**32), 2**63, 2**64 - 1, -(3 << 1073)])
def test_numbers_have_the_same_bytes_alone(number: int) -> None:
    assert kept.exact(kept.bytes_of(number)) == number
    numbers, _ = kept.read(pa.array([kept.bytes_of(number)] * 17, pa.binary()))
    assert kept.kept(numbers)[0].as_py() == kept.bytes_of(number)
