"""A query that reads few rows to find the first ones has the rows, or the error, of one that reads all of them; and so
has one that tests rows before it copies them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.arrange import blocks, query_run
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join import dataflow, tested
from halfjoin.engine.reduce import behind, firsts, foremost
from halfjoin.engine.statements import evaluating
from halfjoin.engine.statements.remembered import Remembered
from tests.laws.test_sifting import CONDITIONS, DDL, FAILING, SOURCES, World
from tests.support.kernels import both_ways  # noqa: F401

KEYS = ["big.i", "big.k", "big.d", "big.m", "big.z", "big.f", "big.r", "big.n", "big.s", "big.k % 3", "-big.i",
        "date_trunc('month', big.d)", "big.s || 'x'", "big.i % 5 = 2", "coalesce(big.k, 7)"]  # fmt: skip
OTHERS = {"day": "day.y", "part": "part.n", "b2": "b2.k"}


class Counted:
    """How many rows were read to find the first ones, and how many were left out."""

    read = left_out = 0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    found, read = Counted(), firsts.Firsts.read
    for module, name, value in ((blocks, "ROWS", 4), (blocks, "FEW", 8), (query_run, "_LARGE", 8),
                                (firsts, "_SHARE", 1), (firsts, "_PENDING", 1), (firsts, "_LONG", 16)):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(Remembered, "find", lambda *_: None)  # each way makes the query anew

    def noted(self: firsts.Firsts, runs: Any, closed: int, names: Any) -> Any:
        found.left_out += sum(map(len, runs))
        for part in read(self, runs, closed, names):
            found.read, found.left_out = found.read + len(part), found.left_out - len(part)
            yield part

    monkeypatch.setattr(firsts.Firsts, "read", noted)
    yield found


def rows(engine: hj.Engine, sql: str, time: int | None) -> list[str] | type[hj.DataError]:
    """The rows of an answer in their order; NaN is equal to itself."""
    try:
        columns = [column.to_pylist() for column in engine.query(sql, as_of=time).columns]
    except hj.DataError as problem:
        return type(problem)
    return [str(row) for row in zip(*columns, strict=True)]


def plainly(engine: hj.Engine, sql: str, time: int | None) -> list[str] | type[hj.DataError]:
    """The answer of a query that copies and reads all rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(firsts, "firsts_of", lambda *_: None)
        patch.setattr(evaluating, "rows_behind", lambda *_: None)
        patch.setattr(dataflow, "tested_of", lambda *_: None)
        return rows(engine, sql, time)


def query(world: World) -> str:
    pick = world.random.choice
    source, where = pick(SOURCES), [pick(CONDITIONS) for _ in range(world.random.randrange(2))]
    where += [pick(FAILING)] if world.random.random() < 0.1 else []
    keys = [*KEYS, *KEYS, *(column for name, column in OTHERS.items() if f"{name} " in f"{source} ")]
    order = ", ".join(pick(keys) + pick(("", " DESC", " DESC NULLS LAST", " NULLS FIRST"))
                      for _ in range(world.random.randrange(4)))  # fmt: skip
    shown = ", ".join(dict.fromkeys(pick(("big.i", "big.k", "big.s", "big.d", "big.f", "big.n", "big.k + 1"))
                                    for _ in range(3)))  # fmt: skip
    words = " AND " if "WHERE" in source.split("AS q")[-1] else " WHERE "
    last = pick((f"LIMIT {pick((1, 2, 3, 9))}", f"LIMIT 2 OFFSET {pick((1, 3, 6))}", "LIMIT 0",
                 "FETCH FIRST 3 ROWS WITH TIES" if order else "LIMIT 5"))  # fmt: skip
    return (f"SELECT {shown} FROM {source}{words + ' AND '.join(where) if where else ''}"
            f"{' ORDER BY ' + order if order else ''} {last}")  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_the_first_rows_are_those_of_all_rows(seed: int, counted: Counted) -> None:
    world = World(300 + seed)
    with hj.Engine(clock="own", retain=100) as engine:
        engine.execute(DDL)
        engine.apply(world.loaded(), time=1)
        for time in range(2, 5):
            for _ in range(25):
                sql = query(world)
                at = world.random.choice((None, None, world.random.randrange(1, time)))
                assert rows(engine, sql, at) == plainly(engine, sql, at), sql
            engine.apply(world.changed(), time=time)
    assert counted.left_out > counted.read > 0


