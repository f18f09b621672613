"""An error names values that Python does not have, and is an error of the view that has it alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.linear.failures import shown

TABLE = "CREATE TYPE r AS (d date, n integer); CREATE TABLE t (a date[], b timestamp[][], c timestamptz, r r, rs r[])"
ROW = """INSERT INTO t VALUES ('{12000-01-01}', '{{0044-03-15 BC}}', '12000-01-01 00:00+00', ('12000-01-01', 0),
         ARRAY[ROW('12000-01-01', 0)::r])"""


@pytest.mark.parametrize(("sql", "told"), [
    ("SELECT 1 / (cardinality(a) - 1) AS x FROM t", "t.a = {12000-01-01}"),
    ("SELECT 1 / (cardinality(b) - 1) AS x FROM t", "t.b = ['{\"0044-03-15 00:00:00 BC\"}']"),
    ("SELECT a, 1 / (count(*) - 1) AS x FROM t GROUP BY a", "a = {12000-01-01}"),
    ("SELECT 1 / (extract(year FROM c)::integer - 12000) AS x FROM t", "t.c = 12000-01-01 00:00:00+00"),
    ("SELECT 1 / (r).n AS x FROM t", "t.r = {'d': '12000-01-01', 'n': 0}"),
    ("SELECT 1 / rs[1].n AS x FROM t", "t.rs = [{'d': '12000-01-01', 'n': 0}]"),
])  # fmt: skip
def test_a_failing_row_with_a_far_date_is_an_error_of_its_view(sql: str, told: str) -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute(f"{TABLE}; CREATE MATERIALIZED VIEW v AS {sql}; CREATE MATERIALIZED VIEW w AS SELECT c FROM t")
        engine.execute(f"SET TIME = 1; {ROW}; RESET TIME")
        assert engine.read("w").num_rows == 1
        with pytest.raises(hj.DataError) as caught:
            engine.read("v")
        assert str(caught.value).endswith(told)
        engine.execute("SET TIME = 2; DELETE FROM t; RESET TIME")
        assert engine.read("v").num_rows == 0


def test_moments_of_years_that_arrow_counts_in_16_bits() -> None:
    moments = pa.array([-62_135_596_800_000_001, -62_135_596_800_000_000, 253_402_300_799_999_999,
                        9_223_371_331_200_000_000, None], pa.timestamp("us"))  # fmt: skip
    assert shown(moments).to_pylist() == ["0001-12-31 23:59:59.999999 BC", "0001-01-01 00:00:00.000000",
                                          "9999-12-31 23:59:59.999999", "294247-01-02 00:00:00", "NULL"]  # fmt: skip


def test_show_prints_dates_that_python_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    with hj.Engine() as engine:
        hj.show(engine.query("SELECT date '12000-01-01' AS d, timestamp '0044-03-15 BC' AS t, 7 AS n"))
    printed = capsys.readouterr().out
    assert "12000-01-01" in printed and "0044-03-15 00:00:00 BC" in printed and "7" in printed
