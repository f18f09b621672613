"""Intervals as columns: what they are taken from, how files hold them, and that equal ones are one key."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import halfjoin as hj
from tests.oracle.rows import tuples

MONTH, DAYS = pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([0, 30, 0])
SPAN = pa.MonthDayNano([-3, 4, -5_000])


def engine_of(*values: Any, path: Path | None = None) -> hj.Engine:
    """An engine whose table t has these intervals, in this order."""
    engine = hj.Engine(path)
    engine.execute("CREATE TABLE t (id bigint, i interval)")
    engine.apply({"t": [{"id": id, "i": value} for id, value in enumerate(values)]})
    return engine


def read(engine: hj.Engine, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query, and that a view has the same."""
    engine.execute(f"CREATE MATERIALIZED VIEW same AS {sql}")
    found = sorted(tuples(engine.query(sql)), key=repr)
    assert sorted(tuples(engine.read("same")), key=repr) == found
    engine.execute("DROP MATERIALIZED VIEW same")
    return found


@pytest.mark.parametrize("given", [
    pa.array([SPAN, None]), pa.array(["-3 mons 4 days -5 us", None]),
    pa.array(["-3 mons 4 days -5 us", None]).dictionary_encode(),
    pa.array([{"months": -3, "days": 4, "microseconds": -5}, None],
             pa.struct([("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())])),
], ids=["interval", "text", "dictionary", "struct"])  # fmt: skip
def test_intervals_come_from_arrow(given: pa.Array) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (i interval)")
    engine.apply({"t": pa.table({"i": given})})
    assert sorted(tuples(engine.read("t")), key=repr) == [(SPAN,), (None,)]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_durations_are_days_and_microseconds(unit: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (i interval)")
    engine.apply({"t": pa.table({"i": pa.array([dt.timedelta(days=2, seconds=5), None], pa.duration(unit))})})
    engine.apply({"t": [{"i": dt.timedelta(days=-1, hours=1)}]})
    assert sorted(tuples(engine.read("t")), key=repr) == [
        (pa.MonthDayNano([0, -1, 3_600_000_000_000]),), (pa.MonthDayNano([0, 2, 5_000_000_000]),), (None,)]  # fmt: skip


@pytest.mark.parametrize("value", [5, "1 fortnight", pa.MonthDayNano([0, 0, 1])], ids=["number", "unit", "nanosecond"])
def test_what_is_no_interval_is_refused(value: Any) -> None:
    with pytest.raises(hj.InvalidRow) as caught:
        engine_of("1 day", value) if isinstance(value, str) else engine_of(value)
    assert caught.value.column == "i"


def test_equal_intervals_are_one_key_and_two_rows() -> None:
    engine = engine_of("1 mon", "30 days", "720:00", "1 day", None)
    assert read(engine, "SELECT i FROM t WHERE i = '1 month'") == [
        (pa.MonthDayNano([0, 0, 720 * 3_600_000_000_000]),), (DAYS,), (MONTH,)]  # fmt: skip
    assert read(engine, "SELECT count(*), min(id) FROM t GROUP BY i") == [(1, 3), (1, 4), (3, 0)]
    assert len(read(engine, "SELECT DISTINCT i FROM t")) == 3
    assert read(engine, "SELECT count(DISTINCT i) FROM t") == [(2,)]
    assert len(read(engine, "SELECT a.id FROM t AS a JOIN t AS b USING (i)")) == 10
    assert len(read(engine, "SELECT a.id FROM t AS a LEFT JOIN t AS b ON a.i = b.i")) == 11
    assert read(engine, "SELECT id FROM t WHERE i NOT IN (SELECT i FROM t WHERE id < 1)") == [(3,)]
    assert len(read(engine, "SELECT i FROM t EXCEPT SELECT interval '30 days'")) == 2
    assert read(engine, "SELECT max(n) FROM (SELECT count(*) OVER (PARTITION BY i) AS n FROM t) AS q") == [(3,)]
    assert read(engine, "SELECT DISTINCT ON (i) id FROM t ORDER BY i, id") == [(0,), (3,), (4,)]


def test_a_group_shows_the_least_of_its_looks() -> None:
    engine = engine_of("1 mon", "30 days")
    engine.execute("CREATE MATERIALIZED VIEW v AS "
                   "SELECT i, count(*) AS n, array_agg(DISTINCT i) AS d FROM t GROUP BY i")  # fmt: skip
    assert tuples(engine.read("v")) == [(DAYS, 2, (DAYS,))]
    engine.execute("DELETE FROM t WHERE id = 1")
    assert tuples(engine.read("v")) == [(MONTH, 1, (MONTH,))]


def test_a_month_is_not_stored_as_30_days(tmp_path: Path) -> None:
    engine = engine_of("1 mon", "30 days", path=tmp_path)
    engine.flush()
    engine.close()
    with hj.Engine(tmp_path) as again:
        assert read(again, "SELECT (date '2024-02-01' + i)::date FROM t") == [
            (dt.date(2024, 3, 1),), (dt.date(2024, 3, 2),)]  # fmt: skip


def test_files_have_a_struct_that_others_read(tmp_path: Path) -> None:
    engine = engine_of(SPAN, None, path=tmp_path)
    engine.execute(f"CREATE SINK s FROM t INTO DELTA '{tmp_path}-sink'")
    engine.execute("INSERT INTO t VALUES (2, '1 day')")
    engine.flush()
    engine.close()
    rows = [{"months": -3, "days": 4, "microseconds": -5}, None, {"months": 0, "days": 1, "microseconds": 0}]
    for folder in (tmp_path / "tables" / "t", Path(f"{tmp_path}-sink")):
        found = deltalake.DeltaTable(folder).to_pyarrow_table().sort_by("id")
        assert found.column("i").to_pylist() == rows


def test_a_key_is_no_interval() -> None:
    engine = hj.Engine()
    for ddl in ("CREATE TABLE x (i interval PRIMARY KEY)", "CREATE TABLE x (i interval, UNIQUE (i))"):
        with pytest.raises(hj.UnsupportedSQL, match="equal intervals can look different"):
            engine.execute(ddl)


def test_an_index_of_intervals_is_used_for_all_looks() -> None:
    engine = engine_of("1 mon", "30 days", "1 day")
    engine.execute("CREATE INDEX by_i ON t (i)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a.id, b.id AS other FROM t AS a JOIN t AS b ON a.i = b.i")
    assert "by_i" in str(engine.execute("EXPLAIN SELECT a.id FROM t AS a JOIN t AS b ON a.i = b.i").to_pylist())
    engine.execute("UPDATE t SET i = '24:00' WHERE id = 1")
    assert sorted(tuples(engine.read("v"))) == [(0, 0), (1, 1), (1, 2), (2, 1), (2, 2)]
