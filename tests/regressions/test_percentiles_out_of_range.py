"""A fraction of an array that is not between 0 and 1 is an error of the groups that have values, and of no others."""

from __future__ import annotations

import pytest

import halfjoin as hj
from tests.support.kernels import both_ways  # noqa: F401


@pytest.mark.parametrize("function", ["percentile_disc", "percentile_cont"])
@pytest.mark.usefixtures("both_ways")
def test_a_view_fails_while_a_group_has_values(function: str) -> None:
    engine = hj.Engine(clock="own")
    select = f"SELECT {function}(ARRAY[0.5, 2]) WITHIN GROUP (ORDER BY k) AS r FROM t"
    engine.execute(f"CREATE TABLE t (k integer); CREATE MATERIALIZED VIEW v AS {select}")
    for time in range(1, 6):
        engine.execute(f"SET TIME = {time}; " + ("INSERT INTO t VALUES (1)" if time % 2 else "DELETE FROM t"))
        for sql in (select, "SELECT r FROM v"):
            if time % 2:
                with pytest.raises(hj.DataError, match="percentile value 2 is not between 0 and 1"):
                    engine.query(sql)
            else:
                assert engine.query(sql).to_pylist() == [{"r": None}]
