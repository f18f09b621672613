"""A warehouse in an object store, against an S3-compatible server on this machine."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings

import halfjoin as hj
from halfjoin.engine.storage import object_journal
from halfjoin.engine.storage.place import ObjectPlace
from tests.laws.test_view_law import programs
from tests.oracle.replay import Replay
from tests.oracle.rows import bag, changes
from tests.oracle.streams import Program
from tests.storage.test_storage import DDL
from tests.storage.test_storage_law import DurableReplay
from tests.support.ports import kept_port

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("moto") is None, reason="needs an S3-compatible server: pip install 'halfjoin[test-s3]'"
)
START_SECONDS = 120


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a bucket."""
    port = kept_port()
    endpoint = f"http://127.0.0.1:{port}"
    log = (tmp_path_factory.mktemp("moto") / "log").open("wb")
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                              stdout=log, stderr=log)  # fmt: skip
    settings = {"ENDPOINT_URL": endpoint, "ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test",
                "REGION": "us-east-1", "ALLOW_HTTP": "true"}  # fmt: skip
    with pytest.MonkeyPatch.context() as environment:
        for name, value in settings.items():
            environment.setenv(f"AWS_{name}", value)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not _made(f"{endpoint}/bucket"):
                assert server.poll() is None and time.monotonic() < deadline, "the server does not start"
                time.sleep(0.1)
            yield "s3://bucket"
        finally:
            server.kill()
            server.wait()
            log.close()


def _made(url: str) -> bool:
    try:
        urllib.request.urlopen(urllib.request.Request(url, method="PUT"))
    except urllib.error.URLError:
        return False
    return True


@pytest.fixture
def url(bucket: str) -> str:
    return f"{bucket}/{uuid.uuid4()}/warehouse"


def test_everything_is_there_again(url: str) -> None:
    rows = [{"id": 1, "v": 9, "note": "a"}, {"id": 2, "v": 3}]
    with hj.Engine(url) as engine:
        engine.execute(DDL)
        engine.apply({"o": rows}, time=3, batch_id="one")
    for step in ("flush", "compact", "flush"):
        with hj.Engine(url) as engine:
            assert bag(engine.read("o")) == {(1, 9, "a"): 1, (2, 3, None): 1}
            assert bag(engine.read("big")) == {(1, 9): 1}
            again = engine.apply({"o": rows}, time=3, batch_id="one")
            assert changes(again, "big") == [((1, 9), 3, 1)]
            getattr(engine, step)()
    with hj.Engine(url) as engine:
        engine.execute("DROP MATERIALIZED VIEW pairs; DROP MATERIALIZED VIEW big; CREATE TABLE big (k int)")
        engine.flush()
    with hj.Engine(url) as engine:
        assert engine.read("big").num_rows == 0


def test_a_transaction_of_definitions_and_rows_is_one_step(url: str) -> None:
    with hj.Engine(url, clock="own") as engine:
        engine.execute("CREATE TABLE t (k int); SET TIME = 1; INSERT INTO t VALUES (1); SET TIME = 2")
        engine.execute("BEGIN; ALTER TABLE t ADD a int; UPDATE t SET a = 5; CREATE TABLE u (k int PRIMARY KEY); "
                       "INSERT INTO u VALUES (7); CREATE MATERIALIZED VIEW v AS SELECT t.a, u.k FROM t, u; COMMIT")
    for step in ("flush", "compact"):
        with hj.Engine(url) as engine:
            assert bag(engine.read("v")) == {(5, 7): 1} and bag(engine.read("t")) == {(1, 5): 1}
            getattr(engine, step)()


def test_the_former_writer_is_refused_and_loses_nothing(url: str) -> None:
    with hj.Engine(url) as first:
        first.execute(DDL)
        first.apply({"o": [{"id": 1, "v": 9}]}, time=3)
        with hj.Engine(url) as second:
            for change in (lambda: first.apply({"o": [{"id": 2, "v": 9}]}, time=4),
                           lambda: first.execute("DROP VIEW plain"), lambda: first.flush()):  # fmt: skip
                with pytest.raises(hj.Conflict, match=r"process \d+ on .* since"):
                    change()
            assert first.read("o").num_rows == 1
            second.apply({"o": [{"id": 2, "v": 9}]}, time=4)
            assert bag(second.read("big")) == {(1, 9): 1, (2, 9): 1}


