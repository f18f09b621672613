"""The formats of a journal: older ones become the newest, newer ones are refused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.batch.clock import Closing
from halfjoin.engine.storage.encoding import Piece
from halfjoin.engine.storage.journal import New
from halfjoin.engine.storage.object_journal import ObjectJournal
from halfjoin.engine.storage.place import LocalPlace
from tests.oracle.rows import bag
from tests.storage.test_storage import DDL
from tests.support.older_journal import OLDER, age


@pytest.mark.parametrize("format", [1, 2, 3])
def test_a_writer_opens_older_formats(tmp_path: Path, format: int) -> None:
    folder = tmp_path / "w"
    small = {"o": [{"id": 1, "v": 9, "note": "a"}, {"id": 2, "v": 3}, {"id": 3, "v": 9}]}
    large = {"o": [{"id": id, "v": id % 3} for id in range(100, 2_000)]}
    with hj.Engine(folder) as engine:
        engine.execute(DDL)
        engine.apply(small, time=3, batch_id="one")
        engine.apply(large, time=50, batch_id="large")
        before = {name: {at: bag(engine.read(name, as_of=at)) for at in (3, 50)} for name in ("o", "big")}
        upper = engine.stats().upper
    age(folder, format)
    with pytest.raises(hj.StorageError, match=f"older format {format}; open it once without read_only"):
        hj.Engine(folder, read_only=True)
    for number in range(2):
        with hj.Engine(folder) as engine:
            assert engine.stats().upper == upper + number
            assert {name: {at: bag(engine.read(name, as_of=at)) for at in (3, 50)} for name in before} == before
            assert engine.apply(large, time=50, batch_id="large").upper == upper
            with pytest.raises(hj.InvalidTime, match="is closed" if format == 1 else "batch 'large' submitted at"):
                engine.apply({"o": [{"id": 9_999, "v": 1}]}, time=50)
            engine.apply({"o": [{"id": 5_000 + number, "v": 1}]}, time=upper + number)
            engine.flush()
    hj.Engine(folder, read_only=True).close()


def test_an_older_journal_in_an_object_store_becomes_a_newer_one(tmp_path: Path) -> None:
    journal = ObjectJournal(LocalPlace(tmp_path))
    made = New("tables", "t", 0, b"columns", [Piece(1, 4, b"first"), Piece(2, 5, b"second")])
    journal.define("", 0, [made], (), (), {}, (), (), ())
    journal.append({1: [Piece(3, 7, b"third")]}, 8, None, Closing(0, 8, 12, "one"), {})
    journal.append({}, 8, None, None, {})
    found = journal.collections(), journal.waiting(), journal.closings(), journal.entry, journal.upper
    with journal._transaction():
        for statement in OLDER.strip().split(";\n"):
            journal._write(statement)
        journal._set(format=3)
    with pytest.raises(hj.StorageError, match="older format 3"):
        ObjectJournal(LocalPlace(tmp_path), read_only=True)
    for read_only in (False, True):
        again = ObjectJournal(LocalPlace(tmp_path), read_only=read_only)
        if not read_only:
            with again.in_newest_format():
                again.lay_out({1: b"columns"})
        assert (again.collections(), again.waiting(), again.closings(), again.entry, again.upper) == found
        assert again.pieces(1, 0) == [b"first", b"second", b"third"] and again.pieces(1, 1, 2) == [b"third"]


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    hj.Engine(tmp_path).close()
    with sqlite3.connect(tmp_path / "journal.sqlite") as journal:
        journal.execute("UPDATE meta SET value = 99 WHERE key = 'format'")
    journal.close()
    with pytest.raises(hj.StorageError, match=r"format 99.*up to 4"):
        hj.Engine(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda kept: kept.update(meaning=99), "evaluates some expressions of views otherwise"),
        (lambda kept: kept.update(horizons=[]), "gives definitions 'horizons'"),
        (lambda kept: kept["tables"][1]["columns"][0].update(shards=4), "gives definitions 'shards'"),
    ],
)
def test_a_catalog_of_a_newer_version_is_refused(tmp_path: Path, change: Callable[[Any], None], said: str) -> None:
    with hj.Engine(tmp_path) as engine:
        engine.execute("CREATE TABLE t (a integer); CREATE TABLE u (a integer)")
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as journal:
        kept = json.loads(journal.execute("SELECT value FROM meta WHERE key = 'catalog'").fetchone()[0])
        change(kept)
        with journal:
            journal.execute("UPDATE meta SET value = ? WHERE key = 'catalog'", (json.dumps(kept),))
    for read_only in (False, True):
        with pytest.raises(hj.StorageError, match=f"{said}.*open the warehouse with that version or a newer one"):
            hj.Engine(tmp_path, read_only=read_only)


def test_what_an_older_catalog_has_besides_is_left_out(tmp_path: Path) -> None:
    with hj.Engine(tmp_path) as engine:
        engine.execute("CREATE TABLE t (a integer)")
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as journal, journal:
        kept = json.loads(journal.execute("SELECT value FROM meta WHERE key = 'catalog'").fetchone()[0])
        kept.update(meaning=1, horizons=[])
        journal.execute("UPDATE meta SET value = ? WHERE key = 'catalog'", (json.dumps(kept),))
    hj.Engine(tmp_path).close()
