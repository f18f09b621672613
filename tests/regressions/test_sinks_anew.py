"""Sinks that begin anew: at a path that another sink of the warehouse has left, or after OR REPLACE of sink or view."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import halfjoin as hj
from tests.support.sinking import DDL, FOLDER, opened, put, rows, shown


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / FOLDER


@pytest.fixture
def engine(folder):
    with opened(folder) as engine:
        put(engine, 1, 1, 2)
        engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
        yield engine


def up_to_date(engine, path, *names):
    """Whether the sink's table equals the view, and its status is up to date."""
    engine.flush()
    assert [(one["error"], one["waiting"]) for one in shown(engine)] == [(None, 0)]
    assert rows(path) == {tuple(row.values()): 1 for row in engine.read(names[0] if names else "big").to_pylist()}
    return True


def test_a_table_that_a_dropped_sink_left_is_taken_over(engine, folder):
    engine.execute("DROP SINK s")
    put(engine, 2, 3)
    engine.apply({"t": hj.deletes([{"k": 1}])}, time=3)
    engine.execute("CREATE SINK other FROM big INTO DELTA 's'")
    path = folder / "sinks" / "s"
    assert up_to_date(engine, path)
    put(engine, 4, 4)
    assert up_to_date(engine, path)
    assert rows(path, 1) == {(1, 9): 1, (2, 9): 1}  # its history is there


def test_it_is_taken_over_after_a_restart_too(folder):
    with opened(folder) as engine:
        put(engine, 1, 1)
        engine.execute("CREATE SINK s FROM big INTO DELTA 's'; DROP SINK s")
    with hj.Engine(folder) as engine:
        put(engine, 2, 2)
        engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
    with hj.Engine(folder) as engine:
        put(engine, 3, 3)
        assert up_to_date(engine, folder / "sinks" / "s")


def test_a_table_of_others_is_not(engine, folder, tmp_path):
    write_deltalake(str(tmp_path / "theirs"), pa.table({"k": [1]}))
    with hj.Engine(tmp_path / "other") as second:
        second.execute(DDL)
        second.execute(f"CREATE SINK s FROM big INTO DELTA '{tmp_path / 'second'}'; DROP SINK s")
    for path in ("theirs", "second"):
        with pytest.raises(hj.Conflict, match="holds a Delta table already"):
            engine.execute(f"CREATE SINK more FROM big INTO DELTA '{tmp_path / path}'")
        with pytest.raises(hj.Conflict, match="holds a Delta table already"):
            engine.execute(f"CREATE OR REPLACE SINK s FROM big INTO DELTA '{tmp_path / path}'")
    assert up_to_date(engine, folder / "sinks" / "s")


def test_a_sink_is_replaced_by_another(engine, folder):
    engine.execute("CREATE OR REPLACE SINK s FROM t INTO DELTA 's'")  # with other columns
    assert up_to_date(engine, folder / "sinks" / "s", "t")
    assert DeltaTable(folder / "sinks" / "s").schema().fields[2].name == "note"
    engine.execute("CREATE OR REPLACE SINK s FROM big INTO DELTA 'elsewhere'")
    put(engine, 2, 3)
    assert up_to_date(engine, folder / "sinks" / "elsewhere")
    engine.execute("CREATE OR REPLACE SINK more FROM big INTO DELTA 's'; DROP SINK s")
    assert up_to_date(engine, folder / "sinks" / "s")


def test_a_replacement_that_fails_leaves_the_sink(engine, folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("halfjoin.engine.sinks.table.SinkTable.rewrite", lambda *_: 1 / 0)
        with pytest.raises(hj.StorageError):
            engine.execute("CREATE OR REPLACE SINK s FROM big INTO DELTA 'elsewhere'")
    put(engine, 2, 3)
    assert up_to_date(engine, folder / "sinks" / "s")


@pytest.mark.parametrize("query", ["SELECT k, v FROM t WHERE k > 1", "SELECT k, note, v + 1 AS w FROM t"])
def test_a_view_is_replaced_under_its_sink(engine, folder, query):
    engine.execute(f"CREATE OR REPLACE MATERIALIZED VIEW big AS {query}")
    path = folder / "sinks" / "s"
    assert up_to_date(engine, path)
    put(engine, 2, 3)
    assert up_to_date(engine, path)
    engine.close()
    with hj.Engine(folder) as again:
        put(again, 3, 4)
        assert up_to_date(again, path)
