"""A time with an offset, by what brings it: docs/feeds.md says which of them leave the offset out."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

import halfjoin as hj
from halfjoin.cli.commands import app

TEXT = "2024-01-01T00:00:00+02:00"
MOMENT = dt.datetime.fromisoformat(TEXT)
UTC, CLOCK = dt.datetime(2023, 12, 31, 22), dt.datetime(2024, 1, 1)


def _in_file(name: str, data: bytes) -> Callable[[hj.Engine, Path], None]:
    def put(engine: hj.Engine, folder: Path) -> None:
        (folder / name).write_bytes(data)
        engine.create_source("s", "files", "t", path=folder, pattern=name, settle=0)
        engine.run_sources(0)

    return put


def _parquet(rows: pa.Table) -> bytes:
    file = BytesIO()
    pq.write_table(rows, file)
    return file.getvalue()


def _loaded(name: str, text: str) -> Callable[[hj.Engine, Path], None]:
    def put(engine: hj.Engine, folder: Path) -> None:
        (folder / name).write_text(text)
        engine.close()
        assert CliRunner().invoke(app, ["load", str(folder / "w"), "t", str(folder / name)]).exit_code == 0

    return put


def _followed(engine: hj.Engine, folder: Path) -> None:
    write_deltalake(folder / "d", ZONED)
    engine.follow("t", folder / "d")


ROWS = [{"z": TEXT, "u": TEXT}]
CSV, JSON = f"z,u\n{TEXT},{TEXT}\n", json.dumps(ROWS[0])
ZONED = pa.table({name: pa.array([MOMENT], pa.timestamp("us", "+02:00")) for name in "zu"})
WAYS: dict[str, tuple[Callable[[hj.Engine, Path], Any], dt.datetime]] = {
    "literal": (lambda engine, _: engine.execute(f"INSERT INTO t VALUES ('{TEXT}', '{TEXT}')"), CLOCK),
    "text as parameter": (lambda engine, _: engine.execute("INSERT INTO t VALUES ($1, $2)", [TEXT, TEXT]), CLOCK),
    "COPY": (lambda engine, _: engine.connect().copy_in("COPY t FROM STDIN CSV HEADER", CSV.encode()), CLOCK),
    "CSV of a folder": (_in_file("a.csv", CSV.encode()), CLOCK),
    "timestamptz": (lambda engine, _: engine.execute(f"INSERT INTO t SELECT m, m FROM (SELECT timestamptz '{TEXT}') "
                                                     "AS x (m)"), UTC),
    "parameter": (lambda engine, _: engine.execute("INSERT INTO t VALUES ($1, $2)", [MOMENT, MOMENT]), UTC),
    "texts": (lambda engine, _: engine.apply({"t": ROWS}), UTC),
    "moments": (lambda engine, _: engine.apply({"t": [{"z": MOMENT, "u": MOMENT}]}), UTC),
    "arrow": (lambda engine, _: engine.apply({"t": ZONED}), UTC),
    "pandas": (lambda engine, _: engine.apply({"t": pd.DataFrame({name: [pd.Timestamp(TEXT)] for name in "zu"})}), UTC),
    "debezium": (lambda engine, _: engine.apply({"t": hj.debezium([{"op": "c", "after": ROWS[0]}])}), UTC),
    "JSON of a folder": (_in_file("a.jsonl", JSON.encode()), UTC),
    "Parquet of a folder": (_in_file("a.parquet", _parquet(ZONED)), UTC),
    "texts of Parquet": (_in_file("a.parquet", _parquet(pa.Table.from_pylist(ROWS))), UTC),
    "delta": (_followed, UTC),
    "loaded CSV": (_loaded("l.csv", CSV), UTC),
    "loaded JSON": (_loaded("l.jsonl", JSON), UTC),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_time_with_an_offset(tmp_path: Path, way: str) -> None:
    put, wanted = WAYS[way]
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (z timestamptz, u timestamp)")
        put(engine, tmp_path)
    with hj.Engine(tmp_path / "w") as engine:
        (row,) = engine.read("t").to_pylist()
        assert (row["z"], row["u"]) == (MOMENT, wanted)