def test_of_writers_that_race_for_an_entry_one_wins(url: str) -> None:
    hj.Engine(url).close()
    engines = [hj.Engine(url) for _ in range(2)]

    def make(engine: hj.Engine) -> bool:
        try:
            engine.execute("CREATE TABLE t (k bigint)")
        except hj.Conflict:
            return False
        return True

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(make, engines)) == [False, True]  # the one that opened the warehouse last
    for engine in engines:
        engine.close()


def test_of_two_engines_that_read_one_source_each_file_counts_once(url: str, tmp_path: Path) -> None:
    """They race through the same files; the one that opened the warehouse last goes on, the other one is refused."""

    def put(names: range) -> None:
        for name in names:
            (tmp_path / f"{name:03}.csv").write_text(f"k\n{name}\n{1000 + name}\n")

    put(range(5))
    with hj.Engine(url) as first:
        first.execute("CREATE TABLE t (k bigint)")
        first.create_source("s", "files", "t", path=tmp_path, settle=0)
        assert first.run_sources(0) == 5
        with hj.Engine(url) as second:
            put(range(5, 15))

            def read(engine: hj.Engine) -> bool:
                try:
                    engine.run_sources(0)
                except hj.Conflict:
                    return False
                return True

            with ThreadPoolExecutor() as pool:
                assert list(pool.map(read, (first, second))) == [False, True]
    with hj.Engine(url) as engine:
        assert engine.run_sources(0) == 0
        assert sorted(engine.read("t")["k"].to_pylist()) == [*range(15), *range(1000, 1015)]


def test_a_reader_follows_the_writer(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_journal, "_MOST_FILES", 5)
    with pytest.raises(hj.StorageError, match="no warehouse"):
        hj.Engine(url, read_only=True)
    with hj.Engine(url) as engine:
        engine.execute(DDL)
        with hj.Engine(url, read_only=True) as reader:
            for number in range(12):
                engine.apply({"o": [{"id": number, "v": 9}]}, time=number)
                if number % 5 == 4:
                    engine.flush()
                if number % 2:
                    assert reader.read("o").num_rows == number + 1
                    assert bag(reader.read("pairs")) == bag(engine.read("pairs"))


