"""Dates before Christ and after 9999 are computed, kept and shown as PostgreSQL does; only text in is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    "isfinite(d)", "(d - date '2000-01-01')::text", "extract(isodow from d)", "s::text", "d::text",
)  # fmt: skip
DAYS = ("make_date(-44, 3, 15)", "make_date(10000, 1, 1)", "make_date(-4700, 1, 1)", "make_date(200000, 12, 31)",
        "date '9999-12-31' + 1", "date '0001-01-01' - 1", "date '2000-02-29'")  # fmt: skip


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


def test_text_in_is_refused_with_what_works_instead() -> None:
    engine = hj.Engine()
    for text in ("0044-03-15 BC", "10000-01-01"):
        for type in ("date", "timestamp", "timestamptz"):
            with pytest.raises(hj.UnsupportedSQL, match="make_date") as caught:
                engine.query(f"SELECT '{text}'::{type} AS d")
            assert caught.value.sqlstate == "22008"
    for text in ("infinity", "-infinity"):
        with pytest.raises(hj.UnsupportedSQL, match="NULL"):
            engine.query(f"SELECT '{text}'::timestamp AS s")


def test_python_has_no_such_dates() -> None:
    made = hj.Engine().query("SELECT make_date(10000, 1, 1) AS d")
    with pytest.raises(OverflowError):
        made.to_pylist()
    assert made.column("d").cast("int32").to_pylist() == [2932897]
