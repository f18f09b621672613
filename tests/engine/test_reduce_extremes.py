"""Least and greatest values without an order: the same as in order, for random rows; and no row is put in order."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import aggregates, at_once, by_place, extremes, flow
from halfjoin.engine.statements import evaluating
from halfjoin.engine.updates import limits

TYPES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "s": ("smallint", pa.int16(), [-3, 0, 7, 32767]), "b": ("bigint", pa.int64(), [-(2**63), 0, 5, 2**63 - 1]),
    "n": ("numeric(6,2)", pa.decimal128(6, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("9999.99")]),
    "w": ("numeric(38,0)", pa.decimal128(38, 0), [Decimal(-1), Decimal(0), Decimal(10**37)]),
    "d": ("date", pa.date32(), [dt.date(1, 1, 1), dt.date(2026, 2, 28)]),
    "t": ("timestamp", pa.timestamp("us"), [dt.datetime(1, 1, 1), dt.datetime(2026, 2, 28, 1)]),
    "c": ("time", pa.time64("us"), [dt.time(0), dt.time(12, 30)]),
    "x": ("text", pa.string(), ["", "a", "aa", "é", "\U0001f600"]),
    "f": ("double precision", pa.float64(), [-np.inf, -0.0, 0.0, 1.5, np.inf]),
    "r": ("real", pa.float32(), [-0.0, 0.0, 2.5, np.nan]),
    "i": ("interval", pa.month_day_nano_interval(), [pa.MonthDayNano((1, 0, 0)), pa.MonthDayNano((0, 30, 0))]),
}  # fmt: skip
EVERY = ", ".join(f"min({name}) AS min_{name}, max({name}) AS max_{name}" for name in TYPES if name not in "ir")
QUERIES = [
    f"SELECT count(*) AS n, {EVERY} FROM t",
    f"SELECT k, l, sum(s) AS n, {EVERY} FROM t GROUP BY k, l",
    "SELECT min(s) AS a, max(s) AS b, sum(f) AS c, max(x) FILTER (WHERE s > 0) AS d FROM t WHERE s <> 7",
    "SELECT k, min(x) AS a, max(f) AS b, min(n) AS c, max(w) AS d, avg(s) AS e FROM t GROUP BY k",
    "SELECT f, max(d) AS a FROM t GROUP BY f",
    "SELECT k, min(s) AS a, count(DISTINCT x) AS b, any_value(d) AS c FROM t GROUP BY k HAVING max(s) > 0",
    "SELECT min(k) AS a FROM t WHERE k IS NULL",
    "SELECT k, min(r) AS a, max(r) AS b FROM t GROUP BY k",
    "SELECT k, min(s) AS a, max(b) AS b, min(d) AS c, max(t) AS d, min(c) AS e, max(f) AS f, "
    "max(n) AS g, min(w) AS h FROM t GROUP BY k",
    "SELECT l, min(i) AS a, max(i) AS b, max(f) AS c FROM t GROUP BY l",
]  # fmt: skip


def rows(random: np.random.Generator, length: int, diff: int = 1) -> pa.Table:
    """Random rows with NULLs."""
    kinds = {"k": (pa.int64(), [1, 2, None]), "l": (pa.string(), ["p", None]),
             **{name: (type, [*values, None]) for name, (_, type, values) in TYPES.items()}}  # fmt: skip
    columns = {name: pa.array([values[at] for at in random.integers(0, len(values), length)], type)
               for name, (type, values) in kinds.items()}  # fmt: skip
    return pa.table({**columns, "__diff": pa.array([diff] * length)})


def shown(table: pa.Table) -> Any:
    """The rows, with NaN and the signs of zeros."""
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("seed", range(4))
def test_extremes_are_the_first_and_last_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "FROM", 1)
    monkeypatch.setattr(by_place, "_FROM", 1 + 9 * (seed // 2))  # groups have places
    monkeypatch.setattr(evaluating, "_TOGETHER", 1 + 20 * (seed % 3))
    monkeypatch.setattr(limits, "MORSEL_ROWS", 17)
    random = np.random.default_rng(seed)
    engine = hj.Engine(clock="own", retain=100)
    engine.execute(f"CREATE TABLE t (k bigint, l text, {', '.join(f'{name} {one[0]}' for name, one in TYPES.items())})")
    first = rows(random, 40, 1 + seed % 2)
    engine.apply({"t": first}, time=1)
    engine.apply({"t": rows(random, 3)}, time=2)
    engine.apply({"t": first.slice(0, 9).set_column(13, "__diff", pa.array([-1] * 9))}, time=3)
    used = 0
    for sql in QUERIES:
        for time in (1, 2, 3):
            with patch.object(flow, "extremes_and_sums", lambda *_: None):
                expected = shown(engine.query(sql, as_of=time))
            with patch.object(flow, "extremes_and_sums", wraps=flow.extremes_and_sums) as asked:
                assert shown(engine.query(sql, as_of=time)) == expected, (time, sql)
            used += asked.call_count
    assert used
    for number, sql in enumerate(QUERIES):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
        for time in (1, 2, 3):
            assert shown(engine.read(f"v{number}", as_of=time)) == shown(engine.query(sql, as_of=time)), (time, sql)
    engine.apply({"t": first.slice(9, 9).set_column(13, "__diff", pa.array([-1] * 9))}, time=4)
    for number, sql in enumerate(QUERIES):
        assert shown(engine.read(f"v{number}")) == shown(engine.query(sql)), sql


def test_no_row_is_put_in_order_for_an_extreme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "FROM", 100)
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (g integer, a bigint)")
    numbers = np.arange(20_000)
    engine.apply({"t": pa.table({"g": pa.array(numbers % 7, pa.int32()), "a": numbers})}, time=1)
    engine.apply({"t": [{"g": 0, "a": -1}]}, time=2)
    with patch.object(aggregates, "at_moments", side_effect=AssertionError), \
            patch.object(extremes, "lift_all", side_effect=AssertionError):  # the rows of groups are counted as well
        assert engine.query("SELECT min(a) AS a, max(a) AS b FROM t").to_pylist() == [{"a": -1, "b": 19_999}]
        found = engine.query("SELECT g, min(a) AS a, max(a) AS b FROM t WHERE a < 100 GROUP BY g ORDER BY g")
    assert found.slice(0, 2).to_pylist() == [{"g": 0, "a": -1, "b": 98}, {"g": 1, "a": 1, "b": 99}]


def test_groups_with_places_are_not_hashed() -> None:
    random = np.random.default_rng(3)
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (g integer, a bigint, f double precision)")
    engine.apply({"t": pa.table({"g": random.integers(0, 3_000, 20_000).astype(np.int32),
                                 "a": random.integers(-9, 9, 20_000), "f": random.random(20_000)})})  # fmt: skip
    sql = "SELECT g, min(a) AS a, max(f) AS b, count(*) AS n FROM t GROUP BY g"
    with patch.object(extremes, "extremes_by_place", lambda *_: None):
        expected = shown(engine.query(sql))
    with patch("pyarrow.acero._group_by", side_effect=AssertionError):
        assert shown(engine.query(sql)) == expected


def test_recent_changes_make_no_second_piece_of_a_group() -> None:
    """The rows of several runs in memory are one piece, so no group is put together of several."""
    engine, numbers = hj.Engine(clock="own"), np.arange(20_000)
    engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, g bigint, a bigint)")
    engine.apply({"t": pa.table({"k": numbers, "g": numbers % 700, "a": numbers})}, time=1)
    for time in (2, 3):
        some = numbers[time::40]
        engine.apply({"t": hj.upserts(pa.table({"k": some, "g": some % 700, "a": some * time}))}, time=time)
    sql = "SELECT g, min(a) AS a, max(a) AS b, count(*) AS n FROM t GROUP BY g"
    with patch.object(flow, "extremes_and_sums", lambda *_: None):
        expected = shown(engine.query(sql))
    with patch.object(aggregates, "at_moments", side_effect=AssertionError), \
            patch.object(flow, "moments_of", side_effect=AssertionError):
        assert shown(engine.query(sql)) == expected
