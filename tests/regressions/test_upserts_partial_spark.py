"""Partial upserts and deletes by key mean the same in Spark DataFrames as in lists."""

import pytest

import halfjoin as hj

OLD = [{"k": k, "a": 10 * k, "b": f"b{k}", "c": 3} for k in range(5)]


@pytest.fixture(params=["memory", "warehouse"])
def engine(request, tmp_path, spark):
    folder = None if request.param == "memory" else tmp_path / "w"
    with hj.Engine(folder, spark=spark, runner="spark") as engine:
        engine.execute("CREATE TABLE t (k integer PRIMARY KEY, a integer, b text, c integer NOT NULL)")
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k, a, b FROM t")
        engine.apply({"t": OLD}, time=1)
        yield engine


def contents(engine):
    return sorted(engine.read("t").to_pylist(), key=lambda row: row["k"])


def test_frames_name_some_columns_too(engine, spark):
    engine.apply({"t": hj.upserts(spark.createDataFrame([(1, "new")], "k integer, b string"))}, time=2)
    engine.apply({"t": hj.deletes(spark.createDataFrame([(0,)], "k integer"))}, time=3)
    expected = [row | ({"b": "new"} if row["k"] == 1 else {}) for row in OLD[1:]]
    assert contents(engine) == expected
    assert sorted(row["k"] for row in engine.read("v").to_pylist()) == [1, 2, 3, 4]
    for rows, why in [
        (hj.upserts(spark.createDataFrame([(9, 1)], "k integer, a integer")), r"the row with \(k\) = \(9\): is new"),
        (hj.deletes(spark.createDataFrame([(9,)], "k integer")), r"deletes a row that is not there: \(k\) = \(9\)"),
        (hj.upserts(spark.createDataFrame([(1,)], "a integer")), r"t\.k: .*is missing"),
    ]:
        with pytest.raises(hj.InvalidRow, match=why):
            engine.apply({"t": rows}, time=4)
    assert contents(engine) == expected


def test_the_same_frame_again_is_the_same_batch(engine, spark):
    frame = spark.createDataFrame([(1, "new"), (2, "newer")], "k integer, b string")
    engine.apply({"t": hj.upserts(frame)}, time=2, batch_id="one")
    engine.apply({"t": hj.upserts([{"k": 2, "b": "newer"}, {"k": 1, "b": "new"}])}, time=2, batch_id="one")
    with pytest.raises(hj.Conflict):
        engine.apply({"t": hj.upserts(frame.select("k", "b", (frame.k * 0).alias("a")))}, time=2, batch_id="one")
