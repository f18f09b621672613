"""Min, max and LIMIT read the first rows of large groups, and answer as if they had looked up the whole groups."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange import merging, netting
from halfjoin.engine.arrange import run as runs_module
from halfjoin.engine.reduce import front, reading, seen

VIEWS = {
    "least": "SELECT g, min(x) AS a, max(x) AS b, min(s) AS c, count(*) AS n FROM t GROUP BY g",
    "most": "SELECT max(f) AS a, min(f) FILTER (WHERE x > 2) AS b, max(x) AS c FROM t",
    "mixed": "SELECT g, min(x) AS a, array_agg(x) AS b FROM t GROUP BY g",
    "top": "SELECT * FROM t ORDER BY x DESC, s LIMIT 3",
    "skip": "SELECT g, x FROM t ORDER BY f NULLS FIRST LIMIT 2 OFFSET 2",
    "ties": "SELECT * FROM t ORDER BY x FETCH FIRST 3 ROWS WITH TIES",
    "each": "SELECT DISTINCT ON (g) g, s, x FROM t ORDER BY g, s DESC NULLS LAST, f",
}
COLUMNS = "(g bigint, x bigint, s text, f double precision)"
Row = dict[str, Any]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small groups large, reads and searches short, and net runs of any size."""
    for name, value in {"LARGE": 1, "_SPARE": 1, "_SEARCH": 1}.items():
        monkeypatch.setattr(front, name, value)
    monkeypatch.setattr(reading, "_SAMPLES", 2)
    for module in (netting, runs_module, merging):
        monkeypatch.setattr(module, "NET_FROM", 0)


def _row(random: Random, wide: int) -> Row:
    x = random.choice([None, *range(wide)])
    s = random.choice([None, "", "a", "fig", "figs and figs", "lime" * 5])
    f = random.choice([None, float("nan"), -0.0, 0.0, 1.5, float("-inf"), random.random()])
    return {"g": random.choice([0, 0, 0, 1, 2, None]), "x": x, "s": s, "f": f}


def _batch(random: Random, there: list[Row], time: int, wide: int, negative: bool) -> list[Row]:
    """A batch of rows that come and go, at a few times; without `negative` only rows that are there go."""
    rows = []
    for _ in range(random.choice([1, 1, 2, 5, 20])):
        if there and random.random() < 0.5:
            row = there.pop(random.randrange(len(there)))
            rows.append({**row, "__time": time + 2, "__diff": -1})  # after all that have come
        else:
            row, count = _row(random, wide), random.choice([1, 1, 2])
            rows.append({**row, "__time": time + random.randrange(3), "__diff": count})
            there += [row] * count
    if negative and random.random() < 0.3:
        rows.append({**_row(random, 2), "__time": time + random.randrange(5), "__diff": random.choice([-1, 1, -2])})
    return rows


def _table(rows: list[Row]) -> pa.Table:
    types = {"g": pa.int64(), "x": pa.int64(), "s": pa.string(), "f": pa.float64(),
             "__time": pa.int64(), "__diff": pa.int64()}  # fmt: skip
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})


def _engine(retain: int) -> hj.Engine:
    engine = hj.Engine(clock="own", retain=retain)
    engine.execute(f"CREATE TABLE t {COLUMNS}")
    for name, sql in VIEWS.items():
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    return engine


def _answer(engine: hj.Engine, view: str, time: int) -> list[str] | str:
    try:
        return sorted(map(str, engine.read(view, as_of=time).to_pylist()))
    except hj.DataError as problem:
        return str(problem).split(" for a row")[0]


def _whole(monkeypatch: pytest.MonkeyPatch, apply: Callable[[], object]) -> None:
    """Apply a batch so that all rows of groups are looked up."""
    with monkeypatch.context() as patch:
        patch.setattr(seen.Seen, "front", lambda self, moments, updates, *_: self.nothing(moments, updates))
        apply()


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_first_rows_answer_as_whole_groups(
    eager: None, monkeypatch: pytest.MonkeyPatch, seed: int, negative: bool
) -> None:
    random = Random(seed)
    wide = random.choice([3, 8, 100])
    fast, slow = _engine(5), _engine(5)
    there: list[Row] = []
    time = 1
    for number in range(40):
        rows = [row for _ in range(20 if number == 0 else 1) for row in _batch(random, there, time, wide, negative)]
        close = random.random() < 0.7
        upper = fast.apply({"t": _table(rows)}, close=close).upper
        _whole(monkeypatch, lambda: slow.apply({"t": _table(rows)}, close=close))
        if not close and random.random() < 0.5:
            upper = fast.advance(to=time + 1).upper
            _whole(monkeypatch, lambda: slow.advance(to=time + 1))
        time = max(time + 1, upper) + random.randrange(3)
        for at in range(max(0, upper - 5), upper):
            for view in VIEWS:
                assert _answer(fast, view, at) == _answer(slow, view, at), (number, view, at)
