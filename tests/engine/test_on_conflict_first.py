"""ON CONFLICT: over several keys DO NOTHING inserts what one insertion after the other would; a key may have WHERE."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import halfjoin as hj
from halfjoin.engine.statements.conflicting import NONE, ROUNDS, _first


def _one_by_one(numbers: list[list[int]], there: list[bool]) -> list[bool]:
    taken: list[set[int]] = [set() for _ in numbers]
    kept = []
    for row, gone in enumerate(there):
        keys = [one[row] for one in numbers]
        kept.append(not gone and not any(key in seen for key, seen in zip(keys, taken, strict=True)))
        for key, seen in zip(keys, taken, strict=True):
            if kept[-1] and key != NONE:
                seen.add(key)
    return kept


@pytest.mark.parametrize("seed", range(300))
def test_rows_go_in_as_one_after_the_other(seed: int) -> None:
    random = Random(seed)
    rows, keys = random.randint(0, 60), random.randint(0, 3)
    numbers = [[random.randint(-1, random.choice([3, 20, 60])) for _ in range(rows)] for _ in range(keys)]
    there = [random.random() < 0.2 for _ in range(rows)]
    found = _first([np.array(one, np.int64) for one in numbers], np.array(there, np.bool_))
    assert found.tolist() == _one_by_one(numbers, there)


def test_a_long_chain_is_decided() -> None:
    count = 10 * ROUNDS
    numbers = [[row // 2 for row in range(count)], [(row + 1) // 2 for row in range(count)]]
    found = _first([np.array(one, np.int64) for one in numbers], np.zeros(count, np.bool_))
    assert found.tolist() == _one_by_one(numbers, [False] * count)


def test_the_condition_of_a_key_says_nothing_as_each_key_covers_all_rows() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE k (id integer PRIMARY KEY, n integer); SET TIME = 1; INSERT INTO k VALUES (1, 1)")
    engine.execute("SET TIME = 2; INSERT INTO k VALUES (1, 5), (2, 0) ON CONFLICT (id) WHERE n > 3 "
                   "DO UPDATE SET n = excluded.n")  # fmt: skip
    assert sorted(map(tuple, (row.values() for row in engine.read("k").to_pylist()))) == [(1, 5), (2, 0)]
