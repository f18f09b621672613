"""Min, max and LIMIT read the first rows of large groups, percentiles those around a place. They answer as if they had
looked up the whole groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange import merging, netting
from halfjoin.engine.arrange import run as runs_module
from halfjoin.engine.reduce import around, front, reading, seen
from tests.support.read_rows import rows_read

VIEWS = {
    "least": "SELECT g, min(x) AS a, max(x) AS b, min(s) AS c, count(*) AS n FROM t GROUP BY g",
    "most": "SELECT max(f) AS a, min(f) FILTER (WHERE x > 2) AS b, max(x) AS c FROM t",
    "mixed": "SELECT g, min(x) AS a, array_agg(x) AS b FROM t GROUP BY g",
    "top": "SELECT * FROM t ORDER BY x DESC, s LIMIT 3",
    "skip": "SELECT g, x FROM t ORDER BY f NULLS FIRST LIMIT 2 OFFSET 2",
    "ties": "SELECT * FROM t ORDER BY x FETCH FIRST 3 ROWS WITH TIES",
    "places": "SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS a, percentile_disc(0.9) WITHIN GROUP "
    "(ORDER BY s) AS b, percentile_disc(0) WITHIN GROUP (ORDER BY f DESC) AS c FROM t GROUP BY g",
    "place": "SELECT percentile_cont(ARRAY[1, 0.3]) WITHIN GROUP (ORDER BY f) AS a, max(f) AS b, percentile_disc(0.1) "
    "WITHIN GROUP (ORDER BY x DESC NULLS LAST) FILTER (WHERE s > 'b') AS c FROM t",
    "named": "SELECT s, percentile_disc(0.5) WITHIN GROUP (ORDER BY x) AS a FROM t GROUP BY s",
    "value": "SELECT g, any_value(s ORDER BY x DESC, f) AS a, any_value(x ORDER BY s) FILTER (WHERE f > 0) AS b FROM t "
    "GROUP BY g",
    "modes": "SELECT g, mode() WITHIN GROUP (ORDER BY x DESC) AS a, mode() WITHIN GROUP (ORDER BY s) FILTER "
    "(WHERE f > 0) AS b, min(x) AS c FROM t GROUP BY g",
    "each": "SELECT DISTINCT ON (g) g, s, x FROM t ORDER BY g, s DESC NULLS LAST, f",
}
COLUMNS = "(g bigint, x bigint, s text, f double precision)"
Row = dict[str, Any]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small groups large, reads and searches short, and net runs of any size."""
    for name, value in {"LARGE": 1, "_SPARE": 1, "_SEARCH": 1}.items():
        monkeypatch.setattr(front, name, value)
    for name in ("_SPARE", "_SEARCH"):
        monkeypatch.setattr(around, name, 1)
    monkeypatch.setattr(reading, "_SAMPLES", 2)
    monkeypatch.setattr(reading, "_FEW", 6)  # searches one by one, and together
    for module in (netting, runs_module, merging):
        monkeypatch.setattr(module, "NET_FROM", 0)


def _row(random: Random, wide: int) -> Row:
    x = random.choice([None, *range(wide)])
    s = random.choice([None, "", "a", "fig", "figs and figs", "lime" * 5])
    f = random.choice([None, float("nan"), -0.0, 0.0, 1.5, float("-inf"), random.random()])
    return {"g": random.choice([0, 0, 0, 1, 2, None]), "x": x, "s": s, "f": f}


def _batch(random: Random, there: list[Row], owed: list[Row] | None, time: int, wide: int) -> list[Row]:
    """A batch of rows that come and go, at a few times. Only rows that are there go. But if rows may be `owed`, some go
    before they come.
    """
    rows = []
    while owed:
        rows.append({**owed.pop(), "__time": time + random.randrange(2)})
    for _ in range(random.choice([1, 1, 2, 5, 20])):
        if there and random.random() < 0.5:
            row = there.pop(random.randrange(len(there)))
            rows.append({**row, "__time": time + 2, "__diff": -1})  # after all that have come
        else:
            row, count = _row(random, wide), random.choice([1, 1, 2])
            rows.append({**row, "__time": time + random.randrange(3), "__diff": count})
            there += [row] * count
    if owed is not None and random.random() < 0.2:
        row, count = _row(random, wide), random.choice([1, 2])
        rows.append({**row, "__time": time + random.randrange(5), "__diff": -count})
        owed.append({**row, "__diff": count})
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


