"""'now', 'today', 'tomorrow', 'yesterday': moments of the query or statement. Views and defaults refuse them."""

from __future__ import annotations

import pytest

import halfjoin as hj
from halfjoin.errors import UnsupportedSQL

TRUE = (
    "timestamptz 'now' = now()", "date 'now' = current_date", "time 'now' = localtime", "'today'::date = current_date",
    "date 'tomorrow' - 'yesterday' = 2", "timestamp 'today 10:30' = current_date + time '10:30'",
    "timestamp '10:30 yesterday' = current_date - 1 + time '10:30'", "timestamp 'today 24:00' = timestamp 'tomorrow'",
    "timestamptz 'tomorrow EST' - timestamptz 'tomorrow' = interval '5 hours'",
)  # fmt: skip


@pytest.mark.parametrize("condition", TRUE)
def test_a_query_reads_them_at_its_moment(condition: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer); INSERT INTO t VALUES (1), (2)")
    assert engine.query(f"SELECT count(*) AS n FROM t WHERE {condition}").to_pylist() == [{"n": 2}]


def test_statements_read_them_at_their_moment() -> None:
    engine = hj.Engine()
    engine.execute("""
        CREATE TABLE t (k integer PRIMARY KEY, d date, at timestamp);
        INSERT INTO t VALUES (1, 'today', 'tomorrow 10:00'), (2, 'yesterday', 'now'), (3, NULL, NULL);
        UPDATE t SET d = 'tomorrow' WHERE k = 3 AND d IS NULL;
        INSERT INTO t (k) VALUES (2) ON CONFLICT (k) DO UPDATE SET at = 'today';
        MERGE INTO t USING (VALUES (4)) v(k) ON t.k = v.k WHEN NOT MATCHED THEN INSERT VALUES (v.k, 'now', 'now');
        DELETE FROM t WHERE d = 'tomorrow' AND at IS NULL;
    """)
    found = engine.query("SELECT d - current_date AS d, (at - current_date)::text AS at FROM t WHERE k < 3 ORDER BY k")
    assert found.to_pylist() == [{"d": 0, "at": "1 day 10:00:00"}, {"d": -1, "at": "00:00:00"}]
    assert engine.query("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 3}]


@pytest.mark.parametrize("statement", [
    "CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE d >= 'today'",
    "CREATE TABLE u (d date DEFAULT 'now')",
    "CREATE TABLE u (d date CHECK (d > 'today'))",
])  # fmt: skip
def test_what_is_kept_has_no_such_moment(statement: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer, d date)")
    with pytest.raises(UnsupportedSQL, match=r"depends on when it is read[\s\S]*now\(\)"):
        engine.execute(statement)


@pytest.mark.parametrize("text", ["time 'today'", "date 'today 2024-01-01'", "date 'now now'", "timestamp 'now 10:00'"])
def test_they_stand_for_a_day_or_a_moment_alone(text: str) -> None:
    with pytest.raises(UnsupportedSQL, match="invalid input syntax"):
        hj.Engine().query(f"SELECT {text}")
