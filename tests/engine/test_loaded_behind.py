"""Tables that fit into memory: their files are looked up after opening, and a thread loads them behind the batches."""

from __future__ import annotations

from pathlib import Path
from threading import Event, current_thread
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange import collection as collections
from halfjoin.engine.arrange.coming import Coming
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.storage import fetch, parquet, stored_run


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the limits small: few rows fill several row groups and files, and are left in files at first."""
    for module, name, value in ((parquet, "GROUP_ROWS", 8), (parquet, "FILE_ROWS", 100),
                                (stored_run, "SEARCHED_ROWS", 1), (collections, "LOOKUP_ROWS", 1),
                                (collections, "BEHIND", 20)):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def _of_400(folder: Path) -> None:
    """A warehouse with a table of 400 rows, which a view joins with a table of few."""
    with hj.Engine(folder) as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint); "
                       "CREATE TABLE u (k bigint PRIMARY KEY, w bigint); "
                       "CREATE MATERIALIZED VIEW j AS SELECT t.k, v, w FROM t JOIN u ON u.k = t.k")  # fmt: skip
        engine.apply({"t": pa.table({"k": range(400), "v": range(400)})})
        engine.apply({"u": pa.table({"k": range(5), "w": range(5)})})
        engine.compact()


def _look_up(engine: hj.Engine, number: int) -> None:
    """Look one row of the 400 up; the first batch that does it has number 3."""
    engine.apply({"u": pa.table({"k": [15 * number - 35], "w": [1]})})
    assert engine.read("j").num_rows == number + 3


def test_files_that_fit_are_loaded_when_many_lookups_need_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batches after opening do not wait for a table to be loaded, and many batches do not read its files."""
    loads = list[int]()
    loaded_runs = fetch.loaded_runs
    monkeypatch.setattr(collections, "BEHIND", 1000)
    monkeypatch.setattr(fetch, "loaded_runs", lambda pieces, upper: (
        made := loaded_runs(pieces, upper), loads.append(sum(map(len, made))))[0])
    _of_400(tmp_path / "w")
    with hj.Engine(tmp_path / "w") as engine:
        table = engine._state.tables["t"]
        for time in range(3, 23):
            _look_up(engine, time)
            if time == 3:
                assert table.left and 400 not in loads
        assert not table.left and loads.count(400) == 1


@pytest.mark.parametrize("change", ["", "DELETE FROM t WHERE k >= 395", "CREATE INDEX i ON t (v)"])
def test_no_batch_waits_for_a_large_table(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, go, builders = Coming.load, Event(), list[str]()

    def waiting(*arguments: Any) -> None:
        assert go.wait(60)
        load(*arguments)

    def built(run: Run, *arguments: Any) -> Any:
        if len(run) > 390 and arguments[0] not in run.indexes:
            builders.append(current_thread().name)
        return index(run, *arguments)

    index = Run.index
    monkeypatch.setattr(Coming, "load", waiting)
    monkeypatch.setattr(Run, "index", built)
    _of_400(tmp_path / "w")
    builders.clear()
    with hj.Engine(tmp_path / "w") as engine:
        table, store = engine._state.tables["t"], engine._store
        for time in range(3, 15):
            _look_up(engine, time)
        assert table.left and table.coming
        go.set()
        if change:
            engine.execute(change)
        store._behind.wait()  # type: ignore[attr-defined]
        for number in range(15, 20):
            _look_up(engine, number)
        assert not table.left and not table.coming and not table.in_files
        assert bool(change) or set(builders) == {"halfjoin-behind"}
        assert len(engine.read("t")) == (395 if "DELETE" in change else 400)


def test_a_table_that_comes_is_dropped_where_all_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, go, came = Coming.load, Event(), list[Coming]()

    def waiting(coming: Coming, *arguments: Any) -> None:
        came.append(coming)
        assert go.wait(60)
        load(coming, *arguments)

    monkeypatch.setattr(Coming, "load", waiting)
    _of_400(tmp_path / "w")
    with hj.Engine(tmp_path / "w") as engine:
        for time in range(3, 15):
            _look_up(engine, time)
        assert engine.read("t").num_rows == 400
        go.set()
        _look_up(engine, 15)
        engine._store._behind.wait()  # type: ignore[attr-defined]
        (coming,) = came
        assert coming.dropped and coming.failed and not coming._runs
