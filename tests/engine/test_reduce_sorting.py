"""The order of rows: every type in PostgreSQL's order, both directions, NULLs at either end, ties by all columns."""

from __future__ import annotations

import math
from datetime import date, time
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.ordered import evaluate as ordered
from halfjoin.engine.reduce.sorting import first_rows, sort
from halfjoin.engine.reduce.windows import evaluate as windows
from halfjoin.engine.reduce.words import ordered_words
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.planner.group_functions import Ordered, Windows
from halfjoin.sql.expr import Column, Literal
from halfjoin.sql.functions.aggregates import resolve_aggregate
from halfjoin.sql.functions.window_functions import resolve_window
from halfjoin.sql.relation import Frame, SortKey
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    TEXT,
    TIME,
    SqlType,
    array,
    numeric,
)
from tests.support.seeds import some

DAY = 86_400_000_000
INTERVALS = st.tuples(st.sampled_from([0, 1, -1, 2**31 - 1]), st.sampled_from([0, 30, 29, -30]),
                      st.sampled_from([0, DAY, -DAY, 5]))  # fmt: skip
VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    BIGINT: st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    BOOLEAN: st.booleans(),
    DOUBLE: st.floats() | st.sampled_from([0.0, -0.0, math.nan]),
    REAL: st.floats(width=32),
    numeric(4, 1): st.decimals(-2, 2, places=1),
    numeric(38, 2): st.decimals(-(10**35), 10**35, places=2),
    numeric(76, 2): st.decimals(-(10**70), 10**70, places=2) | st.decimals(-1, 1, places=2),
    TEXT: st.text("aäB\x00é😀", max_size=3),
    BYTEA: st.binary(max_size=2),
    DATE: st.dates(date(1969, 12, 30), date(1970, 1, 3)),
    TIME: st.sampled_from([time(0), time(0, 0, 0, 1), time(23, 59)]),
    INTERVAL: INTERVALS.map(lambda parts: pa.MonthDayNano([parts[0], parts[1], parts[2] * 1000])),
    array(INTEGER): st.lists(st.none() | st.integers(-1, 1), max_size=3),
    array(TEXT): st.lists(st.sampled_from(["", "a", "ab"]), max_size=2),
}
EVERY_TYPE = pytest.mark.parametrize("type", VALUES, ids=str)


def _compare(left: Any, right: Any) -> int:
    """PostgreSQL's order of two values that are not NULL."""
    if isinstance(left, list):
        for pair in zip(left, right, strict=False):
            if None in pair:
                if pair != (None, None):
                    return 1 if pair[0] is None else -1
            elif found := _compare(*pair):
                return found
        return len(left) - len(right)
    left, right = _plain(left), _plain(right)
    return int(left > right) - int(left < right)


def _plain(value: Any) -> Any:
    if isinstance(value, pa.MonthDayNano):
        return ((value.months * 30 + value.days) * DAY) * 1000 + value.nanoseconds
    if isinstance(value, float):
        return (math.isnan(value), 0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def _column(values: list[Any], type: SqlType) -> pa.Array:
    return pa.array(values, arrow_type(type))


@EVERY_TYPE
@settings(max_examples=some(40), deadline=None)
@given(data=st.data())
def test_words_order_values_as_postgresql_does(type: SqlType, data: st.DataObject) -> None:
    column = _column(data.draw(st.lists(st.none() | VALUES[type], min_size=1, max_size=12)), type)
    descending, nulls_first = data.draw(st.booleans()), data.draw(st.booleans())
    groups = Groups({"x": column}, np.ones(len(column), np.int64), np.array([0, len(column)]))
    order = (SortKey(Column("x", type), descending, nulls_first),)
    found = sort(groups, order)
    values = [column[position].as_py() for position in found.positions.tolist()]
    for (one, other), new in zip(pairwise(values), found.new[1:].tolist(), strict=True):
        if one is None or other is None:
            assert new == ((one is None) != (other is None))
            assert not new or (one is None) == nulls_first
        else:
            compared = _compare(one, other)
            assert compared <= 0 if not descending else compared >= 0
            assert new == (compared != 0)
    least = first_rows(groups.starts, ordered_words(column, descending, nulls_first))
    assert found.positions.tolist()[0] == least[0] or not found.new[1:].all()


@settings(max_examples=some(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), *[st.none() | st.integers(0, 2)] * 3), min_size=1, max_size=30),
       st.lists(st.tuples(st.sampled_from("xyz"), st.booleans(), st.booleans()), max_size=2))
