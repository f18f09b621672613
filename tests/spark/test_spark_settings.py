"""The Spark runner in the user's sessions and folders: no setting and no name changes an answer."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.spark import runner

# The first has a year that Python writes with one digit, the third is in none of the older calendars of Java.
DAYS = [dt.date(1, 1, 1), dt.date(1500, 3, 1), dt.date(1582, 10, 10), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]


def _session(spark: Any, **settings: str) -> Any:
    session = spark.newSession()
    for name, value in {"spark.sql.shuffle.partitions": "1", **settings}.items():
        session.conf.set(name, value)
    return session


@pytest.mark.parametrize("mode", ["LEGACY", "EXCEPTION"])
def test_early_days_and_moments_are_what_they_are(spark: Any, tmp_path: Path, mode: str) -> None:
    session = _session(spark, **{"spark.sql.parquet.datetimeRebaseModeInRead": mode})
    with hj.Engine(tmp_path, spark=session, runner="spark") as engine:
        engine.execute("""
            CREATE TABLE a (d date PRIMARY KEY, moment timestamptz); CREATE TABLE b (d date);
            CREATE MATERIALIZED VIEW v AS
                SELECT a.d, a.moment FROM a JOIN b ON a.d = b.d
                WHERE a.d >= date '0001-01-01' AND b.d < date '9999-12-31'
        """)
        rows = [{"d": day, "moment": dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)} for day in DAYS]
        engine.apply({"a": rows})
        for day in DAYS:
            engine.apply({"b": [{"d": day}]})
        found = engine.read("v").sort_by("d").to_pylist()
        assert [row["d"] for row in found] == [row["moment"].date() for row in found] == DAYS[:-1]
        assert engine.dataframe("v").toArrow().sort_by("d").to_pylist() == found


@pytest.mark.parametrize("name", ["of [2024]", "{a,b}", "50*?", "_hidden"])
def test_a_folder_may_have_any_name(spark: Any, tmp_path: Path, name: str) -> None:
    with hj.Engine(tmp_path / name, spark=spark, runner="spark") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
        engine.apply({"t": spark.range(3).toDF("k")})
        engine.flush()
        assert sorted(row.k for row in engine.dataframe("v").collect()) == [0, 1, 2]


@pytest.mark.parametrize("setting", ["ignoreMissingFiles", "ignoreCorruptFiles"])
def test_what_is_lost_is_never_left_out(
    spark: Any, tmp_path: Path, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "FEW", 0)
    session = _session(spark, **{f"spark.sql.files.{setting}": "true"})
    with hj.Engine(tmp_path, spark=session, runner="spark") as engine:
        engine.execute("CREATE TABLE t (s text)")
        engine.apply({"t": session.sql("SELECT 'x' AS s")})
        frame = engine.dataframe("t")
        for file in tmp_path.rglob("*.parquet"):
            file.unlink() if "Missing" in setting else file.write_bytes(b"PAR1" * 20)
        with pytest.raises(Exception, match=r"FAILED_READ_FILE|not exist"):
            frame.collect()


def test_a_frame_without_columns_has_no_rows(spark: Any) -> None:
    for given in ("spark", "local"):
        with hj.Engine(spark=spark, runner=given) as engine:
            engine.execute("CREATE TABLE t (k bigint)")
            engine.apply({"t": spark.range(3).select()})
            assert engine.read("t").num_rows == 0


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(("weights", "total"), [
    ((2**31, -(2**31), 2), -(2**63)), ((2**31, 2**31, 1), 2**62),
    ((2**31, 2**31, 2), None), ((2**31, -(2**31), 3), None),
])  # fmt: skip
def test_weights_are_exact_or_refused(spark: Any, ansi: str, weights: tuple[int, int, int], total: int | None) -> None:
    """Products and sums of equal rows are readable if an int64 holds them. Others are errors until they are gone."""
    left, right, count = weights
    session = _session(spark, **{"spark.sql.ansi.enabled": ansi})
    for given in ("spark", "local"):
        with hj.Engine(spark=session, runner=given) as engine:
            engine.execute("""
                CREATE TABLE a (k bigint); CREATE TABLE b (k bigint, x bigint);
                CREATE MATERIALIZED VIEW v AS SELECT a.k FROM a JOIN b ON a.k = b.k
            """)
            batch = {"a": [{"k": 1, "__diff": left}], "b": [{"k": 1, "x": x, "__diff": right} for x in range(count)]}
            engine.apply(batch)
            if total is None:
                with pytest.raises(hj.DataError, match="int64"):
                    engine.read("v", multiplicity=True)
                engine.apply({"a": [{"k": 1, "__diff": -left}]})
            expected = [] if total is None else [{"k": 1, "__diff": total}]
            assert engine.read("v", multiplicity=True).to_pylist() == expected
