"""The WINDOW clause: what it defines is checked, whether a call uses it or not."""

from __future__ import annotations

import pytest

import halfjoin as hj

TABLE = "CREATE TABLE t (a integer, k integer)"


@pytest.mark.parametrize(("clause", "state"), [
    ("w AS (PARTITION BY nope)", "42703"), ("w AS (x)", "42704"), ("w AS (ORDER BY a), w AS (ORDER BY a)", "42P20"),
    ("w AS (ORDER BY a ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW)", "42P20"),
    ("w AS (ORDER BY a), v AS (w ORDER BY a)", "42P20"), ("w AS (PARTITION BY a), v AS (w PARTITION BY a)", "42P20"),
    ("w AS (ORDER BY a ROWS 1 PRECEDING), v AS (w ROWS 2 PRECEDING)", "42P20"),
    ("w AS (ORDER BY a RANGE 'x' PRECEDING)", "22P02"), ("w AS (PARTITION BY row_number() OVER ())", "42P20"),
    ("w AS (PARTITION BY count(*))", "42803"),
])  # fmt: skip
def test_a_window_that_nobody_uses_is_checked(clause: str, state: str) -> None:
    engine = hj.Engine()
    engine.execute(TABLE)
    for sql in (f"SELECT a FROM t WINDOW {clause}", f"CREATE MATERIALIZED VIEW v AS SELECT a FROM t WINDOW {clause}"):
        with pytest.raises(hj.HalfjoinError) as caught:
            engine.execute(sql)
        assert caught.value.sqlstate == state, sql


def test_a_window_that_nobody_uses_changes_nothing() -> None:
    engine = hj.Engine()
    engine.execute(f"{TABLE}; INSERT INTO t VALUES (1, 2), (1, 3)")
    for sql in ("SELECT a FROM t WINDOW w AS (PARTITION BY k), v AS (w ORDER BY a)",
                "SELECT a FROM t GROUP BY a, k WINDOW w AS (ORDER BY sum(k))"):  # fmt: skip
        assert engine.query(sql).to_pylist() == [{"a": 1}, {"a": 1}]
        assert engine.explain(sql).count("order") == 0
