"""A reader of files goes on where another one, perhaps of another release, has stopped."""

from __future__ import annotations

from codecs import BOM_UTF8
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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Arrow cannot give the text to Python
@pytest.mark.parametrize("cut", [31, 1 << 20])
def test_a_csv_record_that_is_not_utf8_and_has_other_columns_is_the_only_bad_one(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    monkeypatch.setattr(csv_records, "POLL_BYTES", cut)
    lines = [b"%d,x\xc3\xa9" % k for k in range(60)]
    lines[9], lines[30], lines[59] = b"9,caf\xe9,3", b"30,caf\xe9", b"59"
    (folder / "a.csv").write_bytes(BOM_UTF8 + b"k,name\n" + b"\n".join(lines))
    good, bad, position = list[tuple[int, str]](), list[tuple[str, str]](), None
    for _ in range(100):  # each time by another reader
        reading = opened(engine, folder)
        polled = reading.poll(position, 0)
        reading.close()
        if polled is None:
            break
        for rows in polled.batches.values():
            good += zip(rows["k"].to_pylist(), rows["name"].to_pylist(), strict=True)
        bad += [(one.text, one.reason) for one in polled.bad]
        position = polled.position
    assert good == [(k, "xé") for k in range(60) if k not in (9, 30, 59)]
    assert bad == [("9,caf\\xe9,3", "has 3 values, not 2"), ("30,caf\\xe9", "name: is not UTF-8"),
                   ("59", "has 1 values, not 2")]  # fmt: skip


def test_a_file_that_is_no_text_at_all_is_no_empty_file(engine: hj.Engine, folder: Path) -> None:
    """A compressed file may have no end of a line, so that all of it seems to be a header."""
    (folder / "a.csv").write_bytes(b"\x1f\x8b\x08\x00k,name")
    polled = opened(engine, folder).poll(None, 0)
    assert polled is not None and [one.reason for one in polled.bad] == [
        "a.csv: is not CSV in UTF-8: its header is not"]  # fmt: skip


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Arrow cannot give the text to Python
def test_a_reader_that_has_failed_takes_nothing_from_the_next_one(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow reads ahead in a thread, which goes on when a record cannot be told of."""
    given, plain = list[Any](), csv_records.arrow_csv.open_csv

    def opens(file: Any, *options: Any) -> Any:
        for failed in given:  # as its thread does at any time
            assert failed.read(31) == b""
        if isinstance(file, csv_records._Given):
            given.append(file)
        return plain(file, *options)

    monkeypatch.setattr(csv_records, "POLL_BYTES", 31)
    monkeypatch.setattr(csv_records.arrow_csv, "open_csv", opens)
    lines = [b"%d,x\xc3\xa9" % k for k in range(60)]
    lines[9] = b"9,caf\xe9,3"
    (folder / "a.csv").write_bytes(b"k,name\n" + b"\n".join(lines))
    reading = opened(engine, folder)
    found, position = list[int](), None
    while (polled := reading.poll(position, 0)) is not None:
        found += [k for rows in polled.batches.values() for k in rows["k"].to_pylist()]
        position = polled.position
        for file in given[:-1]:
            assert file.read(31) == b""
    reading.close()
    assert found == [k for k in range(60) if k != 9] and len(given) >= 2
    assert all(file.read(31) == b"" for file in given)
