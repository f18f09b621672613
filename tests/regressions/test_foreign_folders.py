"""An engine leaves alone what it did not make: folders of others, and warehouses whose journal is missing."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

import halfjoin as hj
from halfjoin.engine.storage import filing
from halfjoin.engine.storage.journal import Journal
from halfjoin.engine.storage.place import LocalPlace
from tests.oracle.rows import bag

ROWS = [{"k": number} for number in range(40)]


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _filled(folder: Path) -> None:
    with hj.Engine(folder) as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
        engine.apply({"t": ROWS}, time=1)
        engine.flush()


@pytest.mark.parametrize("path", ["views/report.sql", "tables/t/x.csv", "errors/a", "arrangements/b/c", "notes.txt",
                                  "lock", "staging/halfjoin-01234567/1/x", ".hidden/x"])  # fmt: skip
def test_a_folder_that_is_no_warehouse_is_refused(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "project"
    (folder / path).parent.mkdir(parents=True)
    (folder / path).write_text("precious")
    for read_only in (False, True):
        with pytest.raises(hj.StorageError, match="project"):
            hj.Engine(folder, read_only=read_only)
        assert _contents(folder) == {path: b"precious"}
    assert {entry.name for entry in folder.iterdir()} == {path.split("/")[0]}


@pytest.mark.parametrize("damage", ["missing", "empty", "no schema", "another's", "text"])
def test_a_warehouse_without_its_journal_is_refused(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "w"
    _filled(folder)
    journal = folder / "journal.sqlite"
    journal.unlink()
    match damage:
        case "empty":
            journal.touch()
        case "text":
            journal.write_text("not a database")
        case "no schema" | "another's":
            with sqlite3.connect(journal) as db:
                db.execute("CREATE TABLE meta (x)" if damage == "another's" else "PRAGMA user_version = 1")
            db.close()
    before = _contents(folder)
    for read_only in (False, True):
        with pytest.raises(hj.StorageError, match=r"journal\.sqlite.*backup"):
            hj.Engine(folder, read_only=read_only)
        assert _contents(folder) == before


def test_a_journal_whose_last_pages_alone_are_there_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "journal.sqlite").touch()
    (folder / "journal.sqlite-wal").write_bytes(b"pages")
    with pytest.raises(hj.StorageError, match=r"journal\.sqlite"):
        hj.Engine(folder)
    assert (folder / "journal.sqlite-wal").read_bytes() == b"pages"


@pytest.mark.parametrize("left", ["nothing", "lock", "empty journal", "journal without schema"])
def test_what_an_opening_that_was_killed_left_is_no_obstacle(tmp_path: Path, left: str) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    if left != "nothing":
        (folder / "lock").write_text("process 1 on x since 2026")
    if left.startswith("empty"):
        (folder / "journal.sqlite").touch()
    if left.startswith("journal"):
        with sqlite3.connect(folder / "journal.sqlite") as db:
            db.execute("PRAGMA journal_mode = WAL")
        db.close()
    _filled(folder)
    with hj.Engine(folder) as engine:
        assert engine.read("v").num_rows == len(ROWS)


def test_folders_that_no_entry_named_stay(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    _filled(folder)
    names = ["tables/mine", "views/mine", "errors/mine", "arrangements/mine", "arrangements/t-1/mine",
             "staging/halfjoin-01234567"]  # fmt: skip
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "x").write_text("precious")
    with hj.Engine(folder) as engine:
        for kind in ("TABLE mine (k bigint)", "MATERIALIZED VIEW mine AS SELECT k FROM t"):
            with pytest.raises(hj.StorageError, match=r"mine.*move it"):
                engine.execute(f"CREATE {kind}")
        assert engine.read("t").num_rows == len(ROWS)
        engine.execute("CREATE TABLE other (k bigint); DROP TABLE other")
    hj.Engine(folder).close()
    assert all((folder / name / "x").read_text() == "precious" for name in names)


def test_files_of_others_in_a_tables_folder_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "w"
    _filled(folder)
    note = folder / "tables" / "t" / "note.txt"
    note.write_text("precious")
    os.utime(note, (0, 0))
    with hj.Engine(folder) as engine:
        engine.apply({"t": [{"k": 100}]}, time=2)
        engine.compact()
    assert note.read_text() == "precious"


def test_a_view_dropped_while_its_folder_was_held_goes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "w"
    _filled(folder)
    with hj.Engine(folder) as engine, monkeypatch.context() as held:

        def refused(self: LocalPlace, keep: object = ()) -> None:
            raise PermissionError(f"no permission for {self}")

        held.setattr(LocalPlace, "clear", refused)
        engine.execute("DROP MATERIALIZED VIEW v")
    assert (folder / "views" / "v").exists()
    hj.Engine(folder).close()
    assert not (folder / "views" / "v").exists()


def test_what_a_killed_definition_had_written_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "w"
    _filled(folder)
    with hj.Engine(folder) as engine, monkeypatch.context() as killed:
        killed.setattr(filing, "BULK_ROWS", 10)
        killed.setattr(Journal, "define", _killed)
        with pytest.raises(ZeroDivisionError):
            engine.execute("CREATE MATERIALIZED VIEW big AS SELECT k + 1 AS l FROM t")
        engine._closed, engine._released = "killed", True  # as if the process had ended
        engine._store._journal.close()  # type: ignore[attr-defined]
        engine._store._lock.release()  # type: ignore[attr-defined]
    with hj.Engine(folder) as engine:
        assert not (folder / "views" / "big").exists()
        engine.execute("CREATE MATERIALIZED VIEW big AS SELECT k + 1 AS l FROM t")
        assert bag(engine.query("SELECT min(l) AS m FROM big")) == {(1,): 1}


def _killed(*_: object) -> None:
    raise ZeroDivisionError


def test_a_sink_whose_making_failed_takes_its_own_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "w"
    _filled(folder)
    target = folder / "sinks" / "s"
    with hj.Engine(folder) as engine:
        for name in ("x.csv", ".x", "deep/er/x"):
            (target / name).parent.mkdir(parents=True)
            (target / name).write_text("precious")
            with pytest.raises(hj.Conflict, match="holds files already"):
                engine.execute("CREATE SINK s FROM t INTO DELTA 's'")
            assert (target / name).read_text() == "precious"
            shutil.rmtree(target)