@settings(max_examples=max(2, settings().max_examples // 25))
@given(programs())
def test_view_law_over_reopened_warehouses(bucket: str, program: Program) -> None:
    url = f"{bucket}/{uuid.uuid4()}"
    replay: Replay = DurableReplay(program.retain, url, seed=len(program.steps))
    for step in program.steps:
        replay.step(step)
    replay.check_now()
    replay.check_all()
    replay.engine.close()


def test_an_unreachable_store_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with pytest.raises(hj.StorageError, match="s3://nowhere"):
        hj.Engine("s3://nowhere/w")


def test_follows_a_delta_table_beside_it(bucket: str) -> None:
    where = f"{bucket}/{uuid.uuid4()}"
    source, warehouse = f"{where}/source", f"{where}/warehouse"
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(source, pa.table({"k": [1, 2]}), configuration=feed)
    with hj.Engine(warehouse) as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.follow("t", source)
    DeltaTable(source).delete("k = 1")
    with hj.Engine(warehouse) as engine:
        assert len(engine.follow("t", source)) == 1
        assert bag(engine.read("t")) == {(2,): 1}
        engine.execute("DROP TABLE t; CREATE TABLE t (k bigint)")
    with hj.Engine(warehouse) as engine:
        engine.follow("t", source)
        assert bag(engine.read("t")) == {(2,): 1}
        assert engine.follow("t", source) == []
    DeltaTable(source).delete("k = 2")
    ObjectPlace(source).cut(0)
    with hj.Engine(warehouse) as engine, pytest.raises(hj.Conflict, match="is at version 0"):
        engine.follow("t", source)


def test_sinks_in_the_store(bucket: str, url: str, tmp_path: Path) -> None:
    elsewhere = f"{bucket}/{uuid.uuid4()}/out"
    with hj.Engine(url) as engine:
        engine.execute(DDL)
        engine.apply({"o": [{"id": 1, "v": 9}, {"id": 2, "v": 9}]}, time=1)
        engine.execute(f"CREATE SINK near FROM big INTO DELTA 'near'; CREATE SINK far FROM o INTO DELTA '{elsewhere}'")
        for target, says in ((url, "warehouse"), (f"{url}/journal", "warehouse"), (f"{elsewhere}/x", "sink far")):
            with pytest.raises(hj.UnsupportedSQL, match=says):
                engine.execute(f"CREATE SINK s FROM big INTO DELTA '{target}'")
        engine.apply({"o": hj.deletes([{"id": 1, "v": 9}])}, time=2)
    with hj.Engine(url) as engine:
        engine.apply({"o": [{"id": 3, "v": 7}]}, time=3)
        engine.flush()
        assert bag(DeltaTable(f"{url}/sinks/near").to_pyarrow_table()) == {(2, 9): 1, (3, 7): 1}
        assert bag(DeltaTable(elsewhere).to_pyarrow_table()) == {(2, 9, None): 1, (3, 7, None): 1}
        assert bag(DeltaTable(elsewhere, version=2).to_pyarrow_table()) == {(2, 9, None): 1}
        engine.execute(f"DROP SINK far; CREATE SINK far FROM o INTO DELTA '{elsewhere}'")  # it takes over what is ours
        engine.flush()
        assert bag(DeltaTable(elsewhere).to_pyarrow_table()) == {(2, 9, None): 1, (3, 7, None): 1}
    with hj.Engine(tmp_path / "local") as engine, pytest.raises(hj.Conflict, match="holds a Delta table already"):
        engine.execute(f"{DDL} CREATE SINK s FROM o INTO DELTA '{elsewhere}'")
    with hj.Engine(tmp_path / "local") as engine:
        engine.execute(f"CREATE SINK s FROM o INTO DELTA '{elsewhere}2'")
        engine.apply({"o": [{"id": 3, "v": 7}]})
        engine.flush()
    assert bag(DeltaTable(f"{elsewhere}2").to_pyarrow_table()) == {(3, 7, None): 1}


@pytest.mark.parametrize("path", ["views/report.sql", "notes.txt", "journal/part.parquet"])
def test_a_prefix_that_holds_something_else_is_refused(url: str, path: str) -> None:
    folder, _, name = path.rpartition("/")
    place = ObjectPlace(f"{url}/{folder}" if folder else url)
    place.write(name, pa.py_buffer(b"precious"))
    for read_only in (False, True):
        with pytest.raises(hj.StorageError, match="warehouse"):
            hj.Engine(url, read_only=read_only)
    assert place.read(name).to_pybytes() == b"precious"
    assert list(ObjectPlace(url).names()) == [path.partition("/")[0]]


def test_a_warehouse_without_its_journal_is_refused(url: str) -> None:
    with hj.Engine(url) as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.apply({"t": [{"k": 1}]}, time=1)
        engine.flush()
    ObjectPlace(f"{url}/journal").clear()
    with pytest.raises(hj.StorageError, match=r"journal .*backup"):
        hj.Engine(url)
    assert set(ObjectPlace(url).names()) == {"tables"}


def test_what_is_dropped_goes_and_what_is_of_others_stays(url: str) -> None:
    with hj.Engine(url) as engine:
        engine.execute("CREATE TABLE t (k bigint); CREATE TABLE u (k bigint)")
        engine.apply({"t": [{"k": 1}], "u": [{"k": 1}]}, time=1)
        engine.flush()
        ObjectPlace(f"{url}/tables/mine").write("x", pa.py_buffer(b"precious"))
        engine.execute("DROP TABLE t")
        with pytest.raises(hj.StorageError, match="move it away"):
            engine.execute("CREATE TABLE mine (k bigint)")
    with hj.Engine(url) as engine:
        assert set(ObjectPlace(f"{url}/tables").names()) == {"mine", "u"}
        assert engine.read("u").num_rows == 1


def test_a_url_that_is_read_in_several_ways_is_refused(bucket: str) -> None:
    for name in ("w%20x", "a?b", "a#b", "a\\b", "a b"):
        with pytest.raises(hj.StorageError, match="path"):
            hj.Engine(f"{bucket}/{name}")
