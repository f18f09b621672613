"""What is refused leaves no files: a batch that does not fit on the disk must leave room for one that does."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

import halfjoin as hj
from halfjoin.engine.storage import filing
from halfjoin.engine.storage.delta import DeltaFolder
from halfjoin.engine.storage.journal import Journal
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.errors import StorageError

ROWS = [{"k": number, "v": number % 7} for number in range(40)]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[hj.Engine]:
    """An engine with a table and a view, whose larger runs are in files."""
    monkeypatch.setattr(filing, "BULK_ROWS", 30)
    with hj.Engine(tmp_path / "w", clock="own") as made:
        made.execute("CREATE TABLE t (k bigint, v bigint)")
        made.execute("CREATE MATERIALIZED VIEW w AS SELECT k, v FROM t WHERE k >= 0")
        made.apply({"t": ROWS}, time=1)
        yield made
    with hj.Engine(tmp_path / "w") as again:
        assert again.read("t").num_rows == again.read("w").num_rows == 80


def files(folder: Path) -> set[Path]:
    """The files of rows."""
    return {*folder.glob("w/*/*/*.parquet")}


def full_journal(*args: Any, **named: Any) -> None:
    """Fail as a journal on a full disk."""
    raise StorageError("the journal failed: database or disk is full")


def refuse(*args: Any) -> None:
    """Fail as on a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


@contextmanager
def full(patch: pytest.MonkeyPatch, folder: str) -> Iterator[None]:
    """Inside, nothing can be written to the folders of a kind."""
    write = LocalPlace.write
    with patch.context() as within:
        within.setattr(LocalPlace, "write", lambda at, *a: (refuse if folder in at.path.parts else write)(at, *a))
        yield


def test_a_batch_that_does_not_fit(engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(tmp_path)
    with full(monkeypatch, "views"):
        for _ in range(3):
            with pytest.raises(StorageError, match="No space left"):
                engine.apply({"t": ROWS}, time=2)
            assert len(files(tmp_path)) <= len(before) + 1
    assert engine.read("w").num_rows == 40
    assert files(tmp_path) == before
    engine.apply({"t": ROWS}, time=2)


def test_a_view_that_does_not_fit(engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "define", refuse)
        with pytest.raises(OSError, match="No space left"):
            engine.execute("CREATE MATERIALIZED VIEW x AS SELECT k FROM t")
    assert len(files(tmp_path)) == len(before) + 1
    engine.apply({"t": ROWS}, time=2)
    assert not [*(tmp_path / "w" / "views" / "x").glob("*.parquet")]
    assert before < files(tmp_path)


def test_files_stay_where_an_entry_may_come_back(
    engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of the journal that failed late may be found by who opens it after a kill, until there is another."""
    monkeypatch.setattr(Journal, "keep", full_journal)
    before, commit = files(tmp_path), Journal._keep

    def late(self: Journal) -> None:
        commit(self)
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_keep", late)
        with pytest.raises(StorageError, match="disk I/O error"):
            engine.apply({"t": ROWS}, time=2)
    engine.read("t")
    lost = files(tmp_path) - before
    assert len(lost) == 2
    engine.apply({"t": ROWS}, time=2)
    assert len(files(tmp_path) - before) == 2
    assert not lost & files(tmp_path)


def test_a_batch_that_only_the_journal_has_no_room_for(
    engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files must not take the room of the next batch, which may need files, too."""
    before = files(tmp_path)
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", full_journal)
            with pytest.raises(StorageError, match="disk is full"):
                engine.apply({"t": ROWS}, time=2)
        with full(monkeypatch, "tables"), pytest.raises(StorageError, match="No space left"):
            engine.apply({"t": ROWS}, time=2)
        assert files(tmp_path) == before
    engine.apply({"t": ROWS}, time=2)


@pytest.mark.parametrize("work", ["flush", "compact"])
def test_a_flush_whose_commit_fails(
    engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    if work == "compact":
        engine.flush()
    engine.apply({"t": ROWS[:10]}, time=2)
    before = files(tmp_path)

    def failing(*args: Any, **named: Any) -> None:
        raise DeltaError("Generic error\n  \x1b[31m↳\x1b[0m No space left on device\n")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", failing)
        for _ in range(3):
            with pytest.raises(StorageError, match="tables/t cannot be flushed: Generic error ↳ No space left"):
                getattr(engine, work)()
            assert files(tmp_path) == before
    getattr(engine, work)()
    engine.apply({"t": ROWS[10:]}, time=3)


def test_an_interrupt_after_a_commit_leaves_its_files(
    engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.apply({"t": ROWS}, time=2)
    commit = DeltaFolder._commit

    def interrupted(self: DeltaFolder, *args: Any) -> int:
        commit(self, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DeltaFolder, "_commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.compact()
    engine.compact()

def test_a_fill_through_files_that_are_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view over a shared node is filled from files of work in progress, if memory is short."""
    with hj.Engine(tmp_path / "w", clock="own", memory=1) as engine:
        engine.execute("CREATE TABLE t (k bigint, v bigint)")
        engine.execute("CREATE MATERIALIZED VIEW s AS SELECT v, sum(k) AS s FROM t GROUP BY v")
        engine.apply({"t": ROWS}, time=1)
        mkdir = Path.mkdir
        for method in (mkdir, LocalPlace.write):
            owner = Path if method is mkdir else LocalPlace

            def failing(at: Any, *args: Any, method: Any = method, **named: Any) -> Any:
                return refuse() if "staging" in str(at) else method(at, *args, **named)

            with monkeypatch.context() as patch:
                patch.setattr(owner, method.__name__, failing)
                with pytest.raises(StorageError, match=r"files of work in progress cannot be .*No space"):
                    engine.execute("CREATE MATERIALIZED VIEW x AS SELECT v, s FROM (SELECT v, sum(k) AS s FROM t "
                                   "GROUP BY v) q WHERE s > 3")  # fmt: skip
        engine.execute("CREATE MATERIALIZED VIEW x AS SELECT v, s FROM (SELECT v, sum(k) AS s FROM t GROUP BY v) q "
                       "WHERE s > 3")  # fmt: skip
        assert engine.read("x").num_rows == 7


def test_what_sqlite_does_not_say_of_a_full_disk(
    engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot enlarge the file beside the journal, it says `disk I/O error`, as for a broken disk."""
    problem = sqlite3.OperationalError("disk I/O error")
    problem.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"
    engine.apply({"t": ROWS}, time=2)

    def failing(*_: object) -> None:
        raise problem

    for left, said in ((0, "disk I/O error: no space left on the disk;"), (1 << 20, "disk I/O error;")):
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_keep", failing)
            found = SimpleNamespace(f_bavail=left, f_frsize=1, f_files=0, f_favail=0)
            patch.setattr("halfjoin.engine.storage.journal_file.os.statvfs", lambda _, found=found: found)
            with pytest.raises(StorageError, match=said):
                engine.apply({"t": ROWS}, time=3)


def test_a_full_disk_has_its_own_sqlstate(engine: hj.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients tell it from a broken disk: PostgreSQL's is 53100."""
    with full(monkeypatch, "views"), pytest.raises(StorageError) as found:
        engine.apply({"t": ROWS}, time=2)
    assert found.value.sqlstate == "53100"
    assert StorageError("the file is damaged").sqlstate == "58030"
    engine.apply({"t": ROWS}, time=2)
