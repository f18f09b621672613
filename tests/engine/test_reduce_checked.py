"""Of a table with a PRIMARY KEY a reduce does not look up again what a batch takes; its answers stay right."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import halfjoin as hj
from halfjoin.engine.reduce import around, front

VIEWS = {
    "least": "SELECT g, min(x) AS y FROM t GROUP BY g",
    "most": "SELECT g, max(x) AS y FROM t GROUP BY g",
    "median": "SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY x) AS y FROM t GROUP BY g",
    "top": "SELECT id AS g, x AS y FROM t ORDER BY x DESC NULLS LAST, id LIMIT 5",
}
ROWS = 1_500  # of each of two groups; smaller groups are looked up whole


def answers(rows: dict[int, tuple[int, int | None]]) -> dict[str, list[tuple[int, int | None]]]:
    groups = {g: sorted(x for other, x in rows.values() if other == g and x is not None) for g in (0, 1)}
    top = sorted(rows, key=lambda id: (rows[id][1] is None, -(rows[id][1] or 0), id))[:5]
    return {
        "least": [(g, found[0]) for g, found in groups.items()],
        "most": [(g, found[-1]) for g, found in groups.items()],
        "median": [(g, found[(len(found) + 1) // 2 - 1]) for g, found in groups.items()],
        "top": sorted((id, rows[id][1]) for id in top),
    }  # fmt: skip


def told(engine: hj.Engine) -> dict[str, list[tuple[int, int | None]]]:
    return {name: sorted((row["g"], row["y"]) for row in engine.read(name).to_pylist()) for name in VIEWS}


@pytest.mark.parametrize("seed", range(6))
def test_checked_rows_are_not_looked_up_again(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    rows: dict[int, tuple[int, int | None]] = {
        id: (id % 2, None if rng.random() < 0.05 else rng.randrange(4_000)) for id in range(2 * ROWS)
    }
    engine = hj.Engine(tmp_path / "w", retain=rng.choice([0, 100]), clock="own")
    engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, g integer, x integer)")
    engine.apply({"t": [{"id": id, "g": g, "x": x} for id, (g, x) in rows.items()]}, time=1)
    for name, sql in VIEWS.items():
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")

    def never(*_: object) -> None:
        raise AssertionError("what a batch takes is looked up again")

    monkeypatch.setattr(front, "_are_there", never)
    monkeypatch.setattr(around._Search, "_refuse", never)
    time = 1
    for batch in range(12):
        changes: list[dict[str, int | None]] = []
        edge = sorted(rows, key=lambda id: rows[id][1] or 0)
        chosen = {rng.choice([rng.choice(edge), edge[0], edge[-1], edge[len(edge) // 2]]) for _ in range(3)}
        for number, id in enumerate(sorted(chosen)):
            at = time + rng.randint(1, 3)
            changes.append({"id": id, "g": rows[id][0], "x": rows[id][1], "__diff": -1, "__time": at})
            del rows[id]
            again, value = (id if rng.random() < 0.7 else 10_000 + 10 * batch + number), rng.randrange(4_000)
            rows[again] = (rng.randrange(2), value)
            changes.append({"id": again, "g": rows[again][0], "x": value, "__diff": 1, "__time": at})
        engine.apply({"t": changes}, close=False)
        time += 3
        engine.advance(to=time + 1)
        assert told(engine) == answers(rows)
        if rng.random() < 0.2:
            engine.close()
            engine = hj.Engine(tmp_path / "w")
    engine.close()
