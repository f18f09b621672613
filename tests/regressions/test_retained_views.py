"""The history that a view promises to keep is readable, whatever the views below it keep. stats() tells its start."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

import halfjoin as hj


def since(engine: hj.Engine, name: str) -> int:
    return next(one.since for one in engine.stats().collections if one.name == name)


def assert_readable_from(engine: hj.Engine, name: str, first: int) -> None:
    assert since(engine, name) == first
    upper = engine.stats().upper
    for time in range(first, upper):
        with suppress(hj.DataError):  # never InvalidTime
            engine.read(name, as_of=time)
    if first:
        with pytest.raises(hj.InvalidTime):
            engine.read(name, as_of=first - 1)


def chain(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE t (k bigint)")
    engine.execute("CREATE MATERIALIZED VIEW low WITH (RETAIN HISTORY FOR 2) AS SELECT 12/k AS k FROM t")
    engine.execute("CREATE MATERIALIZED VIEW middle WITH (RETAIN HISTORY FOR 4) AS SELECT k FROM low")
    engine.execute("CREATE MATERIALIZED VIEW high WITH (RETAIN HISTORY FOR 20) AS SELECT k FROM middle")


def run(engine: hj.Engine, times: range) -> None:
    for time in times:
        if time == 12:
            engine.apply({"t": [{"k": 0}]}, time=time)
        elif time == 14:
            engine.apply({"t": hj.deletes([{"k": 0}])}, time=time)
        else:
            engine.apply({"t": [{"k": 1 + time % 3}]}, time=time)


def assert_errors_are_remembered(engine: hj.Engine) -> None:
    for time in (12, 13):
        with pytest.raises(hj.DataError, match="division by zero"):
            engine.read("high", as_of=time)
    for time in (11, 14):
        engine.read("high", as_of=time)


def test_a_view_over_views_keeps_what_it_promises() -> None:
    engine = hj.Engine(retain=3)
    chain(engine)
    run(engine, range(22))
    engine.compact()
    assert (since(engine, "low"), since(engine, "middle"), since(engine, "high")) == (20, 18, 2)
    engine.read("high", as_of=2)
    assert_errors_are_remembered(engine)


def test_promises_are_kept_over_reopening(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", retain=3) as engine:
        chain(engine)
        run(engine, range(16))
        engine.compact()
    with hj.Engine(tmp_path / "w") as engine:
        run(engine, range(16, 22))
        engine.flush()
        engine.compact()
        assert_errors_are_remembered(engine)
    with hj.Engine(tmp_path / "w", read_only=True) as reader:
        assert since(reader, "high") == 2
        assert_errors_are_remembered(reader)


def test_a_view_made_later_says_how_far_back_it_goes(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", retain=3) as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.execute("CREATE MATERIALIZED VIEW low AS SELECT 12/k AS k FROM t")
        run(engine, range(10))
        engine.execute("CREATE MATERIALIZED VIEW high WITH (RETAIN HISTORY FOR 20) AS SELECT k FROM low")
        assert_readable_from(engine, "high", 7)
        run(engine, range(10, 16))
        engine.compact()
        assert_readable_from(engine, "high", 7)
    with hj.Engine(tmp_path / "w") as engine:
        assert_readable_from(engine, "high", 7)
        assert_errors_are_remembered(engine)


def test_a_failed_drop_takes_no_promise_back() -> None:
    engine = hj.Engine(retain=3)
    chain(engine)
    run(engine, range(13))
    with pytest.raises(hj.HalfjoinError):
        engine.execute("DROP MATERIALIZED VIEW low")
    engine._store.define = lambda state: 1 / 0  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(ZeroDivisionError):
        engine.execute("DROP MATERIALIZED VIEW high")
    engine._closed = None
    run(engine, range(13, 20))
    engine.compact()
    assert_errors_are_remembered(engine)


def test_an_older_warehouse_says_what_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from halfjoin.engine.batch.state import State

    with monkeypatch.context() as older:
        older.setattr(State, "keep_promises", lambda state: None)
        with hj.Engine(tmp_path / "w", retain=3) as engine:
            chain(engine)
            run(engine, range(22))
            engine.flush()
            engine.compact()
    with hj.Engine(tmp_path / "w") as engine:
        assert_readable_from(engine, "high", 20)
        run(engine, range(22, 30))
        assert_readable_from(engine, "high", 20)
