"""Intervals as columns: what they are taken from, how files hold them, and that equal ones are one key."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from random import Random
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


def test_what_a_read_gives_can_be_given_back() -> None:
    engine = engine_of("-3 mons 4 days -5 us", "1 day")
    assert tuples(engine.query("SELECT id FROM t WHERE i = :i", {"i": SPAN})) == [(0,)]
    assert tuples(engine.query("SELECT :i::text", {"i": dt.timedelta(days=1, seconds=3)})) == [("1 day 00:00:03",)]
    assert tuples(engine.query(f"SELECT ({hj.lit(SPAN)})::text")) == [("-3 mons +4 days -00:00:00.000005",)]


def test_a_recursive_query_tells_intervals_by_their_lengths() -> None:
    engine = engine_of("24:00", "1 day", "3 days 01:00")
    engine.execute("CREATE MATERIALIZED VIEW v AS WITH RECURSIVE r (i) AS (SELECT i FROM t UNION SELECT i + interval "
                   "'1 day' FROM r WHERE i < '5 days') SELECT i::text AS i FROM r")  # fmt: skip
    longer = ["1 day 24:00:00", "2 days 24:00:00", "24:00:00", "3 days 24:00:00", "4 days 24:00:00"]
    assert sorted(tuples(engine.read("v"))) == sorted((i,) for i in (
        *longer, "3 days 01:00:00", "4 days 01:00:00", "5 days 01:00:00"))  # fmt: skip
    engine.execute("DELETE FROM t WHERE i = '73:00'")
    assert sorted(tuples(engine.read("v"))) == [(i,) for i in longer]


def test_show_prints_an_interval_as_postgresql_does(capsys: pytest.CaptureFixture[str]) -> None:
    hj.show(engine_of(SPAN).read("t"))
    assert "-3 mons +4 days -00:00:00.000005" in capsys.readouterr().out


PICKING = {
    "whole": "SELECT k, min(i) OVER (PARTITION BY k) AS x, i::text AS y FROM t",
    "frame": """
        SELECT k, max(i) OVER (PARTITION BY k ORDER BY i::text ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS x FROM t""",
    "running": "SELECT k, max(i) OVER (ORDER BY k, i::text) AS x, i::text AS y FROM t",
    "behind": "SELECT k, min(i) OVER (ORDER BY k RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS x FROM t",
    "group": "SELECT k, min(i) AS x, max(i) AS y FROM t GROUP BY k",
    "first": "SELECT * FROM t ORDER BY i, k LIMIT 2",
    "last": "SELECT DISTINCT ON (k) k, i FROM t ORDER BY k, i DESC",
    "least in rounds": """
        WITH MUTUALLY RECURSIVE r (k bigint, i {type}) AS (
            SELECT k, min(i) FROM (SELECT k, i FROM t UNION ALL SELECT k % 3 + 1, i FROM r) AS q GROUP BY k)
        SELECT * FROM r""",
    "first in rounds": """
        WITH MUTUALLY RECURSIVE r (k bigint, i {type}) AS (
            SELECT DISTINCT ON (k) k, i FROM (SELECT k, i FROM t UNION ALL SELECT k % 3 + 1, i FROM r) AS q(k, i)
            ORDER BY k, i DESC)
        SELECT * FROM r""",
    "union": """
        WITH RECURSIVE r (k, i) AS (SELECT k, i FROM t UNION SELECT k % 3 + 1, i FROM r)
        SELECT k, i FROM r""",
}


@pytest.mark.parametrize("retain", [0, 100])
@pytest.mark.parametrize("type", ["interval", "interval[]"])
def test_views_pick_one_of_equal_intervals_as_queries_do(type: str, retain: int) -> None:
    random = Random(f"{type} {retain}")
    engine = hj.Engine(clock="own", retain=retain)
    engine.execute(f"CREATE TABLE t (k bigint, i {type})")
    views = {name: text.format(type=type) for name, text in PICKING.items()
             if not (name == "union" and type == "interval[]")}  # fmt: skip
    for name, text in views.items():
        engine.execute(f'CREATE MATERIALIZED VIEW "{name}" AS {text}')
    there = list[dict[str, Any]]()
    for time in range(25):
        rows = [{**there.pop(random.randrange(len(there))), "__diff": -1} for _ in range(2) if len(there) > 3]
        for _ in range(2):
            value = random.choice(("1 mon", "30 days", "720:00", "1 day", "24:00"))
            there.append({"k": random.randint(1, 3), "i": value if type == "interval" else [value]})
            rows.append({**there[-1], "__diff": 1})
        engine.apply({"t": rows}, time=time)
        for name, text in views.items():
            assert sorted(tuples(engine.read(name)), key=repr) == sorted(tuples(engine.query(text)), key=repr), name
