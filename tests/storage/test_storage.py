"""A warehouse in a folder: opened again, by one writer, beside readers, and when the disk fails."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import FileIO
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

import halfjoin as hj
from halfjoin.engine.storage import lock
from tests.oracle.rows import bag, changes, tuples

DDL = """
CREATE TABLE o (id bigint PRIMARY KEY, v integer NOT NULL, note text);
CREATE INDEX ON o ((v % 3), (note || 'x'));
CREATE VIEW plain AS SELECT id FROM o WHERE v > 1;
CREATE MATERIALIZED VIEW big (number, value) WITH (RETAIN HISTORY FOR 50) AS SELECT id, v FROM o WHERE v > 5;
CREATE MATERIALIZED VIEW ratio AS SELECT id, 12 / v AS r FROM o;
CREATE MATERIALIZED VIEW pairs AS SELECT l.number AS a, r.number AS b FROM big AS l, big AS r WHERE l.value = r.value;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A path that needs quoting in a URL."""
    yield tmp_path / "a warehouse, 100 % ü"


def _filled(folder: Path) -> hj.Engine:
    engine = hj.Engine(folder)
    engine.execute(DDL)
    engine.apply({"o": [{"id": 1, "v": 9, "note": "a"}, {"id": 2, "v": 3}, {"id": 3, "v": 9}]}, time=3, batch_id="one")
    return engine


def test_everything_is_there_again(folder: Path) -> None:
    with _filled(folder) as engine:
        stats = engine.stats()
    for step in (None, "flush", "compact"):
        with hj.Engine(folder) as engine:
            assert bag(engine.read("o")) == {(1, 9, "a"): 1, (2, 3, None): 1, (3, 9, None): 1}
            assert bag(engine.read("big")) == {(1, 9): 1, (3, 9): 1}
            assert bag(engine.read("pairs")) == {(1, 1): 1, (1, 3): 1, (3, 1): 1, (3, 3): 1}
            assert bag(engine.query("SELECT id FROM plain")) == {(1,): 1, (2,): 1, (3,): 1}
            again = engine.stats()
            assert again.upper == 4
            assert {a.name for a in again.arrangements} == {a.name for a in stats.arrangements}
            if step is not None:
                getattr(engine, step)()


def test_indexes_are_on_the_same_expressions_again(folder: Path) -> None:
    keys = ["r[1]", "abs(v) ^ 2", "v::text", "CASE WHEN v > 1 THEN 'a''b' ELSE note END", "note LIKE 'a%'",
            "extract(year FROM ts)", "ts + interval '1 day'", '"Odd Col" % 3', "v = ANY(r)"]  # fmt: skip
    with hj.Engine(folder) as engine:
        engine.execute('CREATE TABLE t (v integer, note text, ts timestamp, "Odd Col" bigint, r integer[])')
        engine.execute(";\n".join(f"CREATE INDEX ON t (({key}))" for key in keys))
        before = [arrangement.name for arrangement in engine.stats().arrangements]
    with hj.Engine(folder) as engine:
        assert [arrangement.name for arrangement in engine.stats().arrangements] == before
        assert len(before) == len(keys)


def test_nothing_is_loaded_before_it_is_needed(folder: Path) -> None:
    _filled(folder).close()
    with hj.Engine(folder) as engine:
        assert all(not c.runs for c in engine.stats().collections)
        assert {c.name: c.updates for c in engine.stats().collections}["o"] == 3
        engine.apply({"o": [{"id": 7, "v": 1}]}, time=9)
        loaded = {c.name for c in engine.stats().collections if c.runs}
        assert "o" in loaded and "pairs" not in loaded  # o has a key to be checked, pairs is only added to


def test_a_batch_id_is_known_after_reopening(folder: Path) -> None:
    rows = [{"id": 1, "v": 9, "note": "a"}, {"id": 2, "v": 3}, {"id": 3, "v": 9}]
    _filled(folder).close()
    with hj.Engine(folder) as engine:
        engine.execute("CREATE MATERIALIZED VIEW later AS SELECT id FROM o")
        engine.apply({"o": [{"id": 4, "v": 9}]}, time=8)
        engine.compact()
        again = engine.apply({"o": rows}, time=3, batch_id="one")
        assert (again.time, again.upper) == (3, 4)
        assert sorted(changes(again, "big")) == [((1, 9), 3, 1), ((3, 9), 3, 1)]
        assert "later" not in again.diffs
        assert engine.read("o").num_rows == 4
        with pytest.raises(hj.Conflict, match="one"):
            engine.apply({"o": rows[:1]}, time=3, batch_id="one")


def test_errors_of_views_are_kept_and_go_away_with_the_row(folder: Path) -> None:
    with _filled(folder) as engine:
        engine.apply({"o": [{"id": 5, "v": 0}]}, time=5)
    with hj.Engine(folder) as engine:
        with pytest.raises(hj.DataError, match="division by zero"):
            engine.read("ratio")
        engine.flush()
    with hj.Engine(folder) as engine:
        engine.apply({"o": hj.deletes([{"id": 5, "v": 0}])}, time=6)
        assert bag(engine.read("ratio")) == {(1, 1): 1, (2, 4): 1, (3, 1): 1}


def test_what_is_dropped_is_gone_and_its_name_is_free(folder: Path) -> None:
    with _filled(folder) as engine:
        engine.flush()
        engine.execute("DROP MATERIALIZED VIEW pairs; DROP MATERIALIZED VIEW big; DROP INDEX o_v___3_note_____x_idx")
        engine.execute("CREATE MATERIALIZED VIEW big AS SELECT note FROM o WHERE note IS NOT NULL")
        assert not (folder / "views" / "pairs").exists()
        engine.flush()
    with hj.Engine(folder) as engine:
        assert bag(engine.read("big")) == {("a",): 1}
        assert engine.execute("SHOW INDEXES").num_rows == 0  # type: ignore[union-attr]


def test_a_dropped_tables_folder_is_not_the_new_tables(folder: Path) -> None:
    with _filled(folder) as engine:
        engine.flush()
        shutil.copytree(folder / "views" / "big", folder / "old")
        engine.execute("CREATE OR REPLACE MATERIALIZED VIEW ratio AS SELECT id, v FROM o")
        engine.execute("DROP MATERIALIZED VIEW pairs; DROP MATERIALIZED VIEW big")
        engine.execute("CREATE MATERIALIZED VIEW big AS SELECT id AS number, v AS value FROM o WHERE v < 5")
        shutil.copytree(folder / "old", folder / "views" / "big")
        engine.flush()
    with hj.Engine(folder) as engine:
        assert bag(engine.read("big")) == {(2, 3): 1}


def test_a_second_writer_is_told_who_holds_the_warehouse(folder: Path) -> None:
    with _filled(folder), pytest.raises(hj.Conflict, match=r"process \d+ on .* since .*read_only=True"):
        hj.Engine(folder)
    hj.Engine(folder).close()


def test_history_is_kept_as_long_as_the_warehouse_says(folder: Path) -> None:
    with hj.Engine(folder, retain=5) as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        for time in range(12):
            engine.apply({"t": [{"k": time}]}, time=time)
        engine.compact()
    with hj.Engine(folder) as engine:
        assert engine.read("t", as_of=7).num_rows == 8
        with pytest.raises(hj.InvalidTime, match="since = 7"):
            engine.read("t", as_of=6)
    with hj.Engine(folder, retain=100) as engine, pytest.raises(hj.InvalidTime, match="since = 7"):
        engine.read("t", as_of=6)  # what is gone does not come back


def _pulse(batch: pa.RecordBatch) -> pa.RecordBatch:
    x = batch.column(0)
    return pa.RecordBatch.from_arrays([pa.array(range(len(x))), pc.multiply(x, 2)], names=["__row", "y"])


def test_table_functions_are_to_be_registered_again(folder: Path) -> None:
    with hj.Engine(folder) as engine:
        engine.execute("CREATE TABLE t (x bigint)")
        engine.register_table_function("twice", _pulse, returns={"y": "bigint"})
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT p.y FROM t, twice(t.x) AS p(y)")
        engine.apply({"t": [{"x": 4}]}, time=0)
    with hj.Engine(folder) as engine:
        assert bag(engine.read("v")) == {(8,): 1}
        with pytest.raises(hj.HalfjoinError, match="register_table_function"):
            engine.apply({"t": [{"x": 5}]}, time=1)
        with pytest.raises(hj.Conflict, match="y bigint"):
            engine.register_table_function("twice", _pulse, returns={"y": "text"})
        engine.register_table_function("twice", _pulse, returns={"y": "bigint"})
        engine.apply({"t": [{"x": 5}]}, time=1)
        assert bag(engine.read("v")) == {(8,): 1, (10,): 1}


def test_columns_that_differ_in_case_alone_are_refused(folder: Path) -> None:
    with hj.Engine(folder) as engine:
        with pytest.raises(hj.UnsupportedSQL, match="differ only in case"):
            engine.execute('CREATE TABLE t ("A" bigint, a bigint)')
        engine.execute('CREATE TABLE t ("A" bigint, "b c,d.e" bigint)')
        engine.apply({"t": [{"A": 1, "b c,d.e": 2}]})
        engine.flush()
    with hj.Engine(folder) as engine:
        assert bag(engine.read("t")) == {(1, 2): 1}


# Other readers.


def test_other_tools_read_the_same_contents(folder: Path) -> None:
    with _filled(folder) as engine:
        engine.flush()
        engine.apply({"o": hj.deletes([{"id": 2, "v": 3}])}, time=9)
        engine.flush()
        expected = bag(engine.read("o"))
    table = DeltaTable((folder / "tables" / "o").as_uri())
    files = [str(folder / "tables" / "o" / path) for path in pa.table(table.get_add_actions())["path"].to_pylist()]
    plain = pa.concat_tables([pq.read_table(path) for path in files])
    assert bag(plain.drop_columns(["__time"])) == expected
    assert plain.column_names == ["id", "v", "note", "__time", "__diff"]
    sql = "SELECT id, v, note, sum(__diff)::bigint AS __diff FROM read_parquet($1) GROUP BY ALL HAVING sum(__diff) <> 0"
    assert bag(duckdb.connect().sql(sql, params=[files]).to_arrow_table()) == expected
    assert bag(table.to_pyarrow_table().drop_columns(["__time"])) == expected


def test_polars_reads_the_delta_table(tmp_path: Path) -> None:
    folder = tmp_path / "w"  # polars does not find a table whose URL needs quoting
    polars = pytest.importorskip("polars", reason="polars is not among the packages that the tests need")
    with _filled(folder) as engine:
        engine.flush()
        expected = bag(engine.read("big"))
    frame = polars.read_delta(str(folder / "views" / "big"))
    assert bag(frame.drop("__time").to_arrow()) == expected


def test_other_tools_read_every_kind_of_number(tmp_path: Path) -> None:
    kinds = {
        "k": "bigint PRIMARY KEY", "i": "integer", "s": "smallint", "d": "date", "at": "timestamp", "tz": "timestamptz",
        "small": "numeric(9, 2)", "large": "numeric(18, 4)", "huge": "numeric(38, 6)", "f": "double precision",
        "b": "boolean", "r": "integer[]",
    }  # fmt: skip
    moment = datetime(2024, 2, 29, 12, 30, 1, 999_999)
    rows: list[dict[str, object]] = [
        {
            "k": n * 10**15, "i": -n, "s": n, "d": date(1969, 1, 1) + n * timedelta(1), "at": moment - n * timedelta(9),
            "tz": moment.replace(tzinfo=UTC), "small": Decimal(n) / 4, "large": Decimal(-n) / 8,
            "huge": Decimal(n) * 10**20, "f": n / 3, "b": n % 2 == 0, "r": [n, None],
        }
        for n in range(-300, 300)
    ]  # fmt: skip
    rows.extend({"k": n} for n in range(1, 300))  # NULLs
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(f"CREATE TABLE t ({', '.join(map(' '.join, kinds.items()))})")
        engine.apply({"t": rows}, time=0)
        engine.flush()
        expected = engine.read("t")
    table = DeltaTable((tmp_path / "w" / "tables" / "t").as_uri())
    actions = pa.table(table.get_add_actions())
    files = [str(tmp_path / "w" / "tables" / "t" / path) for path in actions["path"].to_pylist()]
    query = QueryBuilder().register("t", table).execute("SELECT * FROM t")
    duck = duckdb.connect()  # a relation of DuckDB 1.4 does not keep its connection
    read = {
        "DuckDB": duck.sql("SELECT * FROM read_parquet($1)", params=[files]).to_arrow_table(),
        "DataFusion": pa.table(query),
        "pyarrow": table.to_pyarrow_table(),
    }
    for tool, found in read.items():
        plain = found.drop_columns(["__time", "__diff"]).cast(expected.schema)
        assert bag(plain) == bag(expected), tool
    chunks = pq.read_metadata(files[0]).row_group(0).to_dict()["columns"]
    encoded = {chunk["path_in_schema"] for chunk in chunks if "DELTA_BINARY_PACKED" in chunk["encodings"]}
    assert encoded == {"k", "i", "s", "d", "at", "tz", "small", "large", "__time", "__diff"}


def test_files_are_sorted_by_the_key_and_have_statistics(folder: Path) -> None:
    with hj.Engine(folder) as engine:
        engine.execute("CREATE TABLE t (a text, k bigint PRIMARY KEY, n numeric(9,2), ts timestamptz, r integer[])")
        at = "1970-01-01 00:00:01Z"
        engine.apply({"t": [{"k": k, "a": str(k), "n": k, "ts": at, "r": [k]} for k in (3, 1, 2)]}, time=0)
        engine.flush()
    table = DeltaTable((folder / "tables" / "t").as_uri())
    assert table.to_pyarrow_table()["k"].to_pylist() == [1, 2, 3]
    (action,) = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert (action["min.k"], action["max.k"], action["num_records"], action["null_count.a"]) == (1, 3, 3, 0)


# Beside a writer.


def test_a_reader_sees_each_batch_whole_and_blocks_nobody(folder: Path) -> None:
    with _filled(folder) as engine, hj.Engine(folder, read_only=True) as reader:
        for number in range(4, 30):
            engine.apply({"o": [{"id": number, "v": 9}]}, time=number)
            if number % 3 == 0:
                engine.flush()
            if number % 7 == 0:
                engine.compact()
            if number % 2:
                assert bag(reader.read("o")) == bag(engine.read("o"))
                assert bag(reader.read("pairs", as_of=number)) == bag(engine.read("pairs"))
        engine.execute("DROP MATERIALIZED VIEW pairs; CREATE TABLE more (k int)")
        assert reader.read("more").num_rows == 0
        with pytest.raises(hj.UnknownName):
            reader.read("pairs")
        assert reader.query("SELECT count(*) AS n FROM o")["n"].to_pylist() == [29]
        (first, *_) = reader.subscribe("big", as_of=3)
        assert len(tuples(first)) == 2


def test_a_reader_keeps_as_much_history_as_the_writer(tmp_path: Path) -> None:
    with hj.Engine(tmp_path, clock="own", retain=1) as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        reader = hj.Engine(tmp_path, read_only=True)
    with reader:
        for retain in (10, 1, 10):
            with hj.Engine(tmp_path, retain=retain) as engine:
                first = engine.stats().upper
                for time in range(first, first + 6):
                    engine.apply({"t": [{"k": time}]}, time=time)
                    assert reader.read("t").num_rows == time + 1
                for time in range(first if retain == 10 else first + 5, first + 6):
                    assert reader.read("t", as_of=time) == engine.read("t", as_of=time)


def test_a_reader_changes_nothing(folder: Path) -> None:
    with pytest.raises(hj.StorageError, match="no warehouse"):
        hj.Engine(folder, read_only=True)
    _filled(folder).close()
    with hj.Engine(folder, read_only=True) as reader:
        assert reader.read("o").num_rows == 3
        for change in (lambda: reader.apply({"o": [{"id": 9, "v": 9}]}), lambda: reader.execute("DROP VIEW plain"),
                       lambda: reader.advance(), lambda: reader.execute("DELETE FROM o")):  # fmt: skip
            with pytest.raises(hj.HalfjoinError, match="read_only"):
                change()
        reader.flush()
        reader.compact()
    with hj.Engine(folder) as engine:
        assert engine.read("o").num_rows == 3


# When the disk fails.


def test_a_lock_on_a_full_disk_does_not_say_who_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "FileIO", _Full)
    held = lock.Lock(tmp_path)
    with pytest.raises(hj.Conflict, match="is being written by another process"):
        lock.Lock(tmp_path)
    held.release()


class _Full(FileIO):
    def write(self, data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _limited(path: str) -> None:
    """Runs in a process whose files cannot grow: batches until the disk is full, then what is left."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    engine = hj.Engine(path)
    engine.execute("CREATE TABLE t (k bigint, v text); CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
    engine.apply({"t": [{"k": 0, "v": ""}]}, time=0, batch_id="0")
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    done = 0
    try:
        for number in range(1, 100):
            engine.apply({"t": [{"k": number, "v": os.urandom(10_000).hex()}]}, time=number, batch_id=str(number))
            done = number
    except hj.StorageError as problem:
        assert engine.read("t").num_rows == done + 1, "a refused batch is visible"
        assert engine.read("w").num_rows == done + 1
        try:
            engine.execute("CREATE MATERIALIZED VIEW twice AS SELECT l.v AS l, r.v AS r FROM t AS l, t AS r")
        except hj.StorageError:
            assert [row["name"] for row in engine.execute("SHOW VIEWS").to_pylist()] == ["w"]  # type: ignore[union-attr]
        else:
            raise AssertionError("a view larger than the disk was made") from problem
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        engine.apply({"t": [{"k": -1, "v": "after"}]}, time=1000)
        print(done, engine.read("t").num_rows)
        return
    raise AssertionError("the disk never was full")


def test_a_full_disk_is_a_clear_error_and_nothing_is_lost(folder: Path) -> None:
    code = f"from tests.storage.test_storage import _limited; _limited({str(folder)!r})"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    batches, rows = map(int, done.stdout.split())
    assert rows == batches + 2
    with hj.Engine(folder) as engine:
        assert sorted(engine.read("w")["k"].to_pylist()) == list(range(-1, batches + 1))


# Work that was never acknowledged.


def test_torn_files_of_an_unfinished_flush_do_no_harm(folder: Path) -> None:
    with _filled(folder) as engine:
        engine.flush()
    before = shutil.copytree(folder, folder.parent / "before")
    with hj.Engine(folder) as engine:
        engine.apply({"o": [{"id": 9, "v": 9}]}, time=9)
        engine.close()
    journal = (folder / "journal.sqlite").read_bytes()
    with hj.Engine(folder) as engine:
        engine.flush()
    for damage in ("torn commit", "missing file", "torn file", "none"):
        copy = shutil.copytree(folder, folder.parent / damage)
        (copy / "journal.sqlite").write_bytes(journal)  # as if killed between the tables' commits and the journal's
        table = copy / "tables" / "o"
        known = {path.name for path in (before / "tables" / "o").glob("*.parquet")}
        new = {path.name for path in table.glob("*.parquet")} - known
        commit = max((table / "_delta_log").glob("*.json"))
        match damage:
            case "torn commit":
                commit.write_bytes(commit.read_bytes()[:100])
            case "missing file":
                (table / new.pop()).unlink()
            case "torn file":
                path = table / new.pop()
                path.write_bytes(path.read_bytes()[:-50])
        with hj.Engine(copy) as engine:
            assert engine.read("o").num_rows == 4, damage
            engine.flush()
        with hj.Engine(copy) as engine:
            assert engine.read("o").num_rows == 4, damage
            assert bag(engine.read("big")) == {(1, 9): 1, (3, 9): 1, (9, 9): 1}, damage


def test_a_missing_acknowledged_file_is_named(folder: Path) -> None:
    with _filled(folder) as engine:
        engine.flush()
    for path in (folder / "tables" / "o").glob("*.parquet"):
        path.unlink()
    with hj.Engine(folder) as engine:
        assert engine.read("big").num_rows == 2
        with pytest.raises(hj.StorageError, match="tables/o"):
            engine.read("o")


def test_a_missing_table_is_not_made_anew_empty(folder: Path) -> None:
    with _filled(folder) as engine:
        engine.flush()
    shutil.rmtree(folder / "tables" / "o")
    with hj.Engine(folder) as engine:
        engine.advance(to=10)
        with pytest.raises(hj.StorageError, match="tables/o"):
            engine.flush()
        with pytest.raises(hj.StorageError, match="tables/o"):
            engine.read("o")
