"""Backups of a warehouse while an engine writes to it: each is one moment, whole, and goes on as a warehouse."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.storage import backup as backups
from halfjoin.engine.storage import filing, stored_run

DDL = """CREATE TABLE t (id bigint PRIMARY KEY, g bigint); CREATE TABLE u (g bigint PRIMARY KEY, s text);
    CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, max(id) AS last FROM t;
    CREATE MATERIALIZED VIEW j AS SELECT id, s FROM t JOIN u USING (g)"""
GROUPS = [{"g": group, "s": str(group)} for group in range(3)]


def _engine(folder: Path, **options: str) -> hj.Engine:
    engine = hj.Engine(folder, clock="own", **options)  # type: ignore[arg-type]
    engine.execute(DDL)
    engine.apply({"u": GROUPS}, time=0)
    return engine


def _apply(engine: hj.Engine, time: int) -> None:
    engine.apply({"t": [{"id": time, "g": time % 3}]}, time=time)


def _check(folder: Path, last: int) -> None:
    """The copy has the batches up to a time, and takes more."""
    with hj.Engine(folder) as copy:
        assert copy.read("n").to_pylist() == [{"n": last, "last": last or None}]
        assert sorted(copy.read("j")["id"].to_pylist()) == [*range(1, last + 1)]
        assert copy.read("t", as_of=last // 2).num_rows == last // 2
        _apply(copy, last + 1)
        copy.compact()
    with hj.Engine(folder) as copy:
        assert copy.read("j").num_rows == last + 1


def test_backups_beside_batches_flushes_and_definitions(tmp_path: Path) -> None:
    engine, stop = _engine(tmp_path / "w"), threading.Event()

    def write() -> None:
        time = 0
        while not stop.is_set():
            _apply(engine, time := time + 1)
            if time % 3 == 0:
                engine.flush()
            if time % 16 == 0:
                engine.compact()
            if time % 5 == 0:
                engine.execute("CREATE MATERIALIZED VIEW m AS SELECT id FROM t")
                engine.flush()
                engine.execute("DROP MATERIALIZED VIEW m")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = [hj.backup(tmp_path / "w", tmp_path / f"copies/{number}") for number in range(8)]
    finally:
        stop.set()
        writer.join()
        engine.close()
    assert [one.upper for one in made] == sorted(one.upper for one in made)
    for number, one in enumerate(made):
        files = [path for path in (tmp_path / f"copies/{number}").rglob("*") if path.is_file()]
        assert (len(files), sum(path.stat().st_size for path in files)) == (one.files, one.bytes)
        _check(tmp_path / f"copies/{number}", one.upper - 1)
    assert sorted(path.name for path in (tmp_path / "copies").iterdir()) == sorted(map(str, range(8)))


def test_files_that_no_table_has_yet_and_arrangements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filing, "BULK_ROWS", 100)
    monkeypatch.setattr(stored_run, "SEARCHED_ROWS", 100)
    ids = np.arange(1, 5001)
    with _engine(tmp_path / "w", memory="64kB") as engine:
        engine.apply({"t": pa.table({"id": ids, "g": ids % 3, "__time": ids})}, time=5000)
        pending = [*(tmp_path / "w" / "tables" / "t").glob("*.parquet")]
        assert pending and not (tmp_path / "w" / "tables" / "t" / "_delta_log").exists()
        hj.backup(tmp_path / "w", tmp_path / "before")
        engine.flush()
        assert engine.apply({"u": hj.deletes(GROUPS[:1])}, time=5001).diffs["j"].num_rows == 1666
        engine.flush()
        assert [*(tmp_path / "w" / "arrangements").rglob("*.parquet")]
        hj.backup(tmp_path / "w", tmp_path / "after")
    with hj.Engine(tmp_path / "after", memory="64kB") as copy:
        assert {path.name for path in (tmp_path / "after" / "arrangements").rglob("*.parquet")} == {
            path.name for path in (tmp_path / "w" / "arrangements").rglob("*.parquet")}  # fmt: skip
        assert copy.apply({"u": GROUPS[:1]}, time=5002).diffs["j"].num_rows == 1666
    _check(tmp_path / "before", 5000)


def test_a_backup_of_a_closed_warehouse_and_of_an_empty_one(tmp_path: Path) -> None:
    with _engine(tmp_path / "w") as engine:
        _apply(engine, 1)
    assert hj.backup(str(tmp_path / "w"), f"file://{tmp_path}/copy").upper == 2
    _check(tmp_path / "copy", 1)
    hj.Engine(tmp_path / "none").close()
    assert hj.backup(tmp_path / "none", tmp_path / "none-copy").upper == 0
    with hj.Engine(tmp_path / "none-copy") as copy:
        copy.execute(DDL)


def _meanwhile(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[str]:
    """Act once, after the snapshot and before files are copied. Returns a list that is empty until then."""
    filled, done = backups._filled, list[str]()

    def filling(needed: backups._Needed, source: Path, folder: Path) -> Iterator[Path]:
        if not done:
            done.append("acted")
            act()
        yield from filled(needed, source, folder)

    patch.setattr(backups, "_filled", filling)
    return done


def test_it_begins_anew_where_a_collection_is_dropped_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _engine(tmp_path / "w") as engine:
        _apply(engine, 1)
        engine.execute("CREATE MATERIALIZED VIEW m AS SELECT id FROM t")
        engine.flush()
        done = _meanwhile(monkeypatch, lambda: engine.execute("DROP MATERIALIZED VIEW m"))
        hj.backup(tmp_path / "w", tmp_path / "copy")
    assert done
    _check(tmp_path / "copy", 1)


def test_what_is_flushed_after_the_snapshot_is_not_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _engine(tmp_path / "w") as engine:
        _apply(engine, 1)
        engine.flush()

        def go_on() -> None:
            _apply(engine, 2)
            engine.compact()

        done = _meanwhile(monkeypatch, go_on)
        assert hj.backup(tmp_path / "w", tmp_path / "copy").upper == 2
    assert done
    _check(tmp_path / "copy", 1)


def test_no_folder_is_left_where_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _engine(tmp_path / "w") as engine:
        _apply(engine, 1)
        engine.flush()
        (file,) = (tmp_path / "w" / "tables" / "t").glob("*.parquet")
        content = file.read_bytes()
        file.write_bytes(content[:-1])
        with pytest.raises(hj.StorageError, match=rf"{file.name} has [\d,]+ bytes, but its table gives it"):
            hj.backup(tmp_path / "w", tmp_path / "copies" / "one")
        file.unlink()
        with pytest.raises(hj.StorageError, match=rf"copies/one cannot be made: .*{file.name}"):
            hj.backup(tmp_path / "w", tmp_path / "copies" / "one")
        file.write_bytes(content)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(backups.shutil, "copy", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            hj.backup(tmp_path / "w", tmp_path / "copies" / "one")
        assert not [*(tmp_path / "copies").iterdir()]
        hj.backup(tmp_path / "w", tmp_path / "copies" / "one")
        _apply(engine, 2)
    _check(tmp_path / "copies" / "one", 1)


def test_what_is_refused(tmp_path: Path) -> None:
    _engine(tmp_path / "w").close()
    for to, problem in ((tmp_path / "w", "is there already"), (tmp_path / "w" / "copy", "is inside the warehouse"),
                        ("s3://bucket/copy", "make the backup in a folder")):  # fmt: skip
        with pytest.raises(hj.HalfjoinError, match=problem):
            hj.backup(tmp_path / "w", to)
    with pytest.raises(hj.StorageError, match="there is no warehouse"):
        hj.backup(tmp_path / "nothing", tmp_path / "copy")
    with pytest.raises(hj.HalfjoinError, match="is in an object store"):
        hj.backup("s3://bucket/w", tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "halfjoin", "backup", tmp_path / "w", tmp_path / "copy"]
    with _engine(tmp_path / "w") as engine:
        _apply(engine, 1)
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(f"{tmp_path}/copy has ") and done.stdout.endswith("bytes, and upper = 2\n")
        again = subprocess.run(command, capture_output=True, text=True)
        assert (again.returncode, again.stdout) == (1, "")
        assert again.stderr.startswith("StorageError: ") and "is there already" in again.stderr
    _check(tmp_path / "copy", 1)
