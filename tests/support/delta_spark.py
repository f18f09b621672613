"""Read a warehouse with Spark's own Delta reader, in a separate process: its session needs the reader's JAR.

`python -m tests.support.delta_spark FOLDER`, in an environment with `delta-spark`. After each step of a history, the
reader must see in the tables of a warehouse and of sinks what the engine says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

import halfjoin as hj
from halfjoin.engine.sinks import table
from halfjoin.engine.spark import runner, runners
from halfjoin.engine.storage import delta, filing
from tests.oracle.rows import Bag, bag

_SQL = """
    CREATE TABLE t (k bigint PRIMARY KEY, n numeric(10, 2), d date, m timestamptz, w text, f double precision);
    CREATE TABLE u (k bigint, "a b" integer NOT NULL);
    CREATE MATERIALIZED VIEW joined AS SELECT t.k, t.n, t.w, u."a b" AS ab FROM t, u WHERE t.k = u.k;
    CREATE SINK out FROM joined INTO DELTA 'out'
"""
_COLLECTIONS = (("tables", "t"), ("tables", "u"), ("views", "joined"))
_MANY = 3000
NOT_TO_BE_HAD = 77  # says the exit code of the JAR, or of a Java to run it


def main(folder: Path) -> None:
    """Run a history, and compare after each step."""
    filing.BULK_ROWS = 1000  # from the first in files of their own
    runner.FEW = runners.NEAR = 0
    delta.KEEP_HOURS = table.KEEP_HOURS = 0  # each merge removes the files that it has replaced
    table.CLEAN_EVERY = 7
    session = _session()
    with hj.Engine(folder, spark=session, retain=10) as engine:
        engine.execute(_SQL)
        for done in _history(engine, session, folder):
            engine.flush()
            _compare(engine, session, folder, done)
    with hj.Engine(folder, spark=session) as engine:
        _compare(engine, session, folder, "opened again")
    session.stop()


def _session() -> Any:
    from delta import configure_spark_with_delta_pip
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", False)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    )
    try:
        return configure_spark_with_delta_pip(builder).getOrCreate()
    except PySparkRuntimeError:  # Java ended before there was a session: what it could not find is on standard error
        sys.exit(NOT_TO_BE_HAD)


def _history(engine: hj.Engine, session: Any, folder: Path) -> Iterator[str]:
    """Run the history. Spark carries out DataFrames, this process all else."""
    rows = """SELECT id AS k, cast(id / 4 AS decimal(10, 2)) AS n, date'2020-02-29' AS d, concat('w', id % 7) AS w,
                     timestamp'2020-01-01 00:00:00Z' AS m, if(id = 3, double('Infinity'), id / 3) AS f"""
    engine.apply({
        "t": session.sql(f"{rows} FROM range({_MANY})"),
        "u": session.sql(f"SELECT id AS k, cast(id % 5 AS int) AS `a b` FROM range({_MANY})"),
    }, time=1)  # fmt: skip
    yield "many rows"
    engine.apply({"u": [{"k": 1, "a b": 7}, {"k": 1, "a b": 7}], "t": [{"k": -1, "w": None}]}, time=2)
    engine.apply({"u": hj.deletes([{"k": 1, "a b": 7}])}, time=3)
    yield "a row twice, one of which is deleted"
    engine.execute("SET TIME = 4; DELETE FROM t WHERE k % 3 = 0 AND k < 900")
    engine.execute("SET TIME = 5; UPDATE t SET w = 'new' WHERE k = 4")
    yield "DELETE and UPDATE"
    engine.apply({"t": hj.upserts([{"k": k, "n": k, "w": "upserted"} for k in range(50)])}, time=6)
    gone = session.sql("SELECT id AS k, cast(id % 5 AS int) AS `a b` FROM range(9, 2500)")
    engine.apply({"u": hj.deletes(gone)}, time=7)
    yield "upserts, and many deletions"
    engine.compact()
    for kind, name in _COLLECTIONS:
        there = folder / kind / name
        assert len(list(there.glob("*.parquet"))) == len(DeltaTable(there).file_uris()), "files were not removed"
    yield "compact"
    for k in range(30):  # commits enough for a checkpoint, which the reader then begins with
        engine.apply({"u": [{"k": k, "a b": k}]}, time=8 + k)
        engine.flush()
    yield "many flushes"


def _compare(engine: hj.Engine, session: Any, place: Path, done: str) -> None:
    upper = engine.stats().upper
    for (kind, name), time in product(_COLLECTIONS, (upper - 1, upper - 2)):
        seen = _as_of(session, place / kind / name, time)
        assert seen == bag(engine.read(name, as_of=time)), f"{done}: {kind}/{name} as of {time}"
    sink = str(place / "sinks" / "out")
    assert bag(session.read.format("delta").load(sink).toArrow()) == bag(engine.read("joined")), f"{done}: sink"
    few = session.read.format("delta").load(sink).where("k = 4").count()  # by the statistics of its files
    assert few == sum(row["k"] == 4 for row in engine.read("joined").to_pylist()), f"{done}: filtered sink"


def _as_of(session: Any, table: Path, time: int) -> Bag:
    """A reader's sum of a table of updates: those at or before a time, added up."""
    frame = session.read.format("delta").load(str(table)).where(f"__time <= {time}")
    columns = [f"`{name}`" for name in frame.columns if name not in ("__time", "__diff")]
    summed = frame.groupBy(*columns).sum("__diff").where("`sum(__diff)` <> 0")
    return bag(summed.selectExpr("explode(array_repeat(struct(*), int(`sum(__diff)`))) AS r").select(
        *(f"r.{column}" for column in columns)).toArrow())  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
