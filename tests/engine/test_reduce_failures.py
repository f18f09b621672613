"""A group without a value fails by itself: the mask of the failure names it, and the others can go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from halfjoin.engine.reduce import collect, partitions
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.ordered import evaluate as ordered
from halfjoin.engine.reduce.windows import evaluate as windows
from halfjoin.engine.scalar import bounds
from halfjoin.engine.scalar.failures import Failed
from halfjoin.planner.group_functions import Ordered, Windows
from halfjoin.sql.expr import Call, Column, Literal
from halfjoin.sql.functions.aggregates import resolve_aggregate
from halfjoin.sql.functions.frames import resolve_frame
from halfjoin.sql.functions.window_functions import resolve_window
from halfjoin.sql.relation import Bound, Frame, SortKey
from halfjoin.sql.types import BIGINT, DOUBLE, INTEGER, TEXT, TIMESTAMP, UNKNOWN

X, S = Column("x", INTEGER), Column("s", TEXT)


def _groups(x: list[int | None], s: list[str | None] | None = None, count: list[int] | None = None) -> Groups:
    """Two groups: the first two rows, and all others."""
    columns = {"x": pa.array(x, pa.int32()), "s": pa.array(s or [None] * len(x), pa.string())}
    return Groups(columns, np.array(count or [1] * len(x)), np.array([0, 2, len(x)]))


def _aggregate(name: str, *args: Any, **more: Any) -> Callable[[Groups], Any]:
    call = resolve_aggregate(name, args, **more)
    part = Ordered(Column("r", call.type), name, call.args, call.distinct, call.order)
    return lambda groups: ordered(part, groups)


def _window(name: str, *args: Any, frame: Frame | None = None, key: Column = X) -> Callable[[Groups], Any]:
    order = (SortKey(key),)
    call = resolve_window(name, args, frame=resolve_frame(frame or Frame(), order), ordered=True)
    return lambda groups: windows(Windows(order, ((Column("r", call.type), call),)), groups)


def _fails(run: Callable[[Groups], Any], groups: Groups, message: str, mask: list[bool]) -> None:
    with pytest.raises(Failed, match=message) as failed:
        run(groups)
    assert failed.value.mask is not None and failed.value.mask.tolist() == mask


def test_wrong_numbers_fail_in_their_partition() -> None:
    groups = _groups([1, 2, 0, 3])
    _fails(_window("ntile", X), groups, "argument of ntile must be greater than zero", [False, True])
    _fails(_window("nth_value", X, X), groups, "argument of nth_value must be greater than zero", [False, True])


def test_long_values_fail_in_their_group(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (collect, bounds):
        monkeypatch.setattr(module, "VALUE_BYTES", 11)
    groups = _groups([1, 2, 3, 4, 5], ["a", "b", "cdefg", "hijkl", None])
    comma = Literal(",", TEXT)
    _fails(_aggregate("array_agg", X, order=[SortKey(X)]), _groups([1, 2, 3, 4, 5, 6]), "longer than", [False, True])
    _fails(_aggregate("array_agg", X), _groups([1, 2, 3], count=[1, 1, 2**40]), "longer than", [False, True])
    _fails(_window("string_agg", S, comma), groups, "longer than", [False, True])
    _fails(_aggregate("string_agg", S, comma), groups, "longer than", [False, True])
    monkeypatch.setattr(collect, "VALUE_BYTES", 12)
    monkeypatch.setattr(bounds, "VALUE_BYTES", 12)
    assert _aggregate("string_agg", S, comma)(groups).to_pylist() == ["a,b", "cdefg,hijkl"]


def test_too_many_copies_fail_in_their_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "RESULT_ROWS", 10)
    many = _groups([1, 2, 3, 4], count=[2, 1, 2**62, 2**62])
    _fails(_window("row_number"), many, "copies of rows", [False, True])
    found = _window("row_number")(_groups([1, 2, 3], count=[2, 1, 11]))
    assert found.columns["r"].to_pylist() == [1, 2, 3, *range(1, 12)]


def test_computed_offsets_are_checked() -> None:
    minus = Call("-", (Literal(1, BIGINT), Literal(2, BIGINT)), BIGINT)
    frame = Frame("rows", Bound("preceding", minus), Bound("current row"))
    groups = _groups([1, 2, 3])
    _fails(_window("count", frame=frame), groups, "frame starting offset must not be negative", [True, True])
    nothing = Call("-", (Literal(1, BIGINT), Literal(None, BIGINT)), BIGINT)
    frame = Frame("groups", Bound("preceding"), Bound("following", nothing))
    _fails(_window("count", frame=frame), _groups([1, 2, 3]), "frame ending offset must not be null", [True, True])


def test_percentiles_check_computed_fractions() -> None:
    two = Call("+", (Literal(1.0, DOUBLE), Literal(1.0, DOUBLE)), DOUBLE)
    run = _aggregate("percentile_disc", two, order=[SortKey(X)])
    _fails(run, _groups([1, 2, 3]), "percentile value 2 is not between 0 and 1", [True, True])


def test_overflow_fails_in_its_group() -> None:
    real = Column("f", DOUBLE)
    columns = {"f": pa.array([1.0, 2.0, 1e308, 1.5e308])}
    groups = Groups(columns, np.ones(4, np.int64), np.array([0, 2, 4]))
    _fails(_aggregate("sum", real, distinct=True), groups, "overflow", [False, True])
    _fails(_window("sum", real, key=real), groups, "overflow", [False, True])


def test_ranges_beyond_the_last_timestamp_fail() -> None:
    key = Column("d", TIMESTAMP)
    last = 9_223_372_022_400_000_000  # the last day that fits into 64 bits of microseconds
    columns = {"d": pa.array([0, 1, 2, last]).cast(pa.timestamp("us"))}
    groups = Groups(columns, np.ones(4, np.int64), np.array([0, 2, 4]))
    frame = Frame("range", Bound("preceding"), Bound("following", Literal("1 day", UNKNOWN)))
    _fails(_window("count", frame=frame, key=key), groups, "timestamp out of range", [False, True])
