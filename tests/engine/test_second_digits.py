"""Columns of `timestamp(n)`, `timestamptz(n)`, `time(n)` and `interval(n)` hold what PostgreSQL's hold."""

from __future__ import annotations

import io
import random
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

TABLE = ("CREATE TABLE t (k integer PRIMARY KEY, a timestamp(3), b timestamp(0) with time zone, c time(2), "
         "d timestamp(1)[], i interval(1))")  # fmt: skip


def both(engine: hj.Engine, postgres: Any, sql: str) -> None:
    """The query has the same answer, as text."""
    theirs = [tuple(row) for row in postgres.execute(sql).fetchall()]
    assert [tuple(row.values()) for row in engine.query(sql).to_pylist()] == theirs, sql


SHOWN = "SELECT k::text, a::text, b::text, c::text, d::text, i::text FROM t ORDER BY k"


def test_values_are_rounded_as_in_postgresql(postgres: Any) -> None:
    engine, draw = hj.Engine(), random.Random(3)
    for run in (engine.execute, postgres.execute):
        run(TABLE)
    rows = []
    for k in range(200):
        micros = draw.choice([500_000, 500, 5_000, 499_999, draw.randrange(1_000_000), 999_949, 4_999, 0])
        moment = datetime(draw.choice([1960, 1999, 2000, 2024]), 1, 1, draw.randrange(23), 59, 59, micros)
        text, clock = f"{moment}", f"{moment.time()}"
        rows.append(f"({k}, '{text}', '{text}+02', '{clock}', '{{{text},NULL}}', '-{draw.randrange(99)} days {clock}')")
    for run in (engine.execute, postgres.execute):
        run(f"INSERT INTO t VALUES {', '.join(rows)}")
        run("UPDATE t SET a = a + interval '0.0005 s', c = '10:00:00.125'::time + interval '0.00001 s' WHERE k % 3 = 0")
    both(engine, postgres, SHOWN)
    for made in ("a::timestamp(1)", "b::timestamp(4)", "a::time(0)", "(c + '0.05 s')::time(1)", "i::interval(0)",
                 "a::text::timestamp(2)", "d::timestamp(0)[]"):  # fmt: skip
        both(engine, postgres, f"SELECT ({made})::text FROM t WHERE a::time < '23:59:58' ORDER BY k")
    both(engine, postgres, "SELECT column_name, data_type, datetime_precision FROM information_schema.columns WHERE "
                           "table_name = 't' ORDER BY ordinal_position")  # fmt: skip


def test_batches_copies_and_upserts_are_rounded() -> None:
    engine = hj.Engine()
    engine.execute(TABLE)
    moment = datetime(2024, 1, 1, 10, 0, 0, 123_500)
    engine.apply({"t": pa.table({"k": [1], "a": pa.array([moment], pa.timestamp("us")), "d": pa.array([[moment]])})})
    engine.apply({"t": hj.upserts([{"k": 1, "c": time(1, 2, 3, 455_000)}, {"k": 2, "i": timedelta(seconds=1.25)}])})
    engine.copy_from("COPY t (k, a, c) FROM STDIN", io.BytesIO(b"3\t2024-01-01 10:00:00.9996\t10:00:00.999\n"))
    assert [list(row.values()) for row in engine.query(SHOWN).to_pylist()] == [
        ["1", "2024-01-01 10:00:00.124", None, "01:02:03.46", '{"2024-01-01 10:00:00.1"}', None],
        ["2", None, None, None, None, "00:00:01.3"],
        ["3", "2024-01-01 10:00:01", None, "10:00:01", None, None],
    ]
    with pytest.raises(hj.InvalidRow, match=r"is not a valid time\(2\)"):
        engine.apply({"t": [{"k": 4, "c": time(23, 59, 59, 999_999)}]})


def test_views_and_definitions_keep_the_digits(tmp_path: Path) -> None:
    with hj.Engine(tmp_path) as engine:
        engine.execute(TABLE)
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a, a + interval '1 s' AS n, coalesce(a, '2024-01-01') "
                       "AS z, b::timestamptz(2) AS q, min(c) OVER () AS m FROM t")  # fmt: skip
        engine.execute("INSERT INTO t (k, a, c) VALUES (1, '2024-01-01 10:00:00.5555', '1:00:00.555')")
        engine.execute("CREATE TABLE u AS SELECT a, c FROM t")
        engine.execute("ALTER TABLE u ALTER COLUMN a TYPE timestamp(4)")
    with hj.Engine(tmp_path) as engine:
        shown = {row["name"]: row["type"] for row in engine.execute("DESCRIBE v").to_pylist()}
        assert shown == {"a": "timestamp(3)", "n": "timestamp", "z": "timestamp", "q": "timestamptz(2)", "m": "time(2)"}
        assert "a timestamp(4), c time(2)" in str(engine.execute("SHOW CREATE TABLE u").to_pylist())
        assert engine.query("SELECT n::text AS n, m::text AS m FROM v").to_pylist() == [
            {"n": "2024-01-01 10:00:01.556", "m": "01:00:00.56"}]
        engine.execute("DELETE FROM t WHERE a = '2024-01-01 10:00:00.556'")
        assert engine.read("v").num_rows == 0
