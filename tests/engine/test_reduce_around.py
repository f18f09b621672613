"""Percentiles follow the change of a large group: they read windows around their place, and are DuckDB's."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import around, reading, single
from halfjoin.engine.updates.updates import Updates
from tests.support.ordering import read_in_order
from tests.support.read_rows import rows_read

DDL = "CREATE TABLE t (g text, x integer, s text)"
CALLS = {
    "halves": "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
    "ends": "percentile_disc(0) WITHIN GROUP (ORDER BY x) AS a, percentile_disc(1) WITHIN GROUP (ORDER BY s)",
    "several": "percentile_cont(ARRAY[0.25, 1, 0]) WITHIN GROUP (ORDER BY x DESC)",
    "filtered": "percentile_disc(0.75) WITHIN GROUP (ORDER BY s DESC) FILTER (WHERE x > 2)",
}
VIEWS = {
    **{name: f"SELECT g, {call} AS b FROM t GROUP BY g" for name, call in CALLS.items()},
    "whole": f"SELECT {CALLS['halves']} AS b, max(x) AS c FROM t",
}
Row = tuple[Any, ...]
DUCK = duckdb.connect(config={"threads": 1})


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Small groups are read in order; the numbers of groups whose windows were found, one for each round. The window
    of one group has the rows that windows of many groups have."""
    found, own, alone = list[int](), around._Search.round, around._Search._alone
    read_in_order(monkeypatch, True)
    monkeypatch.setattr(reading, "_FEW", 12)  # searches one by one, and together

    def counted(self: Any) -> tuple[Updates, Any]:
        rows, groups = own(self)
        found.append(len(set(groups.tolist())))
        return rows, groups

    def as_many(self: Any) -> Updates | None:
        rows, other = alone(self), copy(self)
        if rows is not None:
            with monkeypatch.context() as patched:
                patched.setattr(single, "FEW", -1)
                assert rows.table(changes=True).equals(own(other)[0].table(changes=True))
        return rows

    monkeypatch.setattr(around._Search, "round", counted)
    monkeypatch.setattr(around._Search, "_alone", as_many)
    return found


def _answers(rows: list[Row], sql: str) -> list[str]:
    types = {"g": pa.string(), "x": pa.int32(), "s": pa.string()}
    table = pa.table({name: pa.array([row[at] for row in rows], types[name]) for at, name in enumerate(types)})
    DUCK.register("t", table)
    return sorted(map(str, DUCK.execute(sql).fetchall()))


def _told(found: pa.Table) -> list[str]:
    return sorted(str(tuple(row.values())) for row in found.to_pylist())


def _row(random: Random, wide: int) -> Row:
    return (random.choice(["a", "a", "a", "b", None]), random.choice([None, *range(wide)]),
            random.choice([None, "", "fig", "lime", "plum" * 3, str(random.randrange(wide))]))  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_percentiles_of_streams_are_duckdbs(rounds: list[int], seed: int, tmp_path: Path) -> None:
    random, now = Random(seed), 1
    wide, folder = random.choice([2, 5, 1000]), tmp_path / "w" if seed % 4 == 0 else None
    engine = hj.Engine(folder, clock="own", retain=20)
    engine.execute(DDL)
    for name, sql in VIEWS.items():
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    told = list[tuple[int, Row, int]]()  # a row that comes or goes at a time
    for number in range(25):
        batch = list[tuple[int, Row, int]]()
        if number == 12:  # all groups but the largest become empty
            last = max(time for time, _, _ in told)
            batch = [(max(now, last), row, -1) for row in _at(told, now, later=True) if row[0] != "a"]
        else:
            there = _at(told, now, later=True)
            random.shuffle(there)
            going = random.choice([0, 1, 1, 3, len(there) // 2 if number % 8 == 7 else 2])
            last = max([now, *(time for time, _, _ in told)])
            batch += [(last, row, -1) for row in there[:going]]
            for _ in range(random.choice([0, 1, 1, 2, 10]) if number else 40):
                batch += [(now + random.randrange(4), _row(random, wide), 1)] * random.choice([1, 1, 3])
        told += batch
        rows = [{"g": g, "x": x, "s": s, "__time": time, "__diff": diff} for time, (g, x, s), diff in batch]
        upper = engine.apply({"t": rows}, time=now, close=False).upper if rows else now
        upper = engine.advance(to=now + random.choice([0, 1, 1, 3])).upper
        now = max(now, upper)
        if folder is not None and random.random() < 0.1:
            engine.close()
            engine = hj.Engine(folder)
        for name, sql in VIEWS.items():
            if upper > 1:
                time = random.randrange(max(1, upper - 6), upper)
                assert _told(engine.read(name, as_of=time)) == _answers(_at(told, time), sql), (number, name, time)
    assert sum(rounds) > 100
    engine.close()


def _at(told: list[tuple[int, Row, int]], time: int, *, later: bool = False) -> list[Row]:
    """The rows that are there at a time, and those that come `later`."""
    rows = list[Row]()
    for _, row, diff in sorted((one for one in told if later or one[0] <= time), key=lambda one: -one[2]):
        rows.append(row) if diff > 0 else rows.remove(row)
    return rows


SIZE = 20_000
LARGE = {
    "few values": ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x) AS p FROM t", 3),
    "many values": ("SELECT g, percentile_cont(0.9) WITHIN GROUP (ORDER BY x) AS p FROM t GROUP BY g", 1 << 30),
    "texts": ("SELECT percentile_disc(ARRAY[0.5, 1]) WITHIN GROUP (ORDER BY s) AS p FROM t", 1 << 30),
}


@pytest.mark.parametrize("view", LARGE)
def test_one_row_of_a_large_group_reads_a_few_rows(monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    sql, wide = LARGE[view]
    random = np.random.default_rng(1)
    x = random.integers(0, wide, SIZE).astype(np.int32)
    texts = [f"{number:010}" for number in x]
    engine = hj.Engine(clock="own")
    engine.execute(DDL)
    engine.apply({"t": pa.table({"g": ["a"] * SIZE, "x": x, "s": texts})}, time=1)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    there = [("a", int(number), text) for number, text in zip(x, texts, strict=True)]
    reads = _reads(monkeypatch)
    for time in range(2, 60):
        old, number = there.pop(int(random.integers(len(there)))), int(random.integers(0, wide))
        there.append(("a", number, f"{number:010}"))
        rows = [{"g": g, "x": x, "s": s, "__diff": diff} for diff, (g, x, s) in ((-1, old), (1, there[-1]))]
        reads.clear()
        engine.apply({"t": rows}, time=time)
        assert 0 < sum(reads) < 1_000
    assert _told(engine.read("v")) == _answers(there, sql)


def _reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that are read from order indexes, or looked up, from now on."""
    found, key = rows_read(monkeypatch), reading.place

    def searched(entries: Any, low: int, high: int, own: Any, asked: Any, *, after: bool) -> int:
        found.append((high - low).bit_length())
        return key(entries, low, high, own, asked, after=after)

    monkeypatch.setattr(reading, "place", searched)
    return found
