"""Dates before Christ and after 9999 are read, computed, kept and shown as PostgreSQL does; none is infinite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

EXPRESSIONS = (
    "(d + 1)::text", "(d - 1)::text", "(d + interval '1 month')::text", "extract(year from d)",
    "extract(century from d)", "extract(epoch from s)", "to_char(d, 'YYYY-MM-DD BC')",
    "date_trunc('year', s)::text", "date_trunc('month', s)::text",
    "date_trunc('quarter', s)::text", "date_trunc('week', s)::text", "date_trunc('hour', s)::text",
    "date_trunc('century', s)::text", "(s - interval '1 s')::text",
    "d > date '2000-01-01'", "s::date::text", "(s AT TIME ZONE 'UTC')::text", "d = s", "d < timestamptz '2020-01-01'",
    "d IN (date '2000-02-29', '10000-01-01', '0044-03-15 BC')", "d < date '0044-03-16 BC'", "isfinite(d)",
    "(s AT TIME ZONE 'Europe/Berlin')::text", "(s AT TIME ZONE 'America/New_York' AT TIME ZONE 'Asia/Kolkata')::text",
    "d::text::date = d", "s::text::timestamptz::text", "to_jsonb(s)::text", "(ARRAY[d])::text",
     "(d - date '2000-01-01')::text", "extract(isodow from d)", "s::text", "d::text",
)  # fmt: skip
NONE = r"no infinite ones|numeric has no"
DAYS = ("make_date(-44, 3, 15)", "make_date(10000, 1, 1)", "make_date(-4700, 1, 1)", "make_date(200000, 12, 31)",
        "date '9999-12-31' + 1", "date '0001-01-01' - 1", "date '2000-02-29'", "date '0044-03-15 BC'",
        "'J40000'::date", "'March 15, 44 BC'::date", "to_date('12000-01-01', 'YYYY-MM-DD')")  # fmt: skip


def test_what_is_computed_from_them_is_postgresqls(postgres: Any, tmp_path: Path) -> None:
    engine = hj.Engine(tmp_path / "w")
    shown = ", ".join(f"{expression} AS e{number}" for number, expression in enumerate(EXPRESSIONS))
    for sql in ("CREATE TABLE t (d date, s timestamp)", f"CREATE MATERIALIZED VIEW v AS SELECT {shown} FROM t",
                "CREATE MATERIALIZED VIEW m AS SELECT min(d)::text AS l, max(s)::text AS h FROM t",
                *(f"INSERT INTO t SELECT {day}, {day} + interval '1 second'" for day in DAYS)):  # fmt: skip
        for run in (engine.execute, postgres.execute):
            run(sql)
    engine.flush()
    engine.close()
    engine = hj.Engine(tmp_path / "w")
    for name in ("v", "m"):
        postgres.execute(f"REFRESH MATERIALIZED VIEW {name}")
        theirs = sorted(postgres.execute(f"SELECT * FROM {name}").fetchall(), key=str)
        assert sorted(map(tuple, (row.values() for row in engine.read(name).to_pylist())), key=str) == theirs
    engine.execute("DELETE FROM t WHERE d > date '9999-12-31' OR d < date '0001-01-01'")
    assert engine.query("SELECT d::text AS d FROM t").to_pylist() == [{"d": "2000-02-29"}]
    engine.close()


def test_no_date_and_no_number_is_infinite() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (d date, s timestamp, z timestamptz, n numeric(10,2), w text)")
    for text in ("infinity", "-infinity", "+Infinity"):
        for type in ("date", "timestamp", "timestamptz"):
            for sql in (f"SELECT '{text}'::{type} AS d", f"SELECT {type} '{text}' AS d"):
                with pytest.raises(hj.UnsupportedSQL, match="no infinite ones") as caught:
                    engine.query(sql)
                assert caught.value.remedy is not None and "a date far away" in caught.value.remedy
                assert caught.value.sqlstate == "0A000"
    for name, texts in (("d", ("infinity",)), ("s", ("-infinity",)), ("z", ("infinity",)),
                        ("n", ("NaN", "inf", "-Infinity"))):  # fmt: skip
        for text in texts:
            engine.execute(f"INSERT INTO t (w) VALUES ('{text}')")
            with pytest.raises(hj.HalfjoinError, match=NONE):
                engine.query(f"SELECT w::{'numeric' if name == 'n' else 'timestamp'} AS x FROM t")
            engine.execute("DELETE FROM t")
            with pytest.raises(hj.InvalidRow, match="is not a valid"):
                engine.apply({"t": [{name: text}]})
            with pytest.raises(hj.HalfjoinError, match=NONE):
                engine.copy_from(f"COPY t ({name}) FROM STDIN", f"{text}\n")
            with pytest.raises(hj.HalfjoinError, match=NONE):
                engine.execute(f"INSERT INTO t ({name}) VALUES ($1)", [text])
    with pytest.raises(hj.HalfjoinError, match="timestamp out of range"):
        engine.query("SELECT to_timestamp('infinity'::float8) AS s")
    for value in (float("nan"), float("inf")):
        with pytest.raises(hj.HalfjoinError, match=r"numeric has no|cannot convert NaN or infinity"):
            engine.query("SELECT x::numeric AS n FROM (SELECT $1::float8 AS x) q", [value])
    assert engine.read("t").num_rows == 0


def test_the_last_dates_are_those_that_arrow_holds() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (d date, s timestamp)")
    for column, count, type in (("d", 2**31 - 1, pa.date32()), ("d", -(2**31), pa.date32()),
                                ("s", 2**63 - 1, pa.timestamp("us")), ("s", -(2**62), pa.timestamp("us"))):  # fmt: skip
        with pytest.raises(hj.InvalidRow, match=rf"t\.{column}: row 1: .* is outside of the (dates|timestamps)"):
            engine.apply({"t": pa.table({column: pa.array([0, count], type)})})
    for text in ("294247-01-09 23:59:59.999999", "4714-11-24 00:00:00 BC"):
        assert engine.query(f"SELECT timestamp '{text}'::text AS s").to_pylist() == [{"s": text}]
    for text in ("294247-01-10", "4714-11-23 BC"):
        with pytest.raises(hj.UnsupportedSQL, match="timestamp out of range"):
            engine.query(f"SELECT timestamp '{text}' AS s")
    for sql in ("make_timestamp(294276, 1, 1, 0, 0, 0)", "timestamp '294247-01-09' + interval '1 day'",
                "date '5874897-12-31' + 1", "date '300000-01-01'::timestamp"):  # fmt: skip
        with pytest.raises(hj.DataError, match="out of range"):
            engine.query(f"SELECT {sql} AS s")


def test_texts_of_far_years_come_in_with_rows(tmp_path: Path) -> None:
    engine = hj.Engine(tmp_path / "w")
    engine.execute("CREATE TABLE t (k int PRIMARY KEY, d date, s timestamp(0), z timestamptz, a date[])")
    far = {"d": "0044-03-15 BC", "s": "12000-01-01 10:00:00.6", "z": "0044-03-15 10:00:00+02 BC", "a": ["10000-01-01"]}
    near = {"d": "2000-01-01", "s": "2000-01-01T10:00", "z": "2000-01-01 10:00+02", "a": ["2000-01-01", None]}
    engine.apply({"t": [{"k": 1, **far}, {"k": 2, **near}, {"k": 3}]})
    engine.copy_from("COPY t (k, d, s, z) FROM STDIN", "4\t0044-03-15 BC\t12000-01-01\t0044-03-15 10:00:00+02 BC\n")
    engine.flush()
    engine.close()
    engine = hj.Engine(tmp_path / "w")
    texts = "d::text AS d, s::text AS s, z::text AS z, a::text AS a"
    assert engine.query(f"SELECT k, {texts} FROM t ORDER BY k").to_pylist() == [
        {"k": 1, "d": "0044-03-15 BC", "s": "12000-01-01 10:00:01", "z": "0044-03-15 08:00:00+00 BC",
         "a": "{10000-01-01}"},
        {"k": 2, "d": "2000-01-01", "s": "2000-01-01 10:00:00", "z": "2000-01-01 08:00:00+00",
         "a": "{2000-01-01,NULL}"},
        {"k": 3, "d": None, "s": None, "z": None, "a": None},
        {"k": 4, "d": "0044-03-15 BC", "s": "12000-01-01 00:00:00", "z": "0044-03-15 08:00:00+00 BC", "a": None},
    ]  # fmt: skip
    assert "0044-03-15 BC" in engine.copy_to("COPY (SELECT d FROM t) TO STDOUT").decode()
    with pytest.raises(hj.InvalidRow, match=r"t\.d: row 0: .*date/time field value out of range"):
        engine.apply({"t": [{"k": 5, "d": "0044-02-30 BC"}]})
    engine.close()


def test_python_has_no_such_dates() -> None:
    made = hj.Engine().query("SELECT make_date(10000, 1, 1) AS d")
    with pytest.raises(OverflowError):
        made.to_pylist()
    assert made.column("d").cast("int32").to_pylist() == [2932897]


@pytest.mark.parametrize("sum", [
    "date '1900-02-28' + interval '-100000 mons 4000000 days'",
    "timestamp '2000-01-01' - interval '100000 mons -4000000 days'",
    "timestamp '2000-01-01' + interval '4000000 mons -121000000 days'",
])  # fmt: skip
def test_no_step_of_a_sum_leaves_the_calendar(sum: str, postgres: Any) -> None:
    from psycopg.errors import DatetimeFieldOverflow

    for run, error in ((postgres.execute, DatetimeFieldOverflow), (hj.Engine().query, hj.DataError)):
        with pytest.raises(error, match="timestamp out of range"):
            run(f"SELECT {sum}")
