"""Sinks: what they refuse, what they write, and how other tools read their tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

import halfjoin as hj
from halfjoin.catalog.models import Document
from halfjoin.engine.sinks import sinks
from halfjoin.engine.storage.place import LocalPlace
from tests.support.sinking import FOLDER, opened, put, rows, shown


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / FOLDER


@pytest.fixture
def engine(folder: Path) -> Iterator[hj.Engine]:
    with opened(folder) as engine:
        yield engine


def test_one_commit_for_each_batch_that_changes_the_view(engine: hj.Engine, folder: Path) -> None:
    put(engine, 1, 1, 2)
    engine.execute("CREATE SINK s FROM big INTO DELTA 'out/big'")
    put(engine, 2, 3)
    put(engine, 3, 4, v=1)  # not in the view
    engine.apply({"t": hj.upserts([{"k": 1, "v": 7}, {"k": 2, "v": 0}])}, time=4)
    engine.apply({"t": [{"k": 9, "v": 9}]}, time=6, close=False)
    engine.advance(to=6)
    engine.advance(to=7)
    engine.flush()
    path = folder / "sinks" / "out" / "big"
    found = {
        int(commit["halfjoin.upper"]): rows(path, commit["version"])
        for commit in DeltaTable(path).history() if "halfjoin.upper" in commit
    }  # fmt: skip
    assert found == {
        2: {(1, 9): 1, (2, 9): 1},
        3: {(1, 9): 1, (2, 9): 1, (3, 9): 1},
        5: {(1, 7): 1, (3, 9): 1},
        7: {(1, 7): 1, (3, 9): 1, (9, 9): 1},
    }
    assert shown(engine) == [
        {"name": "s", "from": "big", "into": "out/big", "upper": 7, "waiting": 0, "error": None}
    ]


def test_other_tools_read_it(engine: hj.Engine, tmp_path: Path) -> None:
    engine.execute(f"CREATE SINK s FROM t INTO DELTA '{tmp_path}/out'")
    engine.apply({"t": [{"k": 1, "v": 2, "note": "ä"}, {"k": 2}]})
    engine.flush()
    dataset = DeltaTable(tmp_path / "out").to_pyarrow_dataset()
    expected = [(1, 2, "ä"), (2, None, None)]
    assert duckdb.sql("SELECT * FROM dataset ORDER BY k").fetchall() == expected
    assert dataset.schema.names == ["k", "v", "note"]
    polars = pytest.importorskip("polars")
    assert polars.read_delta(str(tmp_path / "out")).sort("k").rows() == expected


def test_a_view_or_table_that_a_sink_reads_stays(engine: hj.Engine) -> None:
    engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
    for change, why in (("DROP MATERIALIZED VIEW big", "big is read by sink s"),
                        ("CREATE OR REPLACE VIEW big AS SELECT k FROM t", "big is a materialized view")):
        with pytest.raises(hj.Conflict, match=why):
            engine.execute(change)
    engine.execute("DROP SINK s; DROP SINK IF EXISTS s; DROP MATERIALIZED VIEW big")


def test_a_dropped_sink_leaves_its_table(engine: hj.Engine, folder: Path) -> None:
    put(engine, 1, 1)
    engine.execute("CREATE SINK s FROM big INTO DELTA 's'; DROP SINK s")
    put(engine, 2, 2)
    engine.flush()
    assert rows(folder / "sinks" / "s") == {(1, 9): 1}


@pytest.mark.parametrize(("sql", "error", "says"), [
    ("FROM plain INTO DELTA 's'", hj.UnsupportedSQL, "plain view.*CREATE MATERIALIZED VIEW"),
    ("FROM bigg INTO DELTA 's'", hj.UnknownName, "did you mean big"),
    ("FROM big INTO DELTA '../s'", hj.UnsupportedSQL, r"without \.\."),
    ("FROM big INTO DELTA '{0}/tables/s'", hj.UnsupportedSQL, "files with those of the warehouse"),
    ("FROM big INTO DELTA '{0}/sinks'", hj.UnsupportedSQL, "files with those of the warehouse"),
    ("FROM big INTO DELTA '{0}/..x'", hj.UnsupportedSQL, "files with those of the warehouse"),
    ("FROM big INTO DELTA '{0.parent}'", hj.UnsupportedSQL, "files with those of the warehouse"),
    ("FROM big INTO DELTA 'file://{0}/views/s'", hj.UnsupportedSQL, "files with those of the warehouse"),
    ("FROM big INTO DELTA '.'", hj.UnsupportedSQL, "files with those of the warehouse"),
    ("FROM big INTO DELTA 'one/inside'", hj.UnsupportedSQL, "overlaps with the table of the sink one"),
    ("FROM big INTO DELTA '{0}/sinks/one'", hj.UnsupportedSQL, "overlaps with the table of the sink one"),
    ("FROM big INTO DELTA '{0.parent}/files'", hj.Conflict, "holds files already"),
    ("FROM big INTO DELTA '{0.parent}/files/a'", hj.Conflict, "is a file"),
    ("FROM big INTO DELTA '{0.parent}/files/a/b'", hj.StorageError, "cannot be"),
])  # fmt: skip
def test_refused(engine: hj.Engine, folder: Path, sql: str, error: type[Exception], says: str) -> None:
    engine.execute("CREATE SINK one FROM big INTO DELTA 'one'")
    (folder.parent / "files").mkdir()
    (folder.parent / "files" / "a").write_text("mine")
    with pytest.raises(error, match=says):
        engine.execute(f"CREATE SINK s {sql.format(folder)}")
    assert [sink["name"] for sink in shown(engine)] == ["one"]
    assert (folder.parent / "files" / "a").read_text() == "mine"


def test_names_of_sinks(engine: hj.Engine) -> None:
    engine.execute("CREATE SINK big FROM big INTO DELTA 'a'; CREATE SINK IF NOT EXISTS big FROM big INTO DELTA 'b'")
    with pytest.raises(hj.Conflict, match="big is already a sink"):
        engine.execute("CREATE SINK big FROM big INTO DELTA 'b'")
    with pytest.raises(hj.UnknownName, match=r"unknown sink 'bib'.*big"):
        engine.execute("DROP SINK bib")
    assert [sink["into"] for sink in shown(engine)] == ["a"]


def test_an_engine_without_a_warehouse_writes_to_absolute_paths(tmp_path: Path) -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        with pytest.raises(hj.UnsupportedSQL, match="absolute path"):
            engine.execute("CREATE SINK s FROM t INTO DELTA 's'")
        engine.execute(f"CREATE SINK s FROM t INTO DELTA '{tmp_path / 's'}'")
        engine.apply({"t": [{"k": 1}, {"k": 1}]})
    assert rows(tmp_path / "s") == {(1,): 2}


def test_a_reader_sees_sinks_and_leaves_them_alone(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
    engine.flush()
    version = DeltaTable(folder / "sinks" / "s").version()
    with hj.Engine(folder, read_only=True) as reader:
        assert [(sink["name"], sink["upper"]) for sink in shown(reader)] == [("s", None)]
        reader.flush()
        with pytest.raises(hj.HalfjoinError, match="read_only=True"):
            reader.execute("DROP SINK s")
    assert DeltaTable(folder / "sinks" / "s").version() == version


def test_an_unreachable_sink_lets_the_warehouse_open(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(hj.StorageError, match="cannot be reached: nothing://like/that"):
        engine.execute("CREATE SINK s FROM big INTO DELTA 'nothing://like/that'")
    engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
    engine.close()

    def unreachable(*_: object) -> LocalPlace:
        raise OSError("no way")

    monkeypatch.setattr(sinks, "target_place", unreachable)
    with hj.Engine(folder) as again:
        put(again, 1, 1)
        assert "no way" in str(shown(again)[0]["error"])
        again.execute("DROP SINK s")


def test_catalogs_of_warehouses_without_sinks_can_be_read() -> None:
    assert Document.model_validate_json('{"tables": [], "views": [], "indexes": [], "functions": {}}').sinks == ()


def test_columns_that_a_delta_table_cannot_have_are_refused(tmp_path: Path) -> None:
    with hj.Engine() as engine:
        engine.execute('CREATE TABLE t ("A" bigint, a bigint)')
        with pytest.raises(hj.UnsupportedSQL, match="differ only in case"):
            engine.execute(f"CREATE SINK s FROM t INTO DELTA '{tmp_path / 's'}'")
        assert engine.execute("SHOW SINKS").num_rows == 0  # type: ignore[union-attr]


def test_a_warehouse_that_was_put_back_brings_its_table_back(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "a", clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint)")
        engine.apply({"t": [{"k": 1, "v": 1}]}, time=1)
        engine.execute(f"CREATE SINK s FROM t INTO DELTA '{tmp_path}/out'")
    shutil.copytree(tmp_path / "a", tmp_path / "backup")
    with hj.Engine(tmp_path / "a") as engine:
        engine.apply({"t": hj.upserts([{"k": 1, "v": 2}, {"k": 2, "v": 2}])}, time=5)
    with hj.Engine(tmp_path / "backup") as engine:
        for time in (2, 3):
            engine.apply({"t": [{"k": time, "v": 3}]}, time=time)
            engine.flush()
    found = DeltaTable(tmp_path / "out").to_pyarrow_table().to_pylist()
    assert sorted((row["k"], row["v"]) for row in found) == [(1, 1), (2, 3), (3, 3)]


def test_what_a_copy_of_the_warehouse_wrote_does_not_stay(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "a", clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY)")
        engine.execute(f"CREATE SINK s FROM t INTO DELTA '{tmp_path}/out'")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with hj.Engine(tmp_path / "a") as engine, hj.Engine(tmp_path / "b") as copy:
        for time, (one, other) in enumerate([(engine, copy), (copy, engine), (engine, copy)]):
            one.apply({"t": [{"k": time}]}, time=10 * time)
            one.flush()
            other.apply({"t": [{"k": 100 + time}]}, time=10 * time + 5)
            with suppress(hj.StorageError):
                other.flush()
            other.flush()
            expected = sorted(row["k"] for row in other.query("SELECT k FROM t").to_pylist())
            assert sorted(DeltaTable(tmp_path / "out").to_pyarrow_table()["k"].to_pylist()) == expected
