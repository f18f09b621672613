"""Sources FROM FILES with `recursive`: the folders in a folder, and the columns that their names give."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from time import sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from typer.testing import CliRunner

import halfjoin as hj
from halfjoin.cli.commands import app

DDL = "CREATE TABLE t (day date, city text, k bigint, n numeric(8,2));"
DAY = date(2024, 1, 2)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[hj.Engine]:
    with hj.Engine(tmp_path / "w") as made:
        made.execute(DDL)
        yield made


def put(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def source(engine: hj.Engine, path: Any, errors: str = "stop", **options: Any) -> None:
    engine.create_source("s", "files", "t", errors=errors, path=path, recursive=True, **{"settle": 0, **options})


def rows(engine: hj.Engine) -> list[tuple[Any, ...]]:
    found = [tuple(row.values()) for row in engine.query("SELECT day, city, k FROM t").to_pylist()]
    return sorted(found, key=lambda row: row[2])


def test_each_format_has_the_columns_that_its_folders_name(engine: hj.Engine, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    put(lake / "day=2024-01-02/city=S%C3%A3o Paulo/a.csv", "k,n\n1,1.50\n2,2\n")
    put(lake / "day=2024-01-02/city=007/b.jsonl.gz", gzip.compress(b'{"k": 3}\n{"k": 4, "city": "of the file"}\n'))
    put(lake / "day=__HIVE_DEFAULT_PARTITION__/plain/e.csv", "k\n6\n")
    (lake / "city=x=y").mkdir()
    pq.write_table(pa.table({"k": [5], "city": ["of the file"]}), lake / "city=x=y" / "c.parquet")
    put(lake / "d.csv", "k\n7\n")
    put(lake / "day=2024-01-02/_temporary/0/a.csv", "k\n8\n")
    put(lake / ".staging/a.csv", "k\n9\n")
    put(lake / "day=2024-01-02/a.csv.tmp", "k\n10\n")
    source(engine, lake)
    assert engine.run_sources(0) == 5
    assert rows(engine) == [
        (DAY, "São Paulo", 1), (DAY, "São Paulo", 2), (DAY, "007", 3), (DAY, "007", 4), (None, "x=y", 5),
        (None, None, 6), (None, None, 7),
    ]  # fmt: skip


def test_a_file_counts_once_by_its_whole_name(engine: hj.Engine, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    put(lake / "day=2024-01-02/a.csv", "k\n1\n")
    source(engine, lake)
    assert engine.run_sources(0) == 1
    engine.close()
    put(lake / "day=2024-01-03/a.csv", "k\n2\n")
    with hj.Engine(tmp_path / "w") as again:
        assert again.run_sources(0) == 1
        assert rows(again) == [(DAY, None, 1), (date(2024, 1, 3), None, 2)]
        assert again.run_sources(0) == 0


def test_a_folder_that_comes_is_seen_while_the_source_waits(engine: hj.Engine, tmp_path: Path) -> None:
    def until(found: list[tuple[Any, ...]]) -> None:
        for _ in range(6000):
            if rows(engine) == found:
                return
            sleep(0.01)
        raise AssertionError(rows(engine))

    lake = tmp_path / "lake"
    put(lake / "a.csv", "k\n0\n")
    source(engine, lake)
    engine.start_sources()
    until([(None, None, 0)])
    sleep(0.2)  # it is likely to wait now
    put(lake / "day=2024-01-02" / "a.csv", "k\n1\n")
    until([(None, None, 0), (DAY, None, 1)])


def test_a_csv_file_without_a_header_has_the_other_columns(engine: hj.Engine, tmp_path: Path) -> None:
    put(tmp_path / "lake/day=2024-01-02/a.csv", "x,1,2.5\n")
    source(engine, tmp_path / "lake", header=False)
    assert engine.run_sources(0) == 1
    assert rows(engine) == [(DAY, "x", 1)]


def test_a_value_that_is_not_of_its_type_is_a_bad_file(engine: hj.Engine, tmp_path: Path) -> None:
    put(tmp_path / "lake/day=monday/a.csv", "k\n1\n")
    put(tmp_path / "lake/day=2024-01-02/a.csv", "k\n2\n")
    source(engine, tmp_path / "lake", errors="table")
    engine.run_sources(0)
    assert rows(engine) == [(DAY, None, 2)]
    (bad,) = engine.query("SELECT place, reason FROM s_errors").to_pylist()
    assert bad["place"] == "day=monday/a.csv"
    assert "its folder day=monday: invalid input syntax for type date" in bad["reason"]


def test_a_folder_whose_name_begins_with_an_underscore_names_a_column(tmp_path: Path) -> None:
    """As for Spark, which leaves out other folders of such names."""
    for folder in ("_year=2024", "_temporary", "_tmp", "._year=2025"):
        put(tmp_path / f"lake/{folder}/a.csv", "k,__time\n1,7\n")
    put(tmp_path / "lake/a%3Db=c%3Dd/__time=8/__diff=2/a.csv", "k\n2\n")
    put(tmp_path / "lake/_file=1.csv", "k,__time\n3,7\n")
    with hj.Engine(clock="own", retain=9) as engine:
        engine.execute('CREATE TABLE t (_year integer, "a=b" text, k bigint)')
        source(engine, tmp_path / "lake")
        assert engine.run_sources(0) == 2
        found = [engine.query("SELECT * FROM t ORDER BY k", as_of=time).to_pylist() for time in (7, 8)]
    first, twice = {"_year": 2024, "a=b": None, "k": 1}, [{"_year": None, "a=b": "c=d", "k": 2}] * 2
    assert found == [[first], [first, *twice]]


def test_a_folder_whose_name_is_not_utf8_is_a_bad_file(engine: hj.Engine, tmp_path: Path) -> None:
    put(tmp_path / "lake/city=%FF/a.csv", "k\n1\n")
    put(tmp_path / "lake/city=50%/a.csv", "k\n2\n")
    source(engine, tmp_path / "lake", errors="table")
    engine.run_sources(0)
    assert rows(engine) == [(None, "50%", 2)]
    (bad,) = engine.query("SELECT place, reason FROM s_errors").to_pylist()
    assert bad["place"] == "city=%FF/a.csv"
    assert "its folder has the name %FF, which is not UTF-8" in bad["reason"]


def test_a_column_that_the_table_does_not_have_stops_the_source(engine: hj.Engine, tmp_path: Path) -> None:
    put(tmp_path / "lake/dat=2024-01-02/a.csv", "k\n1\n")
    source(engine, tmp_path / "lake")
    with pytest.raises(hj.UnknownName, match="column 'dat' of t in dat=2024-01-02"):
        engine.run_sources(0)


def test_a_store_of_objects_is_read_the_same_way(engine: hj.Engine) -> None:
    store = MemoryFileSystem()
    store.pipe("/halfjoin-lake/day=2024-01-02/a.csv", b"k\n1\n")
    try:
        source(engine, "memory://halfjoin-lake")
        assert engine.run_sources(0) == 1
        store.pipe("/halfjoin-lake/day=2024-01-02/city=y/a.csv", b"k\n2\n")
        assert engine.run_sources(0) == 1
        assert rows(engine) == [(DAY, None, 1), (DAY, "y", 2)]
    finally:
        store.rm("/halfjoin-lake", recursive=True)


def test_the_command_applies_folders_within(tmp_path: Path) -> None:
    put(tmp_path / "lake/day=2024-01-02/a.csv", "k\n1\n")
    with hj.Engine(tmp_path / "w") as made:
        made.execute(DDL)
    given = ["apply", str(tmp_path / "w"), "t", str(tmp_path / "lake")]
    told = CliRunner().invoke(app, [*given, "--recursive"])
    assert told.exit_code == 0 and "1 rows" in told.stderr
    put(tmp_path / "lake/day=2024-01-02/b.csv", "k\n2\n")
    assert CliRunner().invoke(app, [*given, "--recursive"]).exit_code == 0
    other = CliRunner().invoke(app, given)
    assert other.exit_code == 1 and "with --recursive" in other.stderr
    with hj.Engine(tmp_path / "w") as made:
        assert rows(made) == [(DAY, None, 1), (DAY, None, 2)]
