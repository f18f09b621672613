"""The Spark runner: cases of half-joins, errors, types and DataFrames that random programs seldom reach."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.spark import runners
from halfjoin.engine.spark.types import encode, encoded, restore
from tests.oracle.rows import Bag, bag, updates

T0 = dt.datetime(1, 1, 1)
T1 = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)


def _diffs(applied: hj.Applied, view: str) -> Bag:
    return Counter({(repr(row), time): diff for row, time, diff in updates(applied.diffs[view])})


class Both:
    """An engine on each runner. Both get the same calls."""

    def __init__(self, spark: Any) -> None:
        self.local, self.spark = hj.Engine(runner="local"), hj.Engine(spark=spark, runner="spark")
        self.at = 0

    def execute(self, sql: str) -> None:
        for engine in (self.local, self.spark):
            engine.execute(sql)

    def apply(self, batch: dict[str, Any], view: str = "v") -> Bag:
        self.at += 1
        ours, theirs = (engine.apply(batch, time=self.at) for engine in (self.local, self.spark))
        assert (ours.runner, theirs.runner) == ("local", "spark")
        assert _diffs(ours, view) == _diffs(theirs, view)
        return _diffs(theirs, view)

    def errors(self, view: str = "v") -> list[str]:
        """The errors of reading the view on both. None if it is readable; then the contents are equal."""
        texts = []
        for engine in (self.local, self.spark):
            errors = engine._state.views[view].errors
            texts.append(sorted(zip(*(c.to_pylist() for c in errors.as_of(self.at, distinct=True).columns.values()),
                                    strict=True)))  # fmt: skip
        assert texts[0] == texts[1]
        return [text for text, _, _ in texts[0]]


@pytest.fixture
def both(spark: Any) -> Both:
    return Both(spark)


@pytest.mark.parametrize("column", [
    pa.array([Decimal(10) ** 60, None, Decimal(-1)], pa.decimal256(70, 2)),
    pa.array([Decimal(100), None], pa.decimal128(3, -2)),
    pa.array([pa.MonthDayNano([1, 2, -3000]), None], pa.month_day_nano_interval()),
    pa.array([[dt.time(1), None], None, []], pa.list_(pa.time64("us"))),
    pa.array([[[Decimal(1)], None], None], pa.list_(pa.list_(pa.decimal256(70, 2)))),
])  # fmt: skip
def test_types_that_spark_lacks_travel_as_others(column: Any) -> None:
    for part in (column, column.slice(1), column.slice(0, 0)):
        travelling = encode(part)
        assert travelling.type == encoded(column.type)
        back = restore(travelling, column.type)
        assert back.type == column.type
        assert back.equals(part)


def test_every_type_comes_back_as_it_went(both: Both) -> None:
    both.execute("""
        CREATE TABLE t (k bigint, b boolean, s smallint, i integer, n numeric(20, 4), r real, f double precision,
                        w text, x bytea, d date, c time, m timestamp, z timestamptz, u uuid, a bigint[], aa real[],
                        o interval, oo interval[]);
        CREATE TABLE k (k bigint);
        CREATE MATERIALIZED VIEW v AS SELECT t.*, n * n * n AS wide FROM t, k WHERE t.k = k.k""")
    row = {"k": 1, "b": True, "s": -1, "i": 2**31 - 1, "n": Decimal("-12345678.7891"), "r": 0.1,
           "f": float("inf"), "w": "ä\1b", "x": b"\x00\xff", "d": dt.date(1, 1, 1), "c": dt.time(23, 59, 59, 999999),
           "m": T0, "z": T1, "u": "6f9619ff-8b86-d011-b42d-00c04fc964ff", "a": [1, None],
           "aa": [0.5, float("nan")], "o": "-1 mon 2 days 3.000004 s", "oo": ["24:00", None, "1 day"]}  # fmt: skip
    other = row | {"f": float("nan"), "m": T1, "z": T0, "a": [], "aa": None, "o": "30 days", "oo": [],
                   "d": dt.date(9999, 12, 31)}
    both.apply({"k": [{"k": 1}], "t": [row, other, {"k": 1}]})
    both.apply({"t": [{**row, "__diff": -1}, other]})
    both.execute("CREATE MATERIALIZED VIEW again AS SELECT t.*, n * n * n AS wide FROM t, k WHERE t.k = k.k")
    read = [sorted(map(repr, engine.read("again").to_pylist())) for engine in (both.local, both.spark)]
    assert read[0] == read[1]
    frame = both.spark.dataframe("again").toArrow()
    assert frame.num_rows == 3
    assert Counter(frame.column("c").to_pylist()) == {"23:59:59.999999": 2, None: 1}
    months = [one and one["months"] for one in frame.column("o").to_pylist()]
    assert sorted(months, key=str) == [0, 0, None], "a struct, as in files"
    same = [name for name in frame.column_names if name not in ("c", "wide", "o", "oo")]
    assert sorted(map(repr, frame.select(same).to_pylist())) == sorted(
        map(repr, both.spark.read("again").select(same).to_pylist())
    )


@pytest.mark.parametrize("sql", [
    pytest.param("SELECT a.x, b.y FROM a, b WHERE a.k = b.k", id="equal"),
    pytest.param("SELECT a.x, b.y FROM a, b WHERE a.k IS NOT DISTINCT FROM b.k", id="null safe"),
    pytest.param("SELECT a.x, b.y FROM a, b WHERE a.f = b.f", id="floats"),
    pytest.param("SELECT a.x, b.y FROM a, b WHERE a.l = b.l", id="arrays"),
    pytest.param("SELECT a.x, b.y FROM a, b WHERE a.x = b.k + 1", id="expression of the stream"),
    pytest.param("SELECT a.x, b.y FROM a, b WHERE a.x + 1 = b.k - 1", id="expressions on both sides"),
    pytest.param("SELECT a.x, b.y FROM a, b", id="cross product"),
    pytest.param("SELECT a.x, b.y, g FROM a, b, generate_series(1, b.y) g WHERE g = a.x", id="key of a table function"),
    pytest.param("SELECT p.x, q.x AS xx, r.x AS xxx FROM a p, a q, a r WHERE p.k = q.k AND q.x = r.x", id="self join"),
    pytest.param("SELECT a.x, c.n FROM a, (VALUES (1, 'one'), (2, 'two')) c(i, n) WHERE a.k = c.i", id="constants"),
    pytest.param("SELECT x, k FROM a UNION ALL SELECT y, k FROM b UNION ALL SELECT 1, 2", id="union"),
    pytest.param("SELECT a.x, b.y FROM a, b, repeat_row(b.y - 2) WHERE a.k = b.k", id="weights"),
    pytest.param("SELECT a.x, b.y FROM a, b WHERE a.k = b.k AND mz_now() <= a.x + 2", id="temporal"),
    pytest.param("SELECT 1 AS one FROM a, b WHERE a.k = b.k", id="no column of an input"),
])  # fmt: skip
def test_agrees(both: Both, sql: str) -> None:
    both.execute("CREATE TABLE a (k integer, x bigint, f double precision, l bigint[])")
    both.execute("CREATE TABLE b (k bigint, y bigint, f double precision, l bigint[])")
    both.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    nan = float("nan")
    both.apply({"a": [{"k": 1, "x": 2, "f": 0.0, "l": [1, None]}, {"k": None, "x": 3, "f": nan, "l": None}],
                "b": [{"k": 1, "y": 5, "f": -0.0, "l": [1, None]},
                      {"k": None, "y": 1, "f": nan, "l": []}]})  # fmt: skip
    both.apply({"a": [{"k": 2, "x": 3}], "b": hj.deletes([{"k": 1, "y": 5, "f": 0.0, "l": [1, None]}])})
    both.execute(f"CREATE MATERIALIZED VIEW later AS {sql}")
    assert bag(both.local.read("v")) == bag(both.spark.read("v")) == bag(both.spark.read("later"))


def test_failing_rows_are_the_same_and_go_when_their_rows_go(both: Both) -> None:
    both.execute("CREATE TABLE a (k bigint, x bigint); CREATE TABLE b (k bigint, y bigint)")
    sql = "SELECT a.k, 6 / a.x AS q, b.y / (a.x - b.y) AS p FROM a, b WHERE a.k = b.k AND 10 / b.y > 1"
    both.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    assert both.apply({"a": [{"k": 1, "x": 2}, {"k": 2, "x": 0}, {"k": None, "x": 0}], "b": [{"k": 1, "y": 1}]})
    assert both.errors() == []
    both.apply({"b": [{"k": 1, "y": 2}, {"k": 2, "y": 0}, {"k": 7, "y": 0}]})
    assert len(both.errors()) == 3  # one of a complete row; those of two rows of b, of which one has no partner
    both.execute(f"CREATE MATERIALIZED VIEW filled AS {sql}")
    assert both.errors("filled") == both.errors()
    with pytest.raises(hj.DataError, match="division by zero"):
        both.spark.read("filled")
    with pytest.raises(hj.DataError, match="division by zero"):
        both.spark.dataframe("filled")
    both.execute(f"CREATE VIEW plain AS {sql}")
    with pytest.raises(Exception, match="plain cannot be read as of 2: division by zero"):
        both.spark.dataframe("plain").toArrow()
    both.apply({"a": hj.deletes([{"k": 2, "x": 0}, {"k": None, "x": 0}]),
                "b": hj.deletes([{"k": 1, "y": 2}, {"k": 2, "y": 0}, {"k": 7, "y": 0}])})  # fmt: skip
    assert both.errors() == []
    assert bag(both.spark.dataframe("plain").toArrow()) == bag(both.local.read("v"))


def test_a_users_table_function_runs_in_the_tasks(both: Both) -> None:
    def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = pa.array([i for i in range(len(batch)) for _ in range(2)], pa.int64())
        return pa.RecordBatch.from_arrays([batch.column(0).take(rows), rows], names=["y", "__row"])

    lock = threading.Lock()
    for engine in (both.local, both.spark):
        engine.register_table_function("twice", twice, {"y": "bigint"})
        engine.register_table_function("cannot_travel", lambda batch: lock, {"y": "bigint"})  # type: ignore[arg-type]
    both.execute("CREATE TABLE t (x bigint); CREATE MATERIALIZED VIEW v AS SELECT p.y FROM t, twice(t.x) p(y)")
    both.apply({"t": [{"x": 1}, {"x": 2}]})
    assert bag(both.spark.read("v")) == {(1,): 2, (2,): 2}


def test_a_failing_table_function_is_an_error_of_its_view(spark: Any) -> None:
    def fails(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("no good")

    engine = hj.Engine(spark=spark, runner="spark")
    engine.register_table_function("fails", fails, {"y": "bigint"})
    engine.execute("CREATE TABLE t (x bigint); CREATE MATERIALIZED VIEW v AS SELECT p.y FROM t, fails(t.x) p(y)")
    engine.apply({"t": [{"x": 1}]})
    with pytest.raises(hj.DataError, match="table function fails failed: ValueError: no good"):
        engine.read("v")


def test_weights_multiplied_too_far_fail_their_view(spark: Any) -> None:
    engine = hj.Engine(spark=spark, runner="spark")
    engine.execute("CREATE TABLE t (x bigint)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT t.x FROM t, t u, t w WHERE t.x = u.x AND u.x = w.x")
    engine.apply({"t": [{"x": 1, "__diff": 2**31}]})
    with pytest.raises(hj.DataError, match="more than an int64 holds"):
        engine.read("v")


def test_columns_that_spark_takes_for_one_are_refused(spark: Any) -> None:
    engine = hj.Engine(spark=spark, runner="spark")
    engine.execute('CREATE TABLE t ("A" bigint, a bigint)')
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT t.a AS x FROM t")
    with pytest.raises(hj.UnsupportedSQL, match='columns "A" and "a"'):
        engine.apply({"t": [{"A": 1, "a": 2}]})


@pytest.mark.parametrize("runner", ["auto", "local", "spark"])
def test_batches_of_spark_dataframes(spark: Any, runner: Any) -> None:
    engine = hj.Engine(spark=spark, runner=runner)
    engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, w text, m timestamptz, d date, n numeric(10, 2))")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT id, w, d, n FROM t WHERE id % 2 = 0")
    rows = spark.sql("""SELECT id, concat('w', id) AS w, timestamp'2020-01-01 00:00:00Z' AS m, date'1500-01-01' AS d,
                        cast(id AS decimal(5, 1)) AS n FROM range(100)""")
    applied = engine.apply({"t": rows}, time=1)
    assert applied.runner == ("local" if runner == "local" else "spark")
    assert applied.reason
    assert applied.diffs["v"].num_rows == 50
    assert engine.read("t").column("m")[0].as_py() == dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    gone = rows.where("id = 4")
    engine.apply({"t": hj.deletes(gone)}, time=2)
    engine.apply({"t": hj.upserts(spark.sql("SELECT 6L AS id, 'new' AS w, NULL AS m"))}, time=3)
    read = bag(engine.read("v"))
    assert sum(read.values()) == 49
    assert read[6, "new", dt.date(1500, 1, 1), Decimal(6)] == 1  # the upsert does not name them
    assert bag(engine.dataframe("v").toArrow()) == read
    assert bag(engine.dataframe("v", as_of=1).toArrow()) == bag(engine.read("v", as_of=1))
    row = "row 0" if runner == "local" else r"the row with \(id\) = \(None\)"
    with pytest.raises(hj.InvalidRow, match=rf"t\.id: {row}: is NULL"):
        engine.apply({"t": spark.sql("SELECT cast(NULL AS bigint) AS id")}, time=4)
    with pytest.raises(hj.InvalidRow, match="a second row with the key"):
        engine.apply({"t": spark.sql("SELECT 6L AS id")}, time=4)
    with pytest.raises(hj.UnknownName):
        engine.apply({"t": spark.sql("SELECT 6L AS idd")}, time=4)
    with pytest.raises(hj.InvalidRow, match="given twice"):
        engine.apply({"t": spark.sql("SELECT 6L AS id, 7L AS id")}, time=4)


def test_dataframes_of_tables_plain_views_and_other_times(spark: Any) -> None:
    engine = hj.Engine(spark=spark, runner="local")
    engine.execute('CREATE TABLE t (x bigint, "B c" text); CREATE VIEW p AS SELECT "B c", x + 1 AS y FROM t')
    assert engine.dataframe("t").toArrow().num_rows == 0
    engine.apply({"t": [{"x": 1, "B c": "a", "__diff": 3}, {"x": 2}]}, time=5)
    engine.apply({"t": [{"x": 1, "B c": "a", "__diff": -1}]}, time=7)
    before = engine.dataframe("t", as_of=6)
    engine.compact()
    assert bag(before.toArrow()) == {(1, "a"): 3, (2, None): 1}
    assert bag(engine.dataframe("t").toArrow()) == {(1, "a"): 2, (2, None): 1}
    assert engine.dataframe("p").columns == ["B c", "y"]
    assert bag(engine.dataframe("p").toArrow()) == {("a", 2): 2, (None, 3): 1}
    engine.apply({"t": [{"x": 9, "__diff": -1}]}, time=8)
    with pytest.raises(Exception, match="holds a row -1 times"):
        engine.dataframe("t").toArrow()
    with pytest.raises(hj.InvalidTime):
        engine.dataframe("t", as_of=2**60)
    with pytest.raises(hj.UnknownName):
        engine.dataframe("tt")


def test_the_choice_and_its_reason(monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    monkeypatch.setattr(runners, "BULK", 3)
    engine = hj.Engine(spark=spark)
    engine.execute("CREATE TABLE t (x bigint); CREATE MATERIALIZED VIEW v AS SELECT x FROM t WHERE x > 1")
    few = engine.apply({"t": [{"x": 1}, {"x": 2}]})
    many = engine.apply({"t": [{"x": 1}, {"x": 2}, {"x": 3}]})
    assert (few.runner, few.reason) == ("local", "2 changed rows; Spark takes over from 3")
    assert (many.runner, many.reason) == ("spark", "3 changed rows; Spark takes over from 3")
    assert engine.advance().runner == "local"
    stored = engine._runners.choose(2, stored=lambda: 10)
    assert stored[1] == "2 changed rows; Spark takes over from 3"
    monkeypatch.setattr(runners, "LOOKUPS", 2)
    assert engine._runners.choose(2, stored=lambda: 2)[0].name == "local"
    chosen, reason = engine._runners.choose(2, stored=lambda: 10)
    assert (chosen.name, reason) == ("spark", "2 changed rows, with lookups in 10 rows that do not fit into memory")
    monkeypatch.undo()
    monkeypatch.setattr(runners, "BULK", 3)
    alone = hj.Engine()
    alone.execute("CREATE TABLE t (x bigint)")
    kept = alone.apply({"t": [{"x": 1}] * 3})
    assert (kept.runner, kept.reason) == (
        "local", "3 changed rows, enough for Spark, but the engine has no Spark session"
    )  # fmt: skip
    rule = "from 3 changed rows (100,000 if the rows that they look up do not fit into memory); else local"
    frames = "Spark DataFrames of more than 9 rows, or that look up rows outside memory"
    monkeypatch.setattr(runners, "NEAR", 9)
    assert f"runner: spark for {frames}, and {rule}" in engine.explain("v")
    with pytest.raises(hj.HalfjoinError, match="runners: auto, local, spark"):
        hj.Engine(runner="flink")  # type: ignore[arg-type]


def test_intervals_of_months_and_days_have_one_value_in_both_ways(spark: Any) -> None:
    """Spark's toArrow, with which this process reads a frame, knows no such intervals."""
    frame = spark.sql("SELECT id AS k, make_interval(1, id - 2, 3, -4, 5, -6, 7.5) AS i FROM range(3) "
                      "UNION ALL SELECT 9, NULL")  # fmt: skip
    found = []
    for runner in ("local", "spark"):
        with hj.Engine(spark=spark, runner=runner) as engine:
            engine.execute("CREATE TABLE t (k bigint, i interval)")
            engine.apply({"t": frame})
            found.append(sorted(engine.read("t").to_pylist(), key=itemgetter("k")))
    assert found[0] == found[1]
    assert found[0][0]["i"].nanoseconds == (5 * 3600 - 6 * 60) * 10**9 + 7_500_000_000