@contextmanager
def _whole(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Batches look up all rows of groups."""
    with monkeypatch.context() as patch:
        for name in ("front", "front_of_value"):
            patch.setattr(seen.Seen, name, lambda self, moments, updates, *_: self.nothing(moments, updates))
        yield


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_first_rows_answer_as_whole_groups(
    eager: None, monkeypatch: pytest.MonkeyPatch, seed: int, negative: bool
) -> None:
    random = Random(seed)
    wide = random.choice([3, 8, 100])
    fast, slow = _engine(5), _engine(5)
    there: list[Row] = []
    owed: list[Row] | None = [] if negative else None
    time = 1
    for number in range(30):
        rows = [row for _ in range(20 if number == 0 else 1) for row in _batch(random, there, owed, time, wide)]
        close = random.random() < 0.7
        upper = fast.apply({"t": _table(rows)}, close=close).upper
        with _whole(monkeypatch):
            slow.apply({"t": _table(rows)}, close=close)
        if not close and random.random() < 0.5:
            upper = fast.advance(to=time + 1).upper
            with _whole(monkeypatch):
                slow.advance(to=time + 1)
        time = max(time + 1, upper) + random.randrange(3)
        for view in VIEWS:
            at = random.randrange(max(0, upper - 5), upper) if upper else 0
            assert not upper or _answer(fast, view, at) == _answer(slow, view, at), (number, view, at)


def _reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that are read from order indexes, or looked up, from now on."""
    return rows_read(monkeypatch)


LENGTH = 100_000
LARGE = {
    "min": "SELECT g, min(x) AS a FROM t GROUP BY g",
    "max": "SELECT max(f) AS a FROM t",
    "median": "SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) AS a FROM t GROUP BY g",
    "quantile": "SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY s DESC) AS a FROM t",
    "top": "SELECT * FROM t ORDER BY x DESC LIMIT 10",
    "text": "SELECT * FROM t ORDER BY s, x LIMIT 10",
    "tie": "SELECT * FROM t ORDER BY g LIMIT 10",
    "first": "SELECT DISTINCT ON (g) * FROM t ORDER BY g, x",
}


@pytest.mark.parametrize("view", LARGE)
def test_one_change_reads_a_few_rows_of_a_large_group(monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    engine = hj.Engine(clock="own")
    engine.execute(f"CREATE TABLE t {COLUMNS}")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {LARGE[view]}")
    numbers = list(range(LENGTH))
    Random(1).shuffle(numbers)
    engine.apply({"t": _many(numbers, 1)})
    reads, time = _reads(monkeypatch), 2
    # What comes and goes in the middle, then at both ends; the first hundreds go one by one.
    middle = [([number], diff) for number in range(50_000, 50_020) for diff in (1, -1)]
    ends = [([number], -1) for pair in zip(range(150), range(LENGTH - 1, 0, -1), strict=False) for number in pair]
    for batch, diff in [*middle, ([-1], 1), ([-1], -1), *ends]:
        reads.clear()
        engine.apply({"t": _many(batch, diff, time)})
        time += 1
        assert sum(reads) < (1_500 if view in ("median", "quantile") else 400)
    least, most = 150, LENGTH - 151
    expected = {
        "min": [{"g": 0, "a": least}],
        "max": [{"a": most / 2}],
        "median": [{"g": 0, "a": (LENGTH - 1) / 4}],
        "quantile": [{"a": f"{most - (LENGTH - 300 + 3) // 4 + 1:09}"}],
        "top": [_line(x) for x in range(most - 9, most + 1)],
        "first": [_line(least)],
    }.get(view, [_line(x) for x in range(least, least + 10)])
    assert sorted(engine.read("v").to_pylist(), key=str) == expected


def _many(numbers: Any, diff: int, time: int = 1) -> pa.Table:
    return _table([{**_line(x), "__time": time, "__diff": diff} for x in numbers])


def _line(x: int) -> Row:
    return {"g": 0, "x": x, "s": f"{x:09}", "f": x / 2}
