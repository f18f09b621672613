"""Paths with odd characters work entirely or are refused on opening. A path means the same place everywhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import halfjoin as hj
from tests.oracle.rows import bag

WORKING = ["w x", "100%", "%zz", "a#b", "a?b", "a:b", "C:", "'q\" r'", "é ü 😀", "trailing...", " lead", "*[a]{b}",
           "-x", "x" * 200, "a&b=c+d;e", "~ab", "_delta_logs"]  # fmt: skip
REFUSED = ["w%20x", "a%2eb", "%2F", "100%25", "back\\slash", "new\nline", "tab\t", "\x7f", os.fsdecode(b"\xff"),
           "_delta_log"]  # fmt: skip


def _at_work(folder: Path) -> None:
    """Call everything that touches the disk, twice."""
    with hj.Engine(folder) as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY)")
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE k > 1")
        engine.execute("CREATE SINK s FROM v INTO DELTA 's'")
        engine.apply({"t": [{"k": 1}, {"k": 2}]}, time=1)
        engine.flush()
        engine.apply({"t": [{"k": 3}]}, time=2)
    with hj.Engine(folder, memory=1) as engine:
        engine.apply({"t": hj.upserts([{"k": 3}])}, time=3)
        engine.apply({"t": [{"k": 4}]}, time=4)
        engine.compact()
        engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k FROM v; DROP MATERIALIZED VIEW w")
        assert bag(engine.read("v")) == {(2,): 1, (3,): 1, (4,): 1}
        engine.flush()
    with hj.Engine(folder, read_only=True) as engine:
        assert bag(engine.read("t")) == {(1,): 1, (2,): 1, (3,): 1, (4,): 1}


@pytest.mark.parametrize("name", WORKING)
def test_a_name_that_works_works_for_everything(tmp_path: Path, name: str) -> None:
    _at_work(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    sink = DeltaTable((tmp_path / name / "sinks" / "s").as_uri())
    assert sorted(sink.to_pyarrow_table()["k"].to_pylist()) == [2, 3, 4]
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.follow("t", tmp_path / name / "sinks" / "s")
        assert bag(engine.read("t")) == {(2,): 1, (3,): 1, (4,): 1}
        quoted = str(tmp_path / f"{name} out").replace("'", "''")
        engine.execute(f"CREATE SINK s FROM t INTO DELTA '{quoted}'")
        engine.flush()
    assert (tmp_path / f"{name} out" / "_delta_log").is_dir()


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_does_not_is_refused_before_anything(tmp_path: Path, name: str) -> None:
    for folder in (tmp_path / name, tmp_path / name / "w"):
        for read_only in (False, True):
            with pytest.raises(hj.StorageError, match="path"):
                hj.Engine(folder, read_only=read_only)
    with hj.Engine(tmp_path / "fine") as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        with pytest.raises(hj.StorageError, match="path"):
            engine.follow("t", tmp_path / name)
        if "\udcff" not in name:
            for target in (name, f"deep/{name}/s", str(tmp_path / name)):
                with pytest.raises(hj.UnsupportedSQL, match="path"):
                    engine.execute(f"CREATE SINK s FROM t INTO DELTA '{target}'")
    assert [path.name for path in tmp_path.iterdir()] == ["fine"]


def test_a_table_may_have_the_name_of_a_log(tmp_path: Path) -> None:
    """No folder can: the tables in it would not be found, and the journal would keep all their rows."""
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE _delta_log (k bigint PRIMARY KEY)")
        engine.execute("CREATE MATERIALIZED VIEW above AS SELECT k FROM _delta_log WHERE k > 1")
        engine.apply({"_delta_log": [{"k": 1}, {"k": 2}]}, time=1)
        engine.flush()
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        engine.apply({"_delta_log": hj.upserts([{"k": 2}, {"k": 3}])}, time=2)
        engine.compact()
        assert bag(engine.read("above")) == {(2,): 1, (3,): 1}
        assert bag(engine.read("_delta_log")) == {(1,): 1, (2,): 1, (3,): 1}


def test_a_sibling_is_another_warehouse(tmp_path: Path) -> None:
    _at_work(tmp_path / "w x")
    with pytest.raises(hj.StorageError, match="%20"):
        hj.Engine(tmp_path / "w%20x")
    with hj.Engine(tmp_path / "w x") as engine:
        assert engine.read("t").num_rows == 4


def test_tasks_of_spark_read_and_write_there(spark: Any, tmp_path: Path) -> None:
    for name in ("a:b#c?d", "100% é *[a]{b} '\""):
        with hj.Engine(tmp_path / name, spark=spark, runner="spark") as engine:
            engine.execute("CREATE TABLE t (k bigint PRIMARY KEY)")
            engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k + 1 AS l FROM t")
            engine.apply({"t": spark.range(3).withColumnRenamed("id", "k")}, time=1)
            engine.flush()
            engine.apply({"t": [{"k": 9}]}, time=2)
            assert sorted(row.l for row in engine.dataframe("v").collect()) == [1, 2, 3, 10]
            engine.compact()
        with hj.Engine(tmp_path / name, spark=spark, runner="spark", memory=1) as engine:
            assert engine.apply({"t": hj.upserts([{"k": 1}])}, time=3).diffs["v"].num_rows == 0
            assert sorted(row.l for row in engine.dataframe("v").collect()) == [1, 2, 3, 10]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_link_to_an_odd_place_is_one(tmp_path: Path) -> None:
    (tmp_path / "a%20b").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a%20b")
    with pytest.raises(hj.StorageError, match="%20"):
        hj.Engine(tmp_path / "link")


@pytest.mark.parametrize("length", [489, 490, 3700])
def test_a_path_too_long_for_its_journal_or_its_tables_is_refused(tmp_path: Path, length: int) -> None:
    folder = tmp_path
    while (more := length - len(str(folder)) - 1) > 0:
        folder = folder / ("x" * min(200, more))
    if len(str(folder)) < 490:
        return _at_work(folder)
    with pytest.raises(hj.StorageError, match="long"):
        hj.Engine(folder)
    assert not any(tmp_path.iterdir())


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    _at_work(Path("~/w"))
    with hj.Engine("~/w") as engine:
        assert engine.read("t").num_rows == 4
        engine.execute("CREATE SINK home FROM t INTO DELTA '~/out'")
    assert {path.name for path in tmp_path.iterdir()} == {"w", "out"}
    with pytest.raises(hj.StorageError, match="~nobody-of-that-name"):
        hj.Engine("~nobody-of-that-name/w")


def test_a_folder_whose_name_begins_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the error about a missing user advises."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("~", "~nobody-of-that-name"):
        with hj.Engine(f"./{name}") as engine:
            engine.execute("CREATE TABLE t (a bigint)")
        assert (tmp_path / name / "journal.sqlite").exists()


def test_file_urls_mean_what_they_say(tmp_path: Path) -> None:
    folder = tmp_path / "a b, 100 % ü"
    plain = folder.as_uri().removeprefix("file://")
    for url in (f"file://{plain}", f"file://localhost{plain}", f"FILE://{plain}", f"file:{plain}"):
        hj.Engine(url).close()
        assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    with hj.Engine(folder) as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.execute(f"CREATE SINK s FROM t INTO DELTA '{(tmp_path / 'c d').as_uri()}'")
        engine.flush()
        assert (tmp_path / "c d" / "_delta_log").is_dir()
        write_deltalake((tmp_path / "e f").as_uri(), pa.table({"k": [7]}))
        engine.follow("t", (tmp_path / "e f").as_uri())
        assert bag(engine.read("t")) == {(7,): 1}
    for url in ("file://host/a", "file:rel", "file:///a?b", "file:///a#b", "file:///a%00b", "file:///%5C", "", "\0"):
        with pytest.raises(hj.HalfjoinError, match="path"):
            hj.Engine(url)


def test_a_relative_path_is_settled_by_the_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with hj.Engine("w") as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.execute("CREATE SINK s FROM t INTO DELTA 's'")
        monkeypatch.chdir(tmp_path / "elsewhere")
        engine.apply({"t": [{"k": 1}]}, time=1)
        engine.compact()
    assert not any((tmp_path / "elsewhere").iterdir())
    monkeypatch.chdir(tmp_path)
    with hj.Engine("w", read_only=True) as engine:
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert bag(engine.read("t")) == {(1,): 1}
    assert DeltaTable(tmp_path / "w" / "sinks" / "s").to_pyarrow_table().num_rows == 1


def test_links_in_sinks_do_not_lead_out(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        sinks = tmp_path / "w" / "sinks"
        (sinks / "inside").mkdir(parents=True)
        (sinks / "out").symlink_to(tmp_path / "outside")
        (sinks / "back").symlink_to(tmp_path / "w" / "tables")
        (sinks / "alias").symlink_to(sinks / "inside")
        for target in ("out", "out/s", "back/s"):
            with pytest.raises(hj.UnsupportedSQL, match="leads out"):
                engine.execute(f"CREATE SINK s FROM t INTO DELTA '{target}'")
        with pytest.raises(hj.UnsupportedSQL, match="mix"):
            engine.execute(f"CREATE SINK s FROM t INTO DELTA '{sinks}/back/s'")
        engine.execute("CREATE SINK one FROM t INTO DELTA 'inside/s'")
        with pytest.raises(hj.UnsupportedSQL, match="overlaps"):
            engine.execute("CREATE SINK two FROM t INTO DELTA 'alias/s'")
        engine.flush()
        (sinks / "inside").rename(tmp_path / "moved")
        (sinks / "inside").symlink_to(tmp_path / "moved")
        before = sorted(tmp_path.glob("moved/s/*"))
    with hj.Engine(tmp_path / "w") as engine:
        engine.apply({"t": [{"k": 1}]}, time=1)
        with pytest.raises(hj.StorageError, match="leads out"):
            engine.flush()
        assert engine.read("t").num_rows == 1
    assert sorted(tmp_path.glob("moved/s/*")) == before
    assert not any((tmp_path / "outside").iterdir())
