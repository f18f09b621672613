"""How far a changed row reaches in a window: which rows of the partition it gives other results.

State law. Over a frame of some ROWS, and with lag and lead, a change reaches the rows whose frames hold a changed row,
on both sides. Over a frame that begins with the partition, it reaches the rows from the first changed one on, until
what the function keeps is what it was. Other functions see the whole partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.aggregates import decompose
from halfjoin.sql.functions.window_functions import WINDOW_FUNCTIONS
from halfjoin.sql.relation import AggregateCall, Bound, Frame, WindowCall

# Over a frame from the first row of the partition to the current one, the result is a function of the result of the row
# before and of this row (and its peers).
_FOLDS = frozenset(("min", "max", "any_value", "first_value", "last_value"))
_MOST = 1 << 32  # rows; no partition has more, and sums of reaches stay small
_START, _END = Bound("preceding"), Bound("current row")


@dataclass(frozen=True, slots=True)
class Reach:
    """What the results of a row depend on.

    They depend on as many rows `before` it and `after` it. `peers`: rows that tie in the order have results together.
    `running`: they depend on the results of the row before (with `peers`, of the last row before the peers), too.

    >>> from halfjoin.sql.functions.window_functions import resolve_window
    >>> from halfjoin.sql.types import INTEGER
    >>> reach_of(resolve_window("lag", [Literal(7, INTEGER), Literal(2, INTEGER)], frame=Frame(), ordered=True))
    Reach(before=2, after=0, peers=False, running=False)
    >>> reach_of(resolve_window("rank", [], frame=Frame(), ordered=True))
    Reach(before=0, after=0, peers=True, running=True)
    """

    before: int = 0
    after: int = 0
    peers: bool = False
    running: bool = False

    @staticmethod
    def all(parts: Iterable[Reach]) -> Reach:
        """The reach of several results of a row."""
        parts = list(parts)
        return Reach(max((one.before for one in parts), default=0), max((one.after for one in parts), default=0),
                     any(one.peers for one in parts), any(one.running for one in parts))  # fmt: skip


def reach_of_all(calls: Iterable[WindowCall], *, ordered: bool) -> Reach | None:
    """The reach of several calls over one window, with an ORDER BY or not; None if it is the partition."""
    found = [reach_of(call) for call in calls]
    reach = Reach.all(one for one in found if one is not None)
    return None if None in found or (reach.peers and not ordered) else reach


def reach_of(call: WindowCall) -> Reach | None:
    """The reach of a call over an ordered window; None if it is the partition."""
    match call.function:
        case "row_number":
            return Reach(running=True)
        case "rank" | "dense_rank":
            return Reach(peers=True, running=True)
        case "lag" | "lead":
            return _shifted(call)
        case "percent_rank" | "cume_dist" | "ntile":
            return None
    if adds_up(call) or (call.function in _FOLDS and _runs(call.frame)):
        return Reach(peers=call.frame.unit != "rows", running=True)
    return _of_frame(call.frame)


def adds_up(call: WindowCall) -> bool:
    """Whether it is a sum, or computed from sums, over the rows from the first one of the partition."""
    if call.function in WINDOW_FUNCTIONS or not _runs(call.frame):
        return False
    return decompose(as_aggregate(call)) is not None


def as_aggregate(call: WindowCall) -> AggregateCall:
    """The call without its frame."""
    return AggregateCall(call.function, call.args, call.type, condition=call.condition)


def needs_number(call: WindowCall) -> bool:
    """Whether a call continues from a row only if the row's number is kept, too."""
    return call.function in ("row_number", "rank") or (call.frame.unit == "rows" and adds_up(call))


def _runs(frame: Frame) -> bool:
    return (frame.start, frame.end, frame.exclude) == (_START, _END, "no others")


def _shifted(call: WindowCall) -> Reach | None:
    """lag and lead, by a constant number of rows."""
    offset = call.args[1] if len(call.args) > 1 else None
    number = 1 if offset is None else _rows(offset)
    if call.ignore_nulls or number is None:
        return None
    number = -number if call.function == "lag" else number
    return Reach(max(-number, 0), max(number, 0))


def _of_frame(frame: Frame) -> Reach | None:
    """A function of the rows of a frame, whatever it is."""
    if frame.unit != "rows":
        return Reach(peers=True) if frame.start == frame.end == _END and frame.exclude == "no others" else None
    start, end = _place(frame.start), _place(frame.end)
    return None if start is None or end is None else Reach(max(-start, 0), max(end, 0))


def _place(bound: Bound) -> int | None:
    """The constant number of rows from the current row to the bound."""
    if bound.kind == "current row":
        return 0
    number = None if bound.offset is None else _rows(bound.offset)
    return number if number is None or bound.kind == "following" else -number


def _rows(offset: Expr) -> int | None:
    """A constant number of rows; None if it is computed, NULL or beyond all partitions."""
    number = offset.value if isinstance(offset, Literal) else None
    return number if isinstance(number, int) and abs(number) <= _MOST else None
