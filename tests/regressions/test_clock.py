"""The clock of a warehouse: its first batch chooses it, the warehouse keeps it, and clocks never mix silently."""

from __future__ import annotations

import datetime as dt
import sqlite3
import time as clock
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import halfjoin as hj
from halfjoin.engine.batch.clock import YEAR
from tests.oracle.rows import bag

T = "CREATE TABLE t (k bigint)"
ROW = {"t": [{"k": 1}]}
DAY = 86_400_000
UNTIMED: dict[str, Callable[[hj.Engine], object]] = {
    "apply": lambda engine: engine.apply(ROW),
    "insert": lambda engine: engine.execute("INSERT INTO t VALUES (1)"),
    "delete": lambda engine: engine.execute("DELETE FROM t"),
    "update": lambda engine: engine.execute("UPDATE t SET k = 2"),
    "advance": lambda engine: engine.advance(),
}
TIMED: dict[str, Callable[[hj.Engine], object]] = {
    "apply": lambda engine: engine.apply(ROW, time=0),
    "rows": lambda engine: engine.apply({"t": [{"k": 1, "__time": 0}]}),
    "open": lambda engine: engine.apply(ROW, time=0, close=False),
    "advance": lambda engine: engine.advance(to=1),
    "statement": lambda engine: engine.execute("SET TIME = 0; INSERT INTO t VALUES (1); RESET TIME"),
}


