"""One value as a column: the same as Arrow repeats it, for all types."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.scalar import moments
from halfjoin.engine.updates.updates import repeated

_AT = datetime.datetime(2024, 3, 31, 12)
_VALUES: list[tuple[Any, Any]] = [
    (True, pa.bool_()), (7, pa.int16()), (-(2**63), pa.int64()), (1.5, pa.float32()), (float("nan"), pa.float64()),
    (Decimal("-1.25"), pa.decimal128(12, 2)), (Decimal(10**50), pa.decimal256(60, 0)), (_AT.date(), pa.date32()),
    (_AT, pa.timestamp("us")), (_AT.time(), pa.time64("us")), ("text", pa.string()), (b"bytes", pa.binary()),
    (pa.MonthDayNano([1, 2, 3]), pa.month_day_nano_interval()),
]  # fmt: skip


@pytest.mark.parametrize("value", [*_VALUES, *((None, kind) for _, kind in _VALUES)], ids=str)
def test_a_value_is_repeated(value: tuple[Any, Any]) -> None:
    one, kind = value
    for array in (pa.array([one], kind), pa.array([None, one, one], kind).slice(1, 1)):
        for length in (0, 1, 1000):
            made = repeated(array, length)
            made.validate(full=True)
            assert (made.type, len(made)) == (kind, length)
            assert str(made.to_pylist()) == str([one] * length)


def test_a_moment_that_a_subquery_finds_is_shifted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, shifted, shift = hj.Engine(), [], moments._shift

    def noted(a: Any, *rest: Any) -> Any:
        shifted.append(len(a))
        return shift(a, *rest)

    monkeypatch.setattr(moments, "_shift", noted)
    engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, at timestamp)")
    minutes = [_AT + datetime.timedelta(minutes=one) for one in range(10_000)]
    engine.apply({"t": pa.table({"id": range(10_000), "at": pa.array(minutes, pa.timestamp("us"))})})
    found = engine.query("SELECT count(*) AS n FROM t WHERE at >= (SELECT max(at) - interval '1 hour' FROM t)")
    assert found.to_pylist() == [{"n": 61}]
    assert sum(shifted) < 10
