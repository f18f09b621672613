"""A date beyond all timestamps fails its row where it is cast, and no view longer than the row is there."""

from __future__ import annotations

import pytest

import halfjoin as hj
from tests.support.kernels import both_ways  # noqa: F401

FAR = {"k": 1, "d": "300000-01-01"}


@pytest.mark.parametrize("sql", [
    "SELECT k, d::timestamp AS x FROM t",
    "SELECT k, d::timestamptz AS x FROM t",
    "SELECT t.k FROM t JOIN u ON t.k = u.k AND t.d::timestamp > u.ts",
    "SELECT t.k FROM t JOIN u ON t.d::timestamp = u.ts",
    "SELECT d::timestamp AS x, count(*) AS n FROM t GROUP BY 1",
])  # fmt: skip
def test_a_view_can_be_read_again_when_the_row_is_gone(sql: str) -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint, d date); CREATE TABLE u (k bigint, ts timestamp)")
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
        engine.apply({"t": [FAR], "u": [{"k": 1, "ts": "2024-01-01"}]}, time=1)
        with pytest.raises(hj.DataError, match=r"date out of range for timestamp.*, for a row with"):
            engine.read("v")
        engine.apply({"t": hj.deletes([FAR])}, time=2)
        assert engine.read("v").num_rows == 0
