"""Foreign keys hold for every row with a positive count, whatever other rows have negative counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

import halfjoin as hj

STEPS = 60


def _dangles(parents: list[tuple[int, int, int]], children: list[tuple[int, int, int, int]], end: int) -> bool:
    """Whether some row of `children` refers to nothing, at some time."""
    for time in range(end + 1):
        keys, rows = Counter[int](), Counter[tuple[int, int]]()
        for k, at, diff in parents:
            keys[k] += diff * (at <= time)
        for k, v, at, diff in children:
            rows[k, v] += diff * (at <= time)
        if any(count > 0 and keys[k] <= 0 for (k, _), count in rows.items()):
            return True
    return False


@pytest.mark.parametrize("seed", range(6))
def test_no_positive_row_refers_to_nothing(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    engine = hj.Engine(tmp_path / "w", clock="own")
    engine.execute("CREATE TABLE p (k integer PRIMARY KEY); CREATE TABLE c (v integer, k integer REFERENCES p)")
    parents: list[tuple[int, int, int]] = []
    children: list[tuple[int, int, int, int]] = []
    outcomes = Counter[str]()
    for time in range(1, STEPS):
        now = Counter[int]()
        for k, at, diff in parents:
            now[k] += diff * (at <= time)
        k = random.randint(0, 2)
        some = [(random.randint(0, 2), random.randint(0, 1), time + random.choice([0, 0, 2]), random.choice([1, 1, -1]))
                for _ in range(random.randint(0, 2))]  # fmt: skip
        more = [(k, time, -1 if now[k] else 1)] if random.random() < 0.6 else []
        batch = {"c": [{"k": key, "v": v, "__time": at, "__diff": diff} for key, v, at, diff in some],
                 "p": [{"k": key, "__time": at, "__diff": diff} for key, at, diff in more]}  # fmt: skip
        broken = _dangles(parents + more, children + some, STEPS + 5)
        try:
            engine.apply(batch, time=time, close=False)
        except hj.InvalidRow as error:
            assert error.sqlstate == "23503" and broken, (seed, batch, str(error))
            outcomes["refused"] += 1
        else:
            assert not broken, (seed, batch)
            parents, children = parents + more, children + some
            outcomes["taken"] += 1
        hidden = Counter[int]()
        for key, _, _, diff in children:
            hidden[key] += diff
        outcomes["hidden"] += any(total <= 0 for total in hidden.values())
        engine.advance(time + 1)
        if time % 20 == 0:
            engine.close()
            engine = hj.Engine(tmp_path / "w")
    engine.close()
    assert min(outcomes["refused"], outcomes["taken"], outcomes["hidden"]) > 2, outcomes