@pytest.fixture(params=["memory", "folder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """The warehouse's folder, None for an engine in memory."""
    return None if request.param == "memory" else tmp_path / "w"


# What changes nothing, as no row can be seen, closes nothing.
NONE_THERE = [(first, then) for first in ("advance", "open") for then in ("delete", "update")]


@pytest.mark.parametrize(("first", "then"), sorted({(a, b) for a in TIMED for b in UNTIMED} - {*NONE_THERE}))
def test_the_present_does_not_get_among_own_times(folder: Path | None, first: str, then: str) -> None:
    with hj.Engine(folder) as engine:
        engine.execute(T)
        TIMED[first](engine)
        upper = engine.stats().upper
        with pytest.raises(hj.InvalidTime, match=r"time=|SET TIME|advance"):
            UNTIMED[then](engine)
        assert (engine.stats().clock, engine.stats().upper) == ("own", upper)
        engine.apply(ROW, time=1)
        assert engine.stats().upper == 2


@pytest.mark.parametrize("first", UNTIMED)
def test_without_a_time_the_clock_is_the_wall(folder: Path | None, first: str) -> None:
    with hj.Engine(folder) as engine:
        engine.execute(T)
        UNTIMED[first](engine)
        assert engine.stats().clock == "wall"
        ahead = engine.stats().upper + DAY
        engine.apply(ROW, time=ahead)  # a given time is taken, too
        engine.apply(ROW)
        assert engine.stats().upper == ahead + 2


def test_the_clock_is_kept_with_the_warehouse(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="wall") as engine:
        engine.execute(T)
    with hj.Engine(tmp_path / "w") as engine:  # no batch has settled it
        assert engine.stats().clock is None
        engine.apply(ROW, time=3)
    for read_only in (False, True):
        with hj.Engine(tmp_path / "w", read_only=read_only) as engine:
            assert engine.stats().clock == "own"
        with pytest.raises(hj.Conflict, match=r"clock='own'.*clock='wall'"):
            hj.Engine(tmp_path / "w", clock="wall", read_only=read_only)
        hj.Engine(tmp_path / "w", clock="own", read_only=read_only).close()
    with hj.Engine(tmp_path / "w") as engine, pytest.raises(hj.InvalidTime, match="SET TIME"):
        engine.execute("INSERT INTO t VALUES (1)")


def test_a_reader_takes_the_clock_from_the_writer(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(T)
        with hj.Engine(tmp_path / "w", read_only=True) as reader:
            assert reader.stats().clock is None
            engine.apply(ROW)
            assert reader.stats().clock == "wall"


@pytest.mark.parametrize(("upper", "clock_of"), [(round(clock.time() * 1000) - 9 * DAY, "wall"), (40, "own"),
                                                 (1_356_998_400_000, "own")], ids=["now", "few", "past"])  # fmt: skip
def test_an_older_warehouse_goes_by_its_upper(tmp_path: Path, upper: int, clock_of: str) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(T)
        engine.apply(ROW, time=upper - 1)
    with sqlite3.connect(tmp_path / "w" / "journal.sqlite") as journal:  # as it was before clocks were kept
        journal.execute("DELETE FROM meta WHERE key = 'clock'")
        journal.execute("DELETE FROM line WHERE collection = 0 AND low < upper AND id < (SELECT max(id) FROM line)")
    journal.close()
    with hj.Engine(tmp_path / "w", read_only=True) as reader:
        assert reader.stats().clock == clock_of
    with hj.Engine(tmp_path / "w", clock="wall"):  # who knows better says so
        pass
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.stats().clock == clock_of
        engine.apply(ROW, time=upper)
        with pytest.raises(hj.InvalidTime, match="is closed"):
            engine.apply(ROW, time=upper)


@pytest.mark.parametrize("retain", [5, 2 * YEAR])
def test_a_jump_past_all_history_is_said(folder: Path | None, retain: int) -> None:
    far = 10 + max(retain, YEAR)
    with hj.Engine(folder, retain=retain) as engine:
        engine.execute(T)
        engine.apply(ROW, time=9)
        for batch, time in ((ROW, far + 1), ({"t": [{"k": 1, "__time": far + 1}]}, None)):
            with pytest.raises(hj.InvalidTime, match=rf"engine.advance\(to={far + 1}\)"):
                engine.apply(batch, time=time)
        engine.apply(ROW, time=far + 1, close=False)  # it closes nothing
        assert engine.stats().upper == 10
        engine.apply(ROW, time=far)
        engine.advance(to=far + far)
        engine.apply(ROW, time=far + far)


def test_a_wall_clock_may_have_stood_for_years() -> None:
    with hj.Engine(clock="wall") as engine:
        engine.execute(T)
        engine.apply(ROW, time="2013-01-01")
        engine.apply(ROW)
        with pytest.raises(hj.InvalidTime, match=r"UTC.*engine\.advance"):
            engine.apply(ROW, time=dt.datetime.now(dt.UTC) + dt.timedelta(days=400))


def test_statements_take_the_time_that_is_set(folder: Path | None) -> None:
    with hj.Engine(folder) as engine:
        engine.execute(f"{T}; SET TIME = 5; INSERT INTO t VALUES (1); SET TIME TO 7; UPDATE t SET k = 2")
        assert [bag(engine.read("t", as_of=time)) for time in (4, 5, 6, 7)] == [{}, {(1,): 1}, {(1,): 1}, {(2,): 1}]
        with pytest.raises(hj.InvalidTime, match=r"SET TIME with a later one.*BEGIN"):
            engine.execute("INSERT INTO t VALUES (3)")
        engine.execute("SET TIME = '1970-01-01 00:00:01.5'; INSERT INTO t VALUES (3)")
        assert engine.stats().upper == 1501


def test_own_times_of_nothing_close_nothing(folder: Path | None) -> None:
    with hj.Engine(folder) as engine:
        engine.execute(T)
        none = pa.table({"k": pa.array([], pa.int64()), "__time": pa.array([], pa.int64())})
        engine.apply({"t": none})
        assert (engine.stats().clock, engine.stats().upper) == (None, 0)
        engine.apply(ROW, time=3)
        assert engine.apply({"t": none}, batch_id="empty").upper == engine.apply({"t": []}).upper == 4
        assert engine.apply({"t": none}, batch_id="empty").upper == 4


def test_a_closed_time_says_who_closed_it(folder: Path | None) -> None:
    with hj.Engine(folder, clock="wall") as engine:
        engine.execute(T)
        engine.apply(ROW, time="2024-01-31 10:00", batch_id="monday")
        engine.apply(ROW)
    engine = hj.Engine(folder) if folder is not None else engine
    if folder is not None:
        with engine, pytest.raises(hj.InvalidTime) as caught:
            engine.apply(ROW, time="2024-01-30")
        assert "2024-01-30 00:00:00 UTC" in str(caught.value)
        assert "batch 'monday' submitted at" in str(caught.value)


def test_feeds_take_times_from_their_numbers(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for number in range(3):
        write_deltalake(source, pa.table({"k": [number]}), mode="append")
    with hj.Engine(clock="own") as engine:
        engine.execute(f"{T}; CREATE TABLE u (k bigint)")
        with pytest.raises(hj.InvalidTime, match="clock='own'"):
            engine.follow("t", source)
        assert [one.time for one in engine.follow("t", source, time=lambda version: 10 * version)] == [20]
        write_deltalake(source, pa.table({"k": [3]}), mode="append")
        assert [one.time for one in engine.follow("t", source, time=lambda version: 10 * version)] == [30]
        assert bag(engine.read("t", as_of=29)) == {(0,): 1, (1,): 1, (2,): 1}
        sink = engine.sink("u", time=lambda epoch: 100 + epoch)
        for _ in range(2):
            sink(pa.table({"k": [5]}), 7)
        assert (bag(engine.read("u")), engine.stats().upper) == ({(5,): 1}, 108)
