"""Bulk work in a warehouse: tasks read its files and write the published ones. This process sees no row of them."""

from __future__ import annotations

import datetime as dt
import gc
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.spark import runner, runners, session, writing
from halfjoin.engine.spark.files import StateFiles
from halfjoin.engine.storage.fetch import Disk
from halfjoin.engine.storage.parquet_reader import OpenFile
from halfjoin.engine.storage.stored_run import StoredRun
from tests.oracle.rows import bag, updates

DDL = """
    CREATE TABLE a (k bigint PRIMARY KEY, x bigint, c time);
    CREATE TABLE b (k bigint, y bigint);
"""
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT a.k, a.c, b.y, 12 / a.x AS q FROM a, b WHERE a.k = b.k AND b.y > 1"


@pytest.fixture(autouse=True)
def _everything_stays_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FEW", 0)


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Iterator[hj.Engine]:
    with hj.Engine(tmp_path / "w", spark=spark) as engine:
        engine.execute(DDL)
        yield engine


def _a(spark: Any, rows: int = 20) -> Any:
    return spark.sql(f"SELECT id AS k, id % 5 + 1 AS x FROM range({rows})")


def _b(spark: Any, rows: int = 20) -> Any:
    return spark.sql(f"SELECT id AS k, id % 3 AS y FROM range({rows})")


def _forbidden(*args: Any, **kinds: Any) -> Any:
    raise AssertionError("rows of the batch were brought into this process")


