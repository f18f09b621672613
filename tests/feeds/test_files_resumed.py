"""A reader of files goes on where another one, perhaps of another release, has stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfjoin as hj
from halfjoin.engine.feeds.files import csv_records, formats, json_records, reader
from halfjoin.engine.feeds.files.reader import FILES
from halfjoin.engine.feeds.source import Opening, Reader

DDL = "CREATE TABLE t (k bigint PRIMARY KEY, name text)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


@pytest.fixture
def engine() -> hj.Engine:
    made = hj.Engine()
    made.execute(DDL)
    return made


def opened(engine: hj.Engine, folder: Path) -> Reader:
    options = FILES.options(path=str(folder), settle=0)
    return FILES.open(Opening("s", "1", options, [engine._state.catalog.tables["t"]], memory=1))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("others", [7, 90, 1 << 20])
def test_a_file_goes_on_at_its_record_however_it_is_cut_into_blocks(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch, ending: str, others: int
) -> None:
    """Another release of Arrow, or of this program, may cut it otherwise than the one that began it."""
    lines = {"csv": [f"{k},x" for k in range(60)], "jsonl": [f'{{"k": {k}}}' for k in range(60)], "parquet": []}[ending]
    for bad in (5, 20, 21, 59) if lines else ():
        lines[bad] = "1,2,3"
    if lines:
        (folder / f"a.{ending}").write_text("\n".join([*(["k,name"] if ending == "csv" else []), *lines]))
    else:
        pq.write_table(pa.table({"k": range(60)}), folder / "a.parquet")

    def read(cut: int, position: str | None, polls: int) -> tuple[list[int], list[str], str | None]:
        for module in (csv_records, json_records):
            monkeypatch.setattr(module, "POLL_BYTES", cut)
        monkeypatch.setattr(formats, "POLL_ROWS", cut)
        reading, good, bad = opened(engine, folder), list[int](), list[str]()
        while polls and (polled := reading.poll(position, 0)) is not None:
            good += [k for rows in polled.batches.values() for k in rows["k"].to_pylist()]
            bad += [one.place for one in polled.bad]
            position, polls = polled.position, polls - 1
        reading.close()
        return good, bad, position

    whole = read(31, None, -1)
    assert len(whole[0]) + len(whole[1]) == 60
    for polls in range(1, 8):
        begun = read(31, None, polls)
        rest = read(others, begun[2], -1)
        assert (begun[0] + rest[0], begun[1] + rest[1]) == whole[:2]


@pytest.mark.parametrize("gone", ["no reader", "fewer records"])
def test_a_file_that_cannot_be_read_to_its_place_again_says_so(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    """The file is the same, but what reads it now refuses it, or finds fewer records: its rest would be lost."""
    monkeypatch.setattr(csv_records, "POLL_BYTES", 31)
    (folder / "a.csv").write_text("\n".join(["k,name", *(f"{k},x" for k in range(60))]))
    first = opened(engine, folder).poll(None, 0)
    assert first is not None

    def refused(*_: Any) -> Iterator[Any]:
        if gone == "no reader":
            raise hj.InvalidRow("is not CSV", called="the file")
        yield from ()

    blocks = reader.blocks
    monkeypatch.setattr(reader, "blocks", refused)
    if gone == "no reader":
        again = opened(engine, folder).poll(first.position, 0)
        assert again is not None and "is not CSV" in again.bad[0].reason
    else:
        with pytest.raises(hj.StorageError, match="other records than before"):
            opened(engine, folder).poll(first.position, 0)
    monkeypatch.setattr(reader, "blocks", blocks)
    rest = opened(engine, folder).poll(first.position, 0)
    assert rest is not None and not rest.bad
