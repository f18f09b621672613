"""No table holds a decimal with more digits than its column has, which Arrow's unsafe casts leave."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import halfjoin as hj
from tests.support.kernels import both_ways  # noqa: F401


@pytest.mark.parametrize(("type", "value"), [("numeric(5,2)", "12345.67"), ("numeric(5,2)", "-1000.00"),
                                             ("numeric(38,2)", "1" + "0" * 36)])  # fmt: skip
def test_a_decimal_with_too_many_digits_is_refused(type: str, value: str) -> None:
    precision = int(type[8:].split(",")[0])
    wide = pa.array([Decimal("1.00"), Decimal(value), None], pa.decimal256(60, 2))
    with hj.Engine() as engine:
        engine.execute(f"CREATE TABLE t (n {type}); CREATE MATERIALIZED VIEW v AS SELECT n * n AS x FROM t")
        given = wide.cast(pa.decimal128(precision, 2), safe=False)
        for rows in (given, given.slice(1), pa.chunked_array([given])):
            with pytest.raises(hj.InvalidRow, match=r"t\.n: row [01]: .* has more digits") as caught:
                engine.apply({"t": pa.table({"n": rows})})
            assert caught.value.sqlstate == "22003" and engine.read("v").num_rows == 0
        engine.apply({"t": pa.table({"n": given.take(pa.array([0, 2]))})})  # all others are taken
        assert engine.read("v").column("x").to_pylist() in ([Decimal(1), None], [None, Decimal(1)])


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_decimal_with_all_digits_is_taken(sign: str) -> None:
    most = [Decimal(sign + "9" * 28 + "." + "9" * 10), Decimal(sign + "9" * 28 + ".5")]
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (n numeric(38,10))")
        for rows in (pa.table({"n": pa.array(most, pa.decimal128(38, 10))}), [{"n": one} for one in most]):
            engine.apply({"t": rows})
        assert sorted(engine.read("t")["n"].to_pylist()) == sorted(most * 2)