@pytest.mark.parametrize("seed", range(6))
def test_rows_behind_others_are_those_of_all_rows(
    seed: int, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, read = World(500 + seed), behind.Behind.read
    pick, seen = world.random.choice, [0, 0]
    monkeypatch.setattr(behind, "_SHARE", 1)
    monkeypatch.setattr(firsts, "_SHARE", 1 << 60)

    def noted(self: behind.Behind, parts: Any, closed: int, names: Any) -> Any:
        for part in read(self, parts, closed, names):
            seen[0] += len(part)
            yield part
        seen[1] += self.skipped

    monkeypatch.setattr(behind.Behind, "read", noted)
    with hj.Engine(clock="own", retain=100) as engine:
        engine.execute(DDL)
        engine.apply(world.loaded(), time=1)
        for time in range(2, 5):
            for _ in range(30):
                order = ", ".join(pick(KEYS) + pick(("", " DESC", " DESC NULLS LAST", " NULLS FIRST"))
                                  for _ in range(pick((0, 1, 1, 2))))  # fmt: skip
                where = pick(("", "", f" WHERE {pick(CONDITIONS)}", f" WHERE {pick(CONDITIONS)} AND {pick(FAILING)}"))
                last = pick(("LIMIT {}", "FETCH FIRST {} ROWS WITH TIES") if order else ("LIMIT {}",))
                sql = (f"SELECT {pick(('big.i, big.s', 'big.k, big.n', 'big.f + 1 AS f, big.i', 'big.s, big.d'))} "
                       f"FROM big{where}{' ORDER BY ' + order if order else ''} "
                       f"OFFSET {pick((1, 7, 30, 60, 90, 99, 100, 5000))} {last.format(pick((1, 3, 9)))}")  # fmt: skip
                at = pick((None, None, None, world.random.randrange(1, time)))
                assert rows(engine, sql, at) == plainly(engine, sql, at), sql
            engine.apply(world.changed(), time=time)
    assert seen[1] > seen[0] > 0


@pytest.mark.parametrize("diff", [2, -1])
def test_of_rows_with_copies_all_are_read(diff: int, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behind, "_SHARE", 1)
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE big (i integer, k integer)")
        engine.apply({"big": [{"i": i, "k": i, "__diff": diff if i == 80 else 1} for i in range(200)]}, time=1)
        engine.apply({"big": [{"i": i, "k": i, "__diff": 1} for i in (-1, 200)]}, time=2)
        sql = "SELECT k FROM big LIMIT 2 OFFSET 100"
        found = rows(engine, sql, None)
        assert found == plainly(engine, sql, None) == (["(98,)", "(99,)"] if diff > 0 else hj.DataError)


ALIKE = ["1 mon", "30 days", "720:00:00", "29 days", "2 mons", "60 days", "1 mon 30 days", None]  # some are equal


@pytest.mark.parametrize("seed", range(4))
def test_equal_intervals_come_in_one_order(seed: int, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(seed)
    pick = chosen.choice
    monkeypatch.setattr(foremost, "_SHARE", 1)
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint, i interval, x integer, j interval[])")
        for time in range(1, 3):
            engine.apply({"t": [{"k": chosen.randrange(9), "i": pick(ALIKE), "x": chosen.randrange(3),
                                 "j": [pick(ALIKE), "1 day"]} for _ in range(300)]}, time=time)  # fmt: skip
        for _ in range(60):
            shown = ", ".join(chosen.sample(["i", "x", "k", "j", "i + '1 day' AS y"], 3))
            keys = ", ".join(pick(["i", "x", "j", "k", "i + '1 day'"]) + pick(["", " DESC"])
                             for _ in range(pick([1, 2])))  # fmt: skip
            sql = f"SELECT {shown} FROM t ORDER BY {keys} LIMIT {pick([1, 3, 9, 40])}"
            for least in (4, 1 << 30):
                monkeypatch.setattr(foremost, "FROM", least)
                found = rows(engine, sql, None)
                monkeypatch.setattr(foremost, "FROM", 1 << 30)
                assert found == plainly(engine, sql, None), sql
    assert counted.read


@pytest.mark.parametrize("sql", [
    "SELECT i FROM big ORDER BY i LIMIT 3", "SELECT i FROM big JOIN part ON part.k = big.k ORDER BY i LIMIT 3",
    "SELECT i FROM big, repeat_row(1 - i::bigint) ORDER BY i LIMIT 1",
])  # fmt: skip
def test_a_row_that_is_owed_is_an_error_wherever_it_is(sql: str, counted: Counted) -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE big (i integer, k integer); CREATE TABLE part (k integer)")
        engine.apply({"big": [{"i": i, "k": i, "__diff": -1 if i == 180 else 1} for i in range(200)]}, time=1)
        engine.apply({"part": [{"k": k, "__diff": 1} for k in (1, 2, 3, 4, 180)]}, time=2)
        assert rows(engine, sql, None) == plainly(engine, sql, None) == hj.DataError


def test_chance_is_asked_once(counted: Counted) -> None:
    with hj.Engine() as engine:
        engine.execute(DDL)
        engine.apply(World(1).loaded())
        found = engine.query("SELECT x, x FROM (SELECT random() AS x, i FROM big) AS q ORDER BY x LIMIT 3")
        assert found.column(0).to_pylist() == found.column(1).to_pylist() == sorted(found.column(0).to_pylist())
        assert not counted.read


def test_rows_are_tested_before_they_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, x bigint, s text)")
        engine.apply({"t": [{"k": k, "x": k % 10, "s": str(k)} for k in range(10_000)]})
        engine.apply({"t": hj.upserts([{"k": k, "x": 10, "s": "new"} for k in range(20)])})
        chosen = list[int]()
        choose = tested.Tested.choose

        def noted(self: tested.Tested, some: Run) -> Any:
            found = choose(self, some)
            chosen.append(len(found))
            return found

        monkeypatch.setattr(tested.Tested, "choose", noted)
        found = engine.query("SELECT k, s FROM t WHERE x = 3 AND 100 / (k + 1) >= 2")
        assert sorted(found.to_pylist(), key=lambda row: row["k"]) == [{"k": k, "s": str(k)} for k in (23, 33, 43)]
        assert sum(chosen) == 1002  # two of them have gone