def test_ties_are_ordered_by_all_columns(rows: list[tuple[Any, ...]], keys: list[tuple[str, bool, bool]]) -> None:
    rows = sorted(rows, key=lambda row: int(row[0]))
    numbers = [row[0] for row in rows]
    starts = [i for i, number in enumerate(numbers) if i == 0 or numbers[i - 1] != number]
    columns = {name: _column([row[i] for row in rows], INTEGER) for i, name in enumerate("gxyz")}
    groups = Groups(columns, np.ones(len(rows), np.int64), np.array([*starts, len(rows)]))
    found = sort(groups, [SortKey(Column(name, INTEGER), *more) for name, *more in keys])

    def words(row: tuple[Any, ...]) -> list[Any]:
        by = list[Any]([row[0]])
        for name, descending, nulls_first in (*keys, ("x", False, False), ("y", False, False), ("z", False, False)):
            value = row["gxyz".index(name)]
            by += [(value is None) != nulls_first, 0 if value is None else -value if descending else value]
        return by

    assert [rows[position] for position in found.positions] == sorted(rows, key=words)


@EVERY_TYPE
@settings(max_examples=some(20), deadline=None)
@given(data=st.data())
def test_functions_of_groups_take_every_type(type: SqlType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[type], min_size=1, max_size=8))
    column, x = _column(values, type), Column("x", type)
    groups = Groups({"x": column}, np.ones(len(values), np.int64), np.array([0, len(values)]))
    by = (SortKey(x),)
    known = sorted((value for value in column.to_pylist() if value is not None), key=cmp_to_key(_compare))
    ascending = [*known, *[None] * column.null_count]

    def one(name: str, *args: Any, **more: Any) -> Any:
        call = resolve_aggregate(name, args, **more)
        return ordered(Ordered(Column("r", call.type), name, call.args, call.distinct, call.order), groups)

    def equal(found: list[Any], wanted: list[Any]) -> bool:
        return len(found) == len(wanted) and all(
            a is b is None or (a is not None and b is not None and _compare(a, b) == 0)
            for a, b in zip(found, wanted, strict=True))  # fmt: skip

    distinct = [v for i, v in enumerate(known) if i == 0 or _compare(known[i - 1], v)]
    assert one("count", x, distinct=True).to_pylist() == [len(distinct)]
    assert equal(one("percentile_disc", Literal(0.0, DOUBLE), order=by).to_pylist(), known[:1] or [None])
    if type not in (BOOLEAN,):
        assert equal(one("min", x).to_pylist(), known[:1] or [None])
        assert equal(one("max", x).to_pylist(), known[-1:] or [None])
    frame = Frame()
    calls = [resolve_window(name, [x], frame=frame, ordered=True) for name in ("lag", "lead", "last_value")]
    calls.append(resolve_window("lag", [x, Literal(1, INTEGER), x], frame=frame, ordered=True))
    named = tuple((Column(f"r{i}", call.type), call) for i, call in enumerate(calls))
    out = windows(Windows(by, named), groups)
    rows = [[v for v, n in zip(out.columns[f"r{i}"].to_pylist(), out.count, strict=True) for _ in range(n)]
            for i in range(4)]  # fmt: skip
    assert equal(rows[0], [None, *ascending[:-1]])
    assert equal(rows[1], [*ascending[1:], None])
    assert equal(rows[2], ascending)
    assert equal(rows[3], [ascending[0], *ascending[:-1]])
    if type.element is None:
        assert equal(one("array_agg", x, order=by).to_pylist()[0], ascending)
        assert equal(one("array_agg", x, distinct=True).to_pylist()[0], [*distinct, *[None] * (column.null_count > 0)])
