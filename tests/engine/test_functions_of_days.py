"""Functions of the day: computed once for each day of many rows, with the same results as row by row."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.scalar import dates, moments

FIELDS = ("year", "month", "quarter", "day", "doy", "dow", "isodow", "week", "isoyear", "decade", "century",
          "millennium", "epoch", "julian")  # fmt: skip
UNITS = ("day", "week", "month", "quarter", "year", "decade", "century", "millennium")
MOMENTS = ("hour", "second", "microseconds")
ALL = [
    *(f"extract({field} FROM d) AS r" for field in FIELDS), *(f"date_part('{field}', d) AS r" for field in FIELDS),
    *(f"extract({field} FROM {name}) AS r" for field in (*FIELDS, *MOMENTS) for name in "tz"),
    *(f"date_trunc('{unit}', {name}) AS r" for unit in (*UNITS, "hour") for name in "dtz"),
    "extract(timezone FROM z) AS r",
    *(f"{name} {sign} interval '{step}' AS r" for name in "dtz" for sign in "+-"
      for step in ("1 month", "3 years -1 day 5 hours", "2 days")),
    "d + (k % 3) * interval '1 month' AS r",
]  # fmt: skip


@pytest.mark.parametrize(("first", "last"), [(-3, 3), (-719_200, -719_100), (10_000, 10_100), (-2_440_588, -2_440_500),
                                             (100_000_000, 100_000_070)])  # fmt: skip
def test_the_values_are_those_row_by_row(first: int, last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(first % 1000)
    engine, length = hj.Engine(), 500
    engine.execute("CREATE TABLE t (k bigint, d date, t timestamp, z timestamptz)")
    days = random.integers(first, last, length)
    micros = days * 86_400_000_000 + random.integers(0, 86_400_000_000, length)
    gone = random.random(length) < random.choice([0, 0.2])
    engine.apply({"t": pa.table({
        "k": np.arange(length), "d": pa.array(days.astype(np.int32), mask=gone).cast(pa.date32()),
        "t": pa.array(micros, mask=gone).cast(pa.timestamp("us")),
        "z": pa.array(micros, mask=gone).cast(pa.timestamp("us", "UTC")),
    })})  # fmt: skip
    expected = list[object]()
    for value in (1 << 60, 1):  # row by row, and by day
        monkeypatch.setattr(moments, "_MANY", value)
        found = list[object]()
        for column in ALL:
            try:
                made = engine.query(f"SELECT k, {column} FROM t ORDER BY k").column(1)
                found.append((made.cast(pa.int64()) if pa.types.is_timestamp(made.type) else made).to_pylist())
            except hj.HalfjoinError as error:  # out of range
                found.append(str(error))
        expected = expected or found
        assert found == expected


def test_many_rows_ask_for_no_more_than_their_days(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (d date, t timestamp)")
    days = np.arange(40_000) % 1_000 + 8_000
    engine.apply({"t": pa.table({"d": pa.array(days.astype(np.int32)).cast(pa.date32()),
                                 "t": pa.array(days * 86_400_000_000 + 5).cast(pa.timestamp("us"))})})  # fmt: skip
    with patch.object(dates, "_of_day", wraps=dates._of_day) as field, \
            patch.object(dates, "_in_calendar", wraps=dates._in_calendar) as month:  # fmt: skip
        found = engine.query("SELECT extract(year FROM d) AS y, date_trunc('month', d) AS m, count(*) AS n, "
                             "max(extract(year FROM t)) AS a FROM t GROUP BY 1, 2")  # fmt: skip
    assert sum(found.column("n").to_pylist()) == 40_000
    years = [month.year for month in found.column("m").to_pylist()]
    assert found.column("y").to_pylist() == years == found.column("a").to_pylist()
    assert sum(len(call.args[1]) for call in field.call_args_list) == 2_000
    assert sum(len(call.args[0]) for call in month.call_args_list) == 1_000
