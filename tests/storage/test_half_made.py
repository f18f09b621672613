"""A process that ends while it makes a warehouse or a table leaves nothing that the next one refuses. What it has made
survives a power failure, and so do backups."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

import halfjoin as hj
from halfjoin.engine.storage import backup, place
from halfjoin.engine.storage.journal import Journal
from halfjoin.engine.storage.place import LOG

PAGE = 4096


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files and folders that are synced from now on."""
    found: list[Path] = []
    sync = place.sync

    def noted(path: Path) -> None:
        found.append(path)
        sync(path)

    for module in (place, backup):
        monkeypatch.setattr(module, "sync", noted)
    return found


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # since Python 3.12: it is meant
@pytest.mark.parametrize("pages", range(1, 14, 2))
def test_a_process_that_ends_while_it_makes_the_journal(tmp_path: Path, pages: int) -> None:
    (tmp_path / "w").mkdir()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # the system kills it where a file would become longer
        resource.setrlimit(resource.RLIMIT_FSIZE, (pages * PAGE, pages * PAGE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        Journal(tmp_path / "w")
        os._exit(0)
    os.waitpid(pid, 0)
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint); INSERT INTO t VALUES (1)")
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.read("t").to_pylist() == [{"k": 1}]


def _leave(log: Path, names: list[str]) -> None:
    """Leave what delta-rs writes before it gives a commit its name."""
    log.mkdir(parents=True, exist_ok=True)
    for name in names:
        (log / name).write_text('{"proto')


def test_a_process_that_ends_while_it_makes_a_table(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint); INSERT INTO t VALUES (1)")
        _leave(tmp_path / "w" / "tables" / "t" / LOG, [f"{0:020}.json#1"])
        engine.flush()
        engine.execute("INSERT INTO t VALUES (2)")
        engine.flush()
    assert DeltaTable(tmp_path / "w" / "tables" / "t").to_pyarrow_table().num_rows == 2
    hj.backup(tmp_path / "w", tmp_path / "b")
    with hj.Engine(tmp_path / "b") as engine:
        assert sorted(engine.read("t")["k"].to_pylist()) == [1, 2]


def test_what_others_left_in_the_log_does_not_keep_a_commit_from_being_synced(
    tmp_path: Path, synced: list[Path]
) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint); INSERT INTO t VALUES (1)")
        engine.flush()
        log = tmp_path / "w" / "tables" / "t" / LOG
        next = len(list(log.glob("*.json")))
        _leave(log, [f"{next:020}.json#{number}" for number in (1, 2, 3)])
        engine.execute("INSERT INTO t VALUES (2)")
        engine.flush()
        assert log / f"{next:020}.json" in synced


def test_new_folders_above_a_backup_are_synced(tmp_path: Path, synced: list[Path]) -> None:
    hj.Engine(tmp_path / "w").close()
    hj.backup(tmp_path / "w", tmp_path / "a" / "b" / "made")
    assert {tmp_path, tmp_path / "a", tmp_path / "a" / "b"} <= set(synced)


_FLUSHING = """
import os, sys
import halfjoin as hj
from halfjoin.engine.storage.place import LOG, LocalPlace
def ended(self):
    if list((self.path / LOG).glob("*.checkpoint.parquet")):
        os._exit(0)
LocalPlace.make_durable = ended
engine = hj.Engine(sys.argv[1])
engine.execute("CREATE TABLE t (k bigint)")
while True:
    engine.execute("INSERT INTO t VALUES (1)")
    engine.flush()
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse whose process ended after a commit with a checkpoint, before any of it was synced."""
    folder = tmp_path_factory.mktemp("ended") / "w"
    subprocess.run([sys.executable, "-c", _FLUSHING, str(folder)], check=True)
    return folder


def _harm(log: Path, harm: str) -> None:
    """What a power failure may do to the newest checkpoint."""
    (newest,) = log.glob("*.checkpoint.parquet")
    if harm == "gone":
        newest.unlink()
    else:
        newest.write_bytes(newest.read_bytes()[: 0 if harm == "empty" else 1000])


@pytest.mark.parametrize("harm", ["none", "empty", "half", "gone"])
def test_a_power_failure_after_a_checkpoint_of_a_table(
    tmp_path: Path, ended: Path, synced: list[Path], harm: str
) -> None:
    shutil.copytree(ended, tmp_path / "w")
    log = tmp_path / "w" / "tables" / "t" / LOG
    newest = max(log.glob("*.json"))
    if harm != "none":
        _harm(log, harm)
    with hj.Engine(tmp_path / "w") as engine:
        rows = engine.read("t").num_rows
        engine.flush()
        assert newest in synced  # the journal forgets what is in it
        engine.execute("INSERT INTO t VALUES (2)")
        engine.flush()
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        assert engine.read("t").num_rows == rows + 1 == DeltaTable(log.parent).to_pyarrow_table().num_rows


@pytest.mark.parametrize("harm", ["empty", "half", "gone"])
def test_a_power_failure_after_a_checkpoint_of_a_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    monkeypatch.setattr("halfjoin.engine.sinks.table.CHECKPOINT_EVERY", 3)
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint); CREATE SINK s FROM t INTO DELTA 's'")
        while not list((log := tmp_path / "w" / "sinks" / "s" / LOG).glob("*.checkpoint.parquet")):
            engine.execute("INSERT INTO t VALUES (1)")
            engine.flush()
        rows = engine.read("t").num_rows
    _harm(log, harm)
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("INSERT INTO t VALUES (2)")
        engine.flush()
    assert DeltaTable(log.parent).to_pyarrow_table().num_rows == rows + 1
