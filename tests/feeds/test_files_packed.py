"""Packed files of a folder count as what is in them."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfjoin as hj
from halfjoin.engine.feeds.files import csv_records, json_records

COUNT = 2000


def _zst(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


PACK: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": _zst, "bz2": bz2.compress, "GZ": gzip.compress}


def _data(kind: str) -> bytes:
    if kind == "csv":
        return ("k,name\n" + "".join(f'{k},"n\n{k}"\n' for k in range(COUNT))).encode()
    if kind == "jsonl":
        return "".join(f'{{"k": {k}, "name": "n\\n{k}"}}\n' for k in range(COUNT)).encode()
    file = BytesIO()
    pq.write_table(pa.table({"k": range(COUNT), "name": [f"n\n{k}" for k in range(COUNT)]}), file)
    return file.getvalue()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[hj.Engine]:
    (tmp_path / "in").mkdir()
    with hj.Engine(tmp_path / "w") as made:
        made.execute("CREATE TABLE t (k bigint PRIMARY KEY, name text)")
        yield made


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_packed_file(engine: hj.Engine, tmp_path: Path, kind: str, ending: str) -> None:
    (tmp_path / "in" / f"a.{kind}.{ending}").write_bytes(PACK[ending](_data(kind)))
    engine.create_source("s", "files", "t", path=tmp_path / "in", settle=0)
    assert engine.run_sources(0) == 1
    found = engine.read("t").sort_by("k")
    assert found.to_pylist() == [{"k": k, "name": f"n\n{k}"} for k in range(COUNT)]


def test_parts_that_follow_each_other(engine: hj.Engine, tmp_path: Path) -> None:
    """As programs write that append to a packed file, or pack in several threads."""
    for ending, pack in PACK.items():
        if ending != "GZ":
            data = b"".join(map(pack, (b'{"k": 1}\n{"k"', b": 2}", b'\n{"k": 3}\n')))
            (tmp_path / "in" / f"a.{ending}").write_bytes(data)
    engine.create_source("s", "files", "t", path=tmp_path / "in", settle=0, format="jsonl", mode="upserts")
    assert engine.run_sources(0) == 3
    assert sorted(engine.read("t")["k"].to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_large_packed_file_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for module in (csv_records, json_records):
        monkeypatch.setattr(module, "POLL_BYTES", 400)
    file = tmp_path / "in" / f"a.{kind}.gz"
    file.parent.mkdir()
    for wanted in ("x", "1500"):
        values = ["k", *map(str, range(1500)), wanted, *map(str, range(1501, COUNT))]
        lines = values if kind == "csv" else [f'{{"k": {value}}}' for value in values[1:]]
        file.write_bytes(gzip.compress("\n".join(lines).encode()))
        with hj.Engine(tmp_path / "w", memory=1) as engine:
            if wanted == "x":
                engine.execute("CREATE TABLE t (k bigint)")
                engine.create_source("s", "files", "t", path=tmp_path / "in", settle=0)
                with pytest.raises(hj.InvalidRow, match=r"a\.\w+\.gz:150[12]"):
                    engine.run_sources(0)
                assert '"record"' in str(engine.stats().sources[0].position)
            else:
                engine.run_sources(0)
                assert sorted(engine.read("t")["k"].to_pylist()) == list(range(COUNT))


@pytest.mark.parametrize(
    "data", [gzip.compress(_data("csv"))[:-200], b"k\n1\n", b"", b"\x1f\x8b\x08\0"],
    ids=["cut off", "not packed", "empty", "the start alone"],
)  # fmt: skip
def test_what_cannot_be_unpacked_is_a_bad_record(engine: hj.Engine, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "in" / "a.csv.gz").write_bytes(data)
    (tmp_path / "in" / "b.csv").write_bytes(b"k\n7\n")
    engine.create_source("s", "files", "t", errors="table", path=tmp_path / "in", settle=0)
    engine.run_sources(0)
    assert engine.read("t")["k"].to_pylist() == [7]
    bad = engine.query("SELECT place, reason FROM s_errors").to_pylist()
    assert [one["place"] for one in bad] == (["a.csv.gz"] if data else [])
    assert all("cannot be unpacked" in one["reason"] for one in bad)
