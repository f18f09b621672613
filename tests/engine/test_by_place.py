"""Sums by places: the same as by hashing, and no key is hashed where they apply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import by_place
from halfjoin.engine.reduce.by_place import numbers_of, summed

TYPES = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.string())


def key(random: np.random.Generator, length: int, type: pa.DataType, far: bool) -> pa.Array:
    low, high = (-128, 128) if type == pa.int8() else (-30_000, 30_000)
    values = random.integers(low, high, length) if far else random.integers(-3, 4, length)
    gone = random.random(length) < random.choice([0.0, 0.2, 1.0], p=[0.5, 0.4, 0.1])
    if type == pa.string():
        return pa.array([f"k{number}" for number in values.tolist()], pa.string(), mask=gone)
    return pa.array(values.astype(np.int32), mask=gone).cast(pa.int32()).cast(type)


def by_hand(keys: list[list[pa.Array]], added: list[list[Any]]) -> dict[Any, Any]:
    found: dict[Any, list[int]] = {}
    for number, piece in enumerate(keys):
        for row, group in enumerate(zip(*(one.to_pylist() for one in piece), strict=True)):
            totals = found.setdefault(group, [0] * len(added))
            for part, parts in enumerate(added):
                adds = parts[number]
                totals[part] += adds if isinstance(adds, int) else int(adds[row])
    return found


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("far", [False, True])
def test_sums_are_those_of_groups(seed: int, far: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_place, "_FROM", 1)
    monkeypatch.setattr(by_place, "_OFTEN", 1)
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 200, random.integers(1, 4)).tolist()
    types = random.choice(np.array(TYPES, object), random.integers(1, 4)).tolist()
    keys = [[key(random, length, type, far) for type in types] for length in lengths]
    added: list[list[Any]] = [[1] * len(lengths), [int(random.integers(-2, 3)) for _ in lengths],
                              [random.integers(-(1 << 40), 1 << 40, length) for length in lengths]]  # fmt: skip
    found, numbers = summed(keys, added), numbers_of([*zip(*keys, strict=True)])
    assert numbers is not None
    if found is None:
        assert numbers.count > sum(lengths)
        return
    groups, sums = found
    assert [one.type for one in groups] == types
    by_group = zip(*(one.to_pylist() for one in groups), strict=True)
    made = [*zip(by_group, map(list, zip(*(one.tolist() for one in sums), strict=True)), strict=True)]
    assert len(made) == len(dict(made))
    assert dict(made) == by_hand(keys, added)


def test_combinations_without_a_number_are_hashed() -> None:
    whole = pa.array([-(1 << 62), 1 << 62])
    assert numbers_of([[whole], [whole]]) is None
    assert numbers_of([[pa.array([f"k{number}" for number in range(2000)])]]) is None  # many texts
    assert numbers_of([[pa.array([1.5] * 2000)]]) is None
    assert numbers_of([]) is None
    assert summed([[pa.array([1, 2])]], [[1]]) is None  # too few to be worth it


@pytest.mark.parametrize("keys", ["k", "k, m", "d", "x, k"])
def test_no_key_is_hashed_where_they_have_places(keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint, m integer, d date, x text, v bigint)")
    numbers = np.arange(20_000)
    rows = {"k": numbers // 4, "m": pa.array(numbers // 4 % 2, pa.int32()), "v": numbers,
            "d": pa.array((numbers // 8).astype(np.int32)).cast(pa.date32()),
            "x": pa.array(["even", "odd"]).take(pa.array(numbers // 4 % 2))}  # fmt: skip
    engine.apply({"t": pa.table(rows)})

    def hashed(*_: object, **__: object) -> None:
        raise AssertionError("keys are hashed")

    monkeypatch.setattr(pa.TableGroupBy, "aggregate", hashed)
    found = engine.query(f"SELECT sum(n) AS n, sum(s) AS s, count(*) AS groups FROM "
                         f"(SELECT {keys}, count(*) AS n, sum(v) AS s FROM t GROUP BY {keys}) AS x")  # fmt: skip
    assert found.to_pylist() == [{"n": 20_000, "s": sum(range(20_000)), "groups": 2_500 if keys == "d" else 5_000}]
