"""Parquet files of a folder: damaged ones, and moments that Spark wrote."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfjoin as hj
from halfjoin.engine.feeds.files import formats

ROWS = pa.table({"k": range(1000), "name": [f"text {k}" for k in range(1000)]})


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[hj.Engine]:
    (tmp_path / "in").mkdir()
    with hj.Engine(tmp_path / "w") as made:
        made.execute("CREATE TABLE t (k bigint PRIMARY KEY, name text)")
        yield made


def _spoilt(path: Path, group: int, *, checksum: bool = False) -> None:
    """Write a file of ten row groups, in one of which a page of texts is damaged."""
    pq.write_table(ROWS, path, row_group_size=100, use_dictionary=False, write_page_checksum=checksum,
                   compression="none" if checksum else "snappy")  # fmt: skip
    start = pq.ParquetFile(path).metadata.row_group(group).column(1).data_page_offset
    data = bytearray(path.read_bytes())
    for place in range(start + 400, start + 403) if checksum else range(start + 40, start + 100):
        data[place] ^= 1 if checksum else 0xA5
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("group", [0, 5])
def test_a_damaged_page(
    engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int, checksum: bool
) -> None:
    """With errors = 'table' it is a bad record, and what comes before it arrives, as do other files; else nothing of
    the file does. A text of other letters would be read if nobody looked at the checksum."""
    monkeypatch.setattr(formats, "POLL_ROWS", 100)
    _spoilt(tmp_path / "in" / "a.parquet", group, checksum=checksum)
    pq.write_table(pa.table({"k": [5000]}), tmp_path / "in" / "b.parquet")
    engine.create_source("s", "files", "t", path=tmp_path / "in", settle=0)
    with pytest.raises(hj.InvalidRow, match=rf"a\.parquet: is damaged behind record {100 * group}: "):
        engine.run_sources(0)
    assert engine.read("t").num_rows == 0
    engine.execute("DROP SOURCE s")
    engine.create_source("s", "files", "t", errors="table", path=tmp_path / "in", settle=0)
    engine.run_sources(0)
    assert sorted(engine.read("t")["k"].to_pylist()) == [*range(100 * group), 5000]
    (bad,) = engine.query("SELECT place, reason FROM s_errors").to_pylist()
    assert bad["place"] == "a.parquet"
    assert f"is damaged behind record {100 * group}: " in bad["reason"]


def test_a_damaged_page_that_is_mended(engine: hj.Engine, tmp_path: Path) -> None:
    _spoilt(tmp_path / "in" / "a.parquet", 5)
    engine.create_source("s", "files", "t", path=tmp_path / "in", settle=0)
    with pytest.raises(hj.InvalidRow, match="is damaged"):
        engine.run_sources(0)
    pq.write_table(ROWS, tmp_path / "in" / "a.parquet")
    engine.run_sources(0)
    assert engine.read("t").num_rows == 1000


def test_a_store_that_fails_is_no_bad_record(
    engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source tries again later, and loses no row, whichever read of the file fails."""
    many = pa.table({"k": range(30_000), "name": [f"{k**9}" for k in range(30_000)]})
    pq.write_table(many, tmp_path / "in" / "a.parquet", row_group_size=10_000)
    read, left = formats._Told.read, [0]

    def broken(self: Any, size: int = -1) -> bytes:
        def gone(_: int) -> bytes:
            raise OSError("the store is gone")

        left[0] -= 1
        return self._tried(gone, size) if left[0] == 0 else read(self, size)

    monkeypatch.setattr(formats._Told, "read", broken)
    engine.create_source("s", "files", "t", errors="table", path=tmp_path / "in", settle=0)
    failed = 0
    while engine.read("t").num_rows == 0:
        left[0] = failed + 1
        try:
            engine.run_sources(0)
        except hj.StorageError as problem:
            assert "a.parquet cannot be read: " in str(problem)
            failed += 1
    assert failed > 1  # the footer, and the rows
    assert engine.read("t").num_rows == 30_000
    assert engine.query("SELECT * FROM s_errors").num_rows == 0


def test_moments_that_are_written_as_spark_does(engine: hj.Engine, tmp_path: Path) -> None:
    """As INT96, of which nanoseconds would reach from 1677 to 2262 alone."""
    moments = [dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, dt.UTC), dt.datetime(1, 1, 1, tzinfo=dt.UTC), None]
    rows = pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC"))})
    pq.write_table(rows, tmp_path / "in" / "a.parquet", use_deprecated_int96_timestamps=True)
    engine.execute("CREATE TABLE m (at timestamptz)")
    engine.create_source("s", "files", "m", path=tmp_path / "in", settle=0)
    engine.run_sources(0)
    assert engine.read("m")["at"].to_pylist() == moments
