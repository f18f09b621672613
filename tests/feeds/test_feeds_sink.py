"""Streaming queries into tables: each epoch is applied once, whatever dies when, and failures have clear messages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfjoin as hj
from halfjoin.engine.feeds.sink import Sink
from tests.feeds.test_feeds_debezium import message
from tests.oracle.rows import bag


class Source:
    """A folder of files, one per epoch, and a query's checkpoint."""

    def __init__(self, spark: Any, folder: Path, schema: str = "k bigint, v string") -> None:
        self.spark, self.folder, self.schema, self.files = spark, folder, schema, 0
        (folder / "in").mkdir()

    def add(self, rows: list[dict[str, Any]]) -> None:
        path = self.folder / "in" / f"{self.files:03}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        os.utime(path, (1_700_000_000 + self.files,) * 2)  # Spark takes files in the order of these
        self.files += 1

    def run(self, sink: Any, checkpoint: str = "checkpoint") -> None:
        """Run the query until it has delivered everything."""
        frame = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        query = (
            frame.parquet(str(self.folder / "in")).writeStream.foreachBatch(sink)
            .option("checkpointLocation", str(self.folder / checkpoint)).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()


@pytest.fixture
def source(spark: Any, tmp_path: Path) -> Source:
    return Source(spark, tmp_path)


def _engine(spark: Any, where: Path | None = None, key: str = "") -> hj.Engine:
    engine = hj.Engine(where, spark=spark, runner="local")
    if not engine.stats().collections:
        engine.execute(f"CREATE TABLE t (k bigint{key}, v text)")
    return engine


def _dies_after(sink: Sink, epoch: int) -> Any:
    """A function that fails after the engine has committed an epoch, before the stream has."""

    def function(dataframe: Any, epoch_id: int) -> None:
        sink(dataframe, epoch_id)
        if epoch_id == epoch:
            raise SystemError("died")

    return function


def test_a_replayed_epoch_changes_nothing(source: Source, tmp_path: Path) -> None:
    for number in range(3):
        source.add([{"k": number, "v": "a"}, {"k": number, "v": "a"}])
    with _engine(source.spark, tmp_path / "warehouse") as engine, pytest.raises(Exception, match="died"):
        source.run(_dies_after(engine.sink("t"), 1))
    with _engine(source.spark, tmp_path / "warehouse") as engine:
        assert bag(engine.read("t")) == {(0, "a"): 2, (1, "a"): 2}
        source.run(engine.sink("t"))
        assert bag(engine.read("t")) == {(0, "a"): 2, (1, "a"): 2, (2, "a"): 2}
        source.add([{"k": 3, "v": "b"}])
        source.run(engine.sink("t"))
        assert bag(engine.read("t")) == {(0, "a"): 2, (1, "a"): 2, (2, "a"): 2, (3, "b"): 1}


def test_a_checkpoint_that_was_removed(source: Source) -> None:
    source.add([{"k": 1, "v": "a"}])
    with _engine(source.spark) as engine:
        source.run(engine.sink("t"))
        source.run(engine.sink("t"), "new checkpoint")  # the same rows again are the same epoch
        assert bag(engine.read("t")) == {(1, "a"): 1}
        (source.folder / "in" / "000.parquet").unlink()
        source.add([{"k": 2, "v": "a"}])
        with pytest.raises(Exception, match="the sink 't' of t has taken epoch 0 before, with other rows"):
            source.run(engine.sink("t"), "another")
        source.run(engine.sink("t", name="t from 2"), "yet another")
        assert bag(engine.read("t")) == {(1, "a"): 1, (2, "a"): 1}


@pytest.mark.parametrize("kept", [False, True])
def test_a_table_that_is_made_anew_is_fed_from_the_start(spark: Any, tmp_path: Path, kept: bool) -> None:
    frame = spark.createDataFrame([(1, "a")], "k bigint, v string")
    with _engine(spark, tmp_path / "warehouse" if kept else None) as engine:
        engine.execute('CREATE TABLE "t/x" (k bigint, v text)')
        for table in ("t", "t/x"):
            engine.sink(table)(frame, 0)
        engine.execute("DROP TABLE t; CREATE TABLE t (k bigint, v text)")
        for table in ("t", "t/x"):
            engine.sink(table)(frame, 0)
            assert bag(engine.read(table)) == {(1, "a"): 1}


def test_what_the_engine_raises_ends_the_query(source: Source) -> None:
    source.add([{"k": 1, "v": "a"}])
    engine = _engine(source.spark)
    engine.execute("CREATE TABLE narrow (k bigint)")
    with pytest.raises(Exception, match="unknown column 'v' of narrow"):
        source.run(engine.sink("narrow"), "one")
    sink = engine.sink("t")
    engine.close()
    with pytest.raises(Exception, match="the engine is closed"):
        source.run(sink, "two")


def test_the_column_of_times_is_the_one_of_that_name(spark: Any) -> None:
    """Not a column whose name differs in case, whose values would be lost, and not a field."""
    with hj.Engine(spark=spark, runner="local") as engine:
        engine.execute("CREATE TABLE t (k bigint, at bigint); CREATE MATERIALIZED VIEW v AS SELECT k, at FROM t")
        odd = spark.createDataFrame([(1, 2)], "k bigint, x bigint").toDF("k", "a.b`")
        engine.sink("t", name="dots", time="a.b`")(odd, 0)
        rows = spark.createDataFrame([(1, 7)], "k bigint, at bigint")
        with pytest.raises(hj.UnknownName, match="unknown column 'AT' of the rows for t; known: at, k"):
            engine.sink("t", name="case", time="AT")(rows, 0)
        engine.sink("t", name="both", time="at")(rows, 0)
        subscription = engine.subscribe("v", as_of=2, up_to=8)
        assert [row for table in subscription for row in table.to_pylist()] == [
            {"k": 1, "at": None, "__time": 2, "__diff": 1}, {"k": 1, "at": 7, "__time": 7, "__diff": 1}
        ]


def test_what_rows_mean(spark: Any) -> None:
    def frame(rows: list[tuple[Any, ...]], schema: str = "k bigint, v string") -> Any:
        return spark.createDataFrame(rows, schema)

    with _engine(spark, key=" PRIMARY KEY") as engine:
        engine.sink("t")(frame([(1, "a"), (2, "b")]), 0)
        engine.sink("t", name="upserts", format="upserts")(frame([(1, "c")]), 0)
        engine.sink("t", name="deletes", format="deletes")(frame([(2, "b")]), 0)
        assert bag(engine.read("t")) == {(1, "c"): 1}
        engine.sink("t", name="diffs")(frame([(1, "c", -1), (3, "d", 1)], "k bigint, v string, __diff bigint"), 0)
        assert bag(engine.read("t")) == {(3, "d"): 1}
        engine.sink("t", name="chosen", format=lambda rows: hj.upserts(rows.drop("more")))(
            frame([(3, "e", 1)], "k bigint, v string, more int"), 0)  # fmt: skip
        assert bag(engine.read("t")) == {(3, "e"): 1}
        with pytest.raises(hj.InvalidRow, match=r"2 rows have a key that comes again, .* DataFrame have no order"):
            engine.sink("t", name="more", format="upserts")(frame([(1, "a"), (1, "b"), (1, "c")]), 0)
        with pytest.raises(hj.HalfjoinError, match="unknown format 'avro'"):
            engine.sink("t", format="avro")  # type: ignore[arg-type]
        with pytest.raises(hj.HalfjoinError, match="a sink of messages takes no column of times"):
            engine.sink("t", format="debezium", time="v")
        with pytest.raises(hj.UnknownName, match="tt"):
            engine.sink("tt")


def test_debezium_s_messages(spark: Any) -> None:
    messages = [message("c", None, {"k": 1, "v": "a"}), message("u", None, {"k": 1, "v": "b"}), None,
                message("c", None, {"k": 2, "v": "a"}), message("d", {"k": 2})]  # fmt: skip
    kafka = [(None if m is None else m.encode(), 0, offset) for offset, m in enumerate(messages)]
    frame = spark.createDataFrame(kafka[::-1], "value binary, partition int, offset bigint")
    with hj.Engine(spark=spark) as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v text)")
        sink = engine.sink("t", format="debezium")
        sink(frame, 0)
        sink(frame.orderBy("offset"), 0)
        assert bag(engine.read("t")) == {(1, "b"): 1}
        sink(spark.createDataFrame([(messages[3],)], "value string"), 1)
        assert bag(engine.read("t")) == {(1, "b"): 1, (2, "a"): 1}
        with pytest.raises(hj.InvalidRow, match=r"several messages are about one key, .* keep the columns partition"):
            sink(frame.select("value"), 2)


def test_a_column_of_times(spark: Any) -> None:
    with _engine(spark) as engine:
        frame = spark.createDataFrame([(1, "a", 5), (2, "b", 7)], "k bigint, v string, at bigint")
        engine.sink("t", time="at", close=False)(frame, 0)
        engine.advance(to=6)
        assert bag(engine.read("t")) == {(1, "a"): 1}
        engine.sink("t", name="closing", time="k")(frame.selectExpr("k + 5 AS k", "v"), 0)
        assert engine.stats().upper == 8
        assert bag(engine.read("t")) == {(1, "a"): 1, (2, "b"): 1, (6, "a"): 1, (7, "b"): 1}
        with pytest.raises(hj.InvalidTime, match="closed"):
            engine.sink("t", time="at")(frame, 1)


def test_a_sink_is_not_sent_elsewhere() -> None:
    import pickle

    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint)")
    with pytest.raises(hj.HalfjoinError, match="start the query from a classic session"):
        pickle.dumps(engine.sink("t"))