def _recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the paths of the files that tasks are told to read from now on."""
    read: list[str] = []
    runs = StateFiles.runs

    def recorded(self: StateFiles, part: Any) -> list[StoredRun]:
        found = runs(self, part)
        read.extend(str(run.place / file.name) for run in found for file in run.files)
        return found

    monkeypatch.setattr(StateFiles, "runs", recorded)
    return read


def test_no_row_of_a_change_or_a_fill_comes_to_this_process(
    spark: Any, engine: hj.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        for holder, name in ((StoredRun, "narrowed"), (OpenFile, "columns"), (Disk, "fetch")):
            patch.setattr(holder, name, _forbidden)
        engine.execute(VIEW)
        engine.apply({"a": _a(spark)}, time=1)
        applied = engine.apply({"b": _b(spark)}, time=2, batch_id="b")
        engine._runners.setting = "spark"
        engine.execute("CREATE MATERIALIZED VIEW later AS SELECT k, y FROM b WHERE y > 0")
        engine._runners.setting = "auto"
        engine.apply({"a": hj.upserts(spark.sql("SELECT 1L AS k, 3L AS x")), "b": hj.deletes(_b(spark, 3))}, time=3)
        frame = applied.dataframe("v")
        assert repr(applied).endswith("diffs={v: in files})")
        dataframes = [engine.dataframe(name) for name in ("v", "later", "a")]
        assert frame.count() == 6
    assert isinstance(engine._state.views["v"].contents.held[0], StoredRun)
    assert Counter(map(str, frame.toArrow().to_pylist())) == Counter(
        str({**row, "c": None}) for row in applied.diffs["v"].to_pylist()
    )
    with hj.Engine() as local:
        local.execute(DDL + VIEW)
        local.execute("CREATE MATERIALIZED VIEW later AS SELECT k, y FROM b WHERE y > 0")
        local.apply({"a": _a(spark).toArrow()}, time=1)
        ours = local.apply({"b": _b(spark).toArrow()}, time=2)
        local.apply({"a": hj.upserts([{"k": 1, "x": 3}]), "b": hj.deletes(_b(spark, 3).toArrow())}, time=3)
        assert Counter(updates(applied.diffs["v"])) == Counter(updates(ours.diffs["v"]))
        for name, frame in zip(("v", "later", "a"), dataframes, strict=True):
            assert bag(frame.toArrow()) == bag(engine.read(name)) == bag(local.read(name))


def test_changes_can_be_read_when_their_files_are_gone(spark: Any, engine: hj.Engine, tmp_path: Path) -> None:
    engine.execute(VIEW)
    subscription = engine.subscribe("v", snapshot=False)
    engine.apply({"a": _a(spark), "b": _b(spark)}, time=1)
    applied = engine.apply({"b": hj.deletes(_b(spark, 10))}, time=2)
    before = engine.dataframe("v", as_of=1)
    expected = Counter(updates(applied.diffs["v"]))
    assert sum(expected.values()) == 3
    engine.compact()
    for file in (tmp_path / "w" / "views" / "v").glob("*.parquet"):
        file.unlink()
    assert Counter(updates(applied.diffs["v"])) == expected
    assert [Counter(updates(next(subscription))) for _ in range(2)][1] == expected
    assert before.count() == 6


def test_a_warehouse_may_be_named_by_a_relative_path(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with hj.Engine("w", spark=spark) as engine:
        engine.execute(DDL + VIEW)
        engine.apply({"a": _a(spark), "b": _b(spark)}, time=1)
        engine.flush()
        engine.apply({"a": hj.upserts(_a(spark, 3))}, time=2)
        assert engine.dataframe("v").count() == engine.read("v").num_rows == 6
    with hj.Engine("w", spark=spark, read_only=True) as reader:
        assert reader.dataframe("v").count() == 6


def test_a_cold_table_is_not_loaded_and_its_own_files_are_read(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hj.Engine(tmp_path / "w", spark=spark) as engine:
        engine.execute(DDL + VIEW)
        engine.apply({"a": _a(spark).toArrow(), "b": _b(spark).toArrow()}, time=1)
        engine.flush()
        engine.apply({"b": [{"k": 3, "y": 7}]}, time=2)
    read = _recorded(monkeypatch)
    monkeypatch.setattr(Disk, "fetch", _forbidden)
    with hj.Engine(tmp_path / "w", spark=spark) as engine:
        applied = engine.apply({"a": hj.deletes(spark.sql("SELECT 3L AS k, 4L AS x"))}, time=3)
        assert updates(applied.diffs["v"]) == [((3, None, 7, 3), 3, -1)]
        assert len(engine._state.tables["a"]) == 21
    own = [path for path in read if "/tables/" in path]
    assert {Path(path).parent.name for path in own} == {"a", "b"}


def test_files_without_the_changed_keys_are_not_read(
    spark: Any, engine: hj.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.execute(VIEW)
    for start in (0, 100, 200):
        rows = spark.sql(f"SELECT id AS k, 2L AS x FROM range({start}, {start + 20})").coalesce(1)
        engine.apply({"a": rows}, time=start)
    read = _recorded(monkeypatch)
    applied = engine.apply({"b": spark.sql("SELECT 105L AS k, 5L AS y UNION ALL SELECT 119, 6")}, time=300)
    assert sorted(row[0][0] for row in updates(applied.diffs["v"])) == [105, 119]
    assert len({path for path in read if "/tables/a/" in path}) == 1
    read.clear()
    none = spark.sql("SELECT 219L AS k, 1L AS x UNION ALL SELECT 230, 1 WHERE false").where("k > 219")
    engine.apply({"a": none}, time=301)
    with pytest.raises(hj.InvalidRow, match=r"second row with the key \(k\) = \(219\)"):
        engine.apply({"a": spark.sql("SELECT 219L AS k, 1L AS x")}, time=302)
    assert len({path for path in read if "/tables/a/" in path}) == 1


def test_paths_that_end_alike_read_what_they_look_up_once(
    spark: Any, engine: hj.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.execute("CREATE TABLE c (y bigint, z bigint)")
    engine.execute("""CREATE MATERIALIZED VIEW w AS
                      SELECT a.k, c.z FROM a, b, c WHERE a.k = b.k AND b.y = c.y AND z > 10""")
    engine.apply({"c": spark.sql("SELECT id AS y, 10 * id AS z FROM range(3)")}, time=1)
    read = _recorded(monkeypatch)
    applied = engine.apply({"a": _a(spark), "b": _b(spark)}, time=2)
    assert Counter(updates(applied.diffs["w"])) == Counter({((k, 20), 2, 1): 1 for k in range(2, 20, 3)})
    there = [path for path in read if "/tables/c/" in path]
    assert len(there) == len(set(there)) > 0


def test_a_local_batch_brings_a_jobs_files_into_memory(spark: Any, engine: hj.Engine) -> None:
    engine.execute(VIEW)
    engine.apply({"a": _a(spark)}, time=1)
    assert isinstance(engine._state.tables["a"].held[0], StoredRun)
    applied = engine.apply({"b": [{"k": 3, "y": 5}]}, time=2)
    assert (applied.runner, updates(applied.diffs["v"])) == ("local", [((3, None, 5, 3), 2, 1)])
    assert all(isinstance(run, Run) for run in engine._state.tables["a"].held)
    assert sum(map(len, engine._state.tables["a"].held)) == 20


@pytest.mark.parametrize(("frame", "error", "message"), [
    ("SELECT 1L AS k, 1.5D AS x", hj.InvalidRow, r"a\.x: the row with \(k\) = \(1\): 1\.5 is not a valid bigint"),
    ("SELECT 1L AS k, 'one' AS x", hj.InvalidRow, r"a\.x: the row with \(k\) = \(1\): 'one' is not a valid bigint"),
    ("SELECT 'one' AS x", hj.InvalidRow, r"a\.k: a row: is missing, and the column is NOT NULL"),
    ("SELECT 1L AS k, 1L AS k2", hj.UnknownName, "k2"),
    ("SELECT 1L AS k, 1L AS K", hj.UnknownName, "K"),
    ("SELECT 1L AS k, 5L AS __time", hj.InvalidTime, "the time 5 of a row is closed"),
    ("SELECT 1L AS k, cast(NULL AS bigint) AS __time", hj.InvalidTime, "must not be NULL"),
    ("SELECT 1L AS k, 'x' AS __diff", hj.InvalidRow, "not a whole number"),
    ("SELECT 1L AS k, -1 AS __diff", hj.InvalidRow, r"a: a row: deletes a row that is not there: \(k\) = \(1\)"),
    ("SELECT 1L AS k, 2 AS __diff", hj.InvalidRow, r"a: a row: would be a second row with the key \(k\) = \(1\)"),
    ("SELECT 1L AS k FROM range(2)", hj.InvalidRow, r"second row with the key \(k\) = \(1\)"),
    ("SELECT 1L AS k, id AS x, 20 + id AS __time FROM range(2)", hj.InvalidRow, r"second row with the key"),
    ("SELECT raise_error('no good') AS k", Exception, "no good"),
])  # fmt: skip
def test_of_a_refused_frame_nothing_is_kept(
    spark: Any, engine: hj.Engine, frame: str, error: type[Exception], message: str
) -> None:
    engine.apply({"b": _b(spark, 2)}, time=10)
    before = engine.stats().collections
    with pytest.raises(error, match=message):
        engine.apply({"b": _b(spark, 2), "a": spark.sql(frame)}, time=11, batch_id="again")
    assert engine.stats().collections == before
    engine.apply({"a": spark.sql("SELECT 1L AS k, 1L AS x")}, time=11, batch_id="again")
    assert engine.read("a").num_rows == 1


def test_rows_of_one_key_may_follow_each_other_in_time(spark: Any, engine: hj.Engine) -> None:
    """If a key's rows have several times, a sum cannot decide: the tasks check each row."""
    rows = spark.sql("""SELECT 1L AS k, 1L AS x, 5L AS __time, 1 AS __diff UNION ALL SELECT 1, 1, 6, -1
                        UNION ALL SELECT 1, 2, 6, 1""")
    engine.apply({"a": rows}, close=False)
    engine.apply({"a": spark.sql("SELECT 1L AS k, 2L AS x, 8L AS __time, -1 AS __diff")}, close=False)
    with pytest.raises(hj.InvalidRow, match="deletes a row that is not there"):
        engine.apply({"a": spark.sql("SELECT 1L AS k, 2L AS x, 7L AS __time, -1 AS __diff")})
    engine.advance(to=10)
    assert [engine.read("a", as_of=time).num_rows for time in range(4, 10)] == [0, 1, 1, 1, 0, 0]


