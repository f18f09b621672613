"""Results of windows and of functions of whole groups whose type has more digits than a stored numeric may have."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import halfjoin as hj

QUERIES = {
    "SELECT k, max(a * b) AS m FROM t GROUP BY k": "7.5",
    "SELECT k, any_value(a * b ORDER BY id) AS m FROM t GROUP BY k": "3.75",
    "SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY a * b) AS m FROM t GROUP BY k": "3.75",
    "SELECT k, mode() WITHIN GROUP (ORDER BY a * b) AS m FROM t GROUP BY k": "3.75",
    "SELECT k, (array_agg(a * b ORDER BY id))[2] AS m FROM t GROUP BY k": "7.5",
    "SELECT id, max(m) AS m FROM (SELECT id, lag(a * b) OVER (ORDER BY id) AS m FROM t) AS s GROUP BY id": "3.75",
    "SELECT id, avg(c) OVER (PARTITION BY k) AS m FROM t": "7.5",
    "SELECT id, avg(sum(c)) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS m FROM t GROUP BY id": "7.5",
    "SELECT id, stddev(c) OVER (PARTITION BY k) ^ 2 AS m FROM t": "0.5",
    "SELECT id, nth_value(c / 2, 2) OVER (PARTITION BY k) AS m FROM t": "4",
}


@pytest.mark.parametrize("sql", QUERIES)
def test_it_is_flushed_and_read_again(tmp_path: Path, sql: str) -> None:
    with hj.Engine(tmp_path) as engine:
        engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, k bigint, a numeric(30,5), b numeric(30,5), "
                       "c numeric(38,2))")  # fmt: skip
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
        engine.execute("INSERT INTO t VALUES (1, 1, 1.5, 2.5, 7), (2, 1, 3, 2.5, 8)")
        engine.flush()
    with hj.Engine(tmp_path) as engine:
        found, asked = (table["m"].to_pylist() for table in (engine.read("v"), engine.query(sql)))
        assert sorted(found, key=str) == sorted(asked, key=str)
        assert round(max(one for one in found if one is not None), 9) == Decimal(QUERIES[sql])
        engine.execute("DELETE FROM t WHERE id = 2")
        engine.flush()


def test_what_does_not_fit_is_an_error_of_the_rows() -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, c numeric(38,2))")
        engine.execute("CREATE MATERIALIZED VIEW v AS "
                       "SELECT id, avg(c) OVER (ORDER BY id ROWS 1 PRECEDING) AS m FROM t")  # fmt: skip
        engine.execute("INSERT INTO t VALUES (1, 1), (2, 99999999999999999999)")
        with pytest.raises(hj.DataError, match="numeric field overflow"):
            engine.read("v")
        engine.execute("DELETE FROM t WHERE id = 2")
        assert engine.read("v").to_pylist() == [{"id": 1, "m": Decimal(1)}]
