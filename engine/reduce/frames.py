"""The frame of each row: ROWS, RANGE and GROUPS between two bounds, and EXCLUDE."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.partitions import Partitions
from halfjoin.engine.reduce.range_bounds import range_bound
from halfjoin.engine.reduce.spans import Spans
from halfjoin.engine.scalar import evaluate
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.updates import Ints
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.frames import is_negative, negative
from halfjoin.sql.relation import Bound, Frame
from halfjoin.sql.types import Kind


def spans(frame: Frame, rows: Partitions) -> Spans:
    """The positions that each row's frame holds.

    Raises:
        Failed: an offset that is computed is NULL or negative, or a bound is out of range; the mask marks the rows.
    """
    start = _bound(frame, frame.start, rows, is_end=False)
    end = _bound(frame, frame.end, rows, is_end=True)
    found = Spans(((start, np.maximum(start, end)),))
    match frame.exclude:
        case "current row":
            return found.without(rows.place, rows.place + 1)
        case "group":
            return found.without(rows.first_peer, rows.peer_end)
        case "ties":
            ((start, end),) = found.pieces
            before = (start, np.clip(rows.first_peer, start, end))
            own = (np.clip(rows.place, start, end), np.clip(rows.place + 1, start, end))
            return Spans((before, own, (np.clip(rows.peer_end, start, end), end)))
    return found


def _bound(frame: Frame, bound: Bound, rows: Partitions, *, is_end: bool) -> Ints:
    """The position where the frame starts or ends."""
    if bound.kind == "current row":
        if frame.unit == "rows":
            return rows.place + is_end
        return rows.peer_end if is_end else rows.first_peer
    if bound.offset is None:
        return rows.first if bound.kind == "preceding" else rows.end
    _check(frame, bound.offset, rows, is_end=is_end)
    if frame.unit == "range":
        return range_bound(rows, bound.kind == "following", bound.offset, is_end=is_end)
    offset: int = min(constant(bound.offset).as_py(), len(rows))
    offset = offset if bound.kind == "following" else -offset
    if frame.unit == "rows":
        at: Ints = np.clip(rows.place + offset + is_end, rows.first, rows.end)
        return at
    first, end = rows.peers[rows.first], rows.peers[rows.end - 1] + 1
    group: Ints = np.clip(rows.peers + offset + is_end, first, end)
    return rows.peer_starts[group]


def constant(offset: Expr) -> Any:
    """The value of a constant expression as an Arrow scalar."""
    return evaluate.compile(offset).evaluate({}, 1).values[0]


def _check(frame: Frame, offset: Expr, rows: Partitions, *, is_end: bool) -> None:
    """Refuse a computed offset that is NULL or negative. A written one was checked when the view was created."""
    if isinstance(offset, Literal):
        return
    which, value = "ending" if is_end else "starting", constant(offset).as_py()
    everywhere = np.ones(len(rows), np.bool_)
    if value is None:
        raise Failed(f"frame {which} offset must not be null", everywhere)
    if isinstance(value, pa.MonthDayNano):
        value = (value.months, value.days, value.nanoseconds // 1000)
    of_clock = frame.unit == "range" and rows.order[0].expr.type.kind is Kind.TIME
    if is_negative(value, of_clock=of_clock):
        raise Failed(negative(which, frame.unit), everywhere)