def test_columns_may_have_names_that_spark_has_a_meaning_for(spark: Any, engine: hj.Engine) -> None:
    engine.execute('CREATE TABLE n ("k.x" bigint PRIMARY KEY, k bigint, "y`z" text)')
    engine.execute('CREATE MATERIALIZED VIEW "v n" AS SELECT l.*, r.k AS "a.b" FROM n l, n r WHERE l."k.x" = r.k')
    applied = engine.apply({"n": spark.createDataFrame([(1, 1, "é")], "`k.x` long, k long, `y``z` string")}, time=1)
    assert engine.read("v n").to_pylist() == [{"k.x": 1, "k": 1, "y`z": "é", "a.b": 1}]
    frames = engine.dataframe("v n"), applied.dataframe("v n")
    assert [frame.count() for frame in frames] == [1, 1]
    with pytest.raises(hj.UnknownName, match="K"):
        engine.apply({"n": spark.createDataFrame([(1, 1)], "k long, K long")}, time=2)


def test_a_frame_and_its_rows_are_one_batch_to_a_batch_id(spark: Any, engine: hj.Engine) -> None:
    engine.execute(VIEW)
    applied = engine.apply({"a": _a(spark), "b": _b(spark).toArrow()}, 1, "one")
    for again in ({"a": _a(spark).repartition(3), "b": _b(spark)}, {"a": _a(spark).toArrow(), "b": _b(spark)}):
        answer = engine.apply(again, 1, "one")
        assert (answer.time, answer.runner) == (applied.time, "spark")
        assert Counter(updates(answer.diffs["v"])) == Counter(updates(applied.diffs["v"]))
        assert answer.dataframe("v").count() == applied.dataframe("v").count() == 6
    with pytest.raises(hj.Conflict, match="batch id 'one'"):
        engine.apply({"a": _a(spark), "b": _b(spark, 19)}, 1, "one")


def test_files_of_a_task_that_is_tried_again_are_taken_once(
    spark: Any, engine: hj.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of an attempt without an answer are in the folder, but in no list."""
    write = writing.Write.__call__

    def twice(self: writing.Write, batches: Any) -> Any:
        given = list(batches)
        list(write(self, iter(given)))
        return write(self, iter(given))

    engine.execute(VIEW)
    engine.apply({"a": _a(spark)}, time=1)
    monkeypatch.setattr(runner, "written", lambda frame, layout, place: _written_by(twice, frame, layout, place))
    applied = engine.apply({"b": _b(spark)}, time=2)
    assert sum(diff for _, _, diff in updates(applied.diffs["v"])) == 6
    engine.flush()
    assert engine.read("v").num_rows == 6


def _written_by(call: Any, frame: Any, layout: Any, place: Any) -> tuple[StoredRun, StoredRun]:
    task = writing.Write(layout, place.path)
    (found,) = writing.answers((frame, lambda batches: call(task, batches)))
    assert len(list(place.path.glob("*.parquet"))) == 2 * len(found.files) > 0
    return StoredRun(place, found.files, dict(layout.columns)), StoredRun(place, found.failed, runner.ERROR_SCHEMA)


def test_a_sink_gets_what_stays_in_files(spark: Any, engine: hj.Engine, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    engine.execute(VIEW)
    engine.execute(f"CREATE SINK s FROM v INTO DELTA '{tmp_path / 'out'}'")
    engine.apply({"a": _a(spark), "b": _b(spark)}, time=1)
    engine.flush()
    engine.apply({"b": hj.deletes(_b(spark, 10))}, time=2)
    engine.flush()
    assert bag(DeltaTable(str(tmp_path / "out")).to_pyarrow_table()) == bag(engine.read("v"))


def test_failing_rows_stay_in_files_too(spark: Any, engine: hj.Engine, tmp_path: Path) -> None:
    engine.execute(VIEW)
    engine.apply({"a": spark.sql("SELECT id AS k, 0L AS x FROM range(3)"), "b": _b(spark)}, time=1)
    with pytest.raises(hj.DataError, match="division by zero"):
        engine.read("v")
    engine.close()
    with hj.Engine(tmp_path / "w", spark=spark) as again:
        with pytest.raises(hj.DataError, match="division by zero"):
            again.dataframe("v")
        again.apply({"a": hj.deletes(spark.sql("SELECT id AS k, 0L AS x FROM range(3)"))}, time=2)
        assert again.read("v").num_rows == 0


def test_plain_spark_sees_the_contents_in_a_tables_files(spark: Any, engine: hj.Engine, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, n numeric(10, 2), d date, m timestamptz, w text, l bigint[])")
    given = spark.sql("""SELECT id AS k, cast(id / 4 AS decimal(10, 2)) AS n, date'2020-02-29' AS d, 'w' AS w,
                         timestamp'2020-01-01 00:00:00Z' AS m, array(id, NULL) AS l FROM range(9)""")
    engine.apply({"t": given}, time=1)
    engine.apply({"t": hj.deletes(given.where("k < 3"))}, time=2)
    engine.apply({"t": [{"k": 99, "d": dt.date(2000, 1, 1)}]}, time=3)
    engine.flush()
    table = DeltaTable(str(tmp_path / "w" / "tables" / "t"))
    frame = spark.read.parquet(*table.file_uris())
    columns = engine.read("t").column_names
    there = frame.groupBy(*columns).sum("__diff").where("`sum(__diff)` <> 0").drop("sum(__diff)")
    assert bag(there.toArrow().select(columns)) == bag(engine.read("t"))
    statistics = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert {(one["min.k"], one["max.k"]) for one in statistics} <= {(0, 8), (0, 2), (99, 99), (0, 99)} | {
        (low, high) for low in range(9) for high in range(9)
    }
    assert all(one["num_records"] > 0 and one["min.__time"] in (1, 2, 3) for one in statistics)


def test_what_a_dead_process_left_in_the_staging_folder_goes(spark: Any, engine: hj.Engine, tmp_path: Path) -> None:
    staging = tmp_path / "w" / "staging"
    engine.apply({"a": _a(spark)}, time=1)
    (own,) = staging.iterdir()
    (left := own / "halfjoin-0123456789ab-x" / "1").mkdir(parents=True)
    (left / "part.parquet").write_bytes(b"")
    engine.close()
    with hj.Engine(tmp_path / "w", spark=spark):
        assert not left.exists()


def test_a_terminal_is_told_which_of_the_views_it_waits_for(
    spark: Any, engine: hj.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    engine.execute(VIEW + "; CREATE MATERIALIZED VIEW other AS SELECT k FROM a")
    engine.execute("CREATE MATERIALIZED VIEW above AS SELECT k FROM v")
    monkeypatch.setattr(runner, "progress", lambda doing: nullcontext(told.append(doing)))
    engine.apply({"a": _a(spark), "b": _b(spark)}, time=1)
    assert told[0] == "checking rows of a, b"
    assert told[-3:] == ["changes of v, view 1 of 3", "changes of other, view 2 of 3", "changes of above, view 3 of 3"]


def test_staged_files_go_with_their_batchs_answer(
    spark: Any, engine: hj.Engine, tmp_path: Path
) -> None:
    """Also after reads in between: caches of files do not keep them."""
    engine.execute(VIEW)
    engine.apply({"a": _a(spark), "b": _b(spark)}, time=1)
    answer = engine.apply({"a": hj.upserts(_a(spark, 9))}, time=2)
    assert answer.diffs["v"].num_rows == 0
    assert engine.read("v").num_rows == 6
    del answer
    gc.collect()
    assert not [path for path in (tmp_path / "w" / "staging").rglob("*") if path.is_file()]


def test_what_a_reader_still_reads_stays_when_a_writer_opens(spark: Any, engine: hj.Engine, tmp_path: Path) -> None:
    engine.apply({"a": _a(spark)}, time=1)
    engine.flush()
    with hj.Engine(tmp_path / "w", read_only=True, spark=spark) as reader:
        frame, expected = reader.dataframe("a"), bag(engine.read("a"))
        # Its files are the table's own, by links.
        own = list((tmp_path / "w" / "tables" / "a").glob("*.parquet"))
        links = [path for path in (tmp_path / "w" / "staging").glob("*/*/*/*.parquet") if path.stat().st_nlink > 1]
        assert own and {path.name for path in links} >= {path.name for path in own}
        assert reader.stats().memory == 0
        engine.apply({"a": hj.deletes(_a(spark, 10))}, time=2)
        engine.compact()
        engine.close()
        with hj.Engine(tmp_path / "w", spark=spark):
            for file in (tmp_path / "w" / "tables" / "a").glob("*.parquet"):  # as if an hour had passed
                file.unlink()
            assert bag(frame.toArrow()) == expected


def test_a_reader_without_write_permission_copies(
    spark: Any, engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.execute(VIEW)
    engine.apply({"a": _a(spark), "b": _b(spark)}, time=1)
    engine.flush()
    engine.apply({"a": hj.deletes([{"k": 1, "x": 2}])}, time=2)

    def refused(*args: Any, **kinds: Any) -> Any:
        raise PermissionError("not here")

    monkeypatch.setattr(session.tempfile, "NamedTemporaryFile", refused)
    monkeypatch.setattr(os, "link", refused)
    with hj.Engine(tmp_path / "w", read_only=True, spark=spark) as reader:
        for name in ("a", "v"):
            expected = reader.read(name)
            assert bag(reader.dataframe(name).toArrow().select(expected.column_names)) == bag(expected)


def test_scratch_files_serve_a_warehouse_unseen_by_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "sees", lambda session, folder: False)
    with hj.Engine(tmp_path / "w", spark=spark) as engine:
        engine.execute(DDL + VIEW)
        engine.apply({"a": _a(spark)}, time=1)
        engine.flush()
        assert engine.apply({"b": _b(spark)}, time=2).diffs["v"].num_rows == 6
        assert not isinstance(engine._state.views["v"].contents.held[0], StoredRun)
    shutil.rmtree(tmp_path / "w" / "staging", ignore_errors=True)
    with hj.Engine(tmp_path / "w", spark=spark) as engine:
        assert engine.dataframe("v").count() == engine.read("v").num_rows == 6


def test_a_small_frame_runs_locally_when_lookups_are_in_memory(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "NEAR", 30)
    with hj.Engine(tmp_path / "near", spark=spark) as engine, hj.Engine(spark=spark, runner="spark") as other:
        for one in (engine, other):
            one.execute(DDL + VIEW)
            one.apply({"a": _a(spark)}, time=1, batch_id="a")
        applied, theirs = (one.apply({"b": _b(spark)}, time=2) for one in (engine, other))
        assert (applied.runner, theirs.runner) == ("local", "spark")
        assert bag(applied.diffs["v"]) == bag(theirs.diffs["v"])
        assert engine.apply({"a": _a(spark).toArrow()}, time=1, batch_id="a").upper == 2
        twice = spark.sql("SELECT 1L AS k, id AS x FROM range(2)")
        for rows, says in ((twice, "would be a second row"), (hj.upserts(twice), "have a key that comes again")):
            with pytest.raises(hj.InvalidRow, match=says) as refused:
                engine.apply({"a": rows}, time=3)
            assert "row 0" not in str(refused.value) and "row 1" not in str(refused.value)
        upserts = {"a": hj.upserts(spark.sql("SELECT id AS k, id + 7 AS x FROM range(9)"))}
        assert bag(engine.apply(upserts, time=3).diffs["v"]) == bag(other.apply(upserts, time=3).diffs["v"])
        assert engine.apply({"b": _b(spark, 31)}, time=4).runner == "spark"
    with hj.Engine(tmp_path / "near", spark=spark, memory=1) as engine:
        assert engine.apply({"b": _b(spark)}, time=5).runner == "spark"
