"""How far a changed row reaches in a window: which rows of the partition it gives other results.

State law. Over a frame between two offsets, and with lag and lead, a change reaches the rows whose frames hold a
changed row, on both sides. Over a frame that begins with the partition, it reaches the rows from the first changed one
on, until what the function keeps is what it was; over a frame that ends with the partition, those before the last
changed one. Other functions see the whole partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions.aggregates import decompose
from halfjoin.sql.functions.window_functions import WINDOW_FUNCTIONS
from halfjoin.sql.relation import AggregateCall, Bound, Frame, WindowCall

# The result over a frame from the partition's first row, or to its last row, is a function of the results over the two
# parts of the frame.
_FOLDS = frozenset(("min", "max", "any_value", "first_value", "last_value"))
_MOST = 1 << 32  # rows or groups of peers; no partition has more, and sums of reaches stay small
_FIRST, _HERE, _LAST = Bound("preceding"), Bound("current row"), Bound("following")


@dataclass(frozen=True, slots=True)
class Reach:
    """What the results of a row depend on.

    They depend on as many rows `before` it and `after` it. `peers`: rows that tie in the order have results together,
    which depend on as many `groups` of peers before them and after them, and on what the frames `ranges` hold. `given`:
    expressions with numbers of the nearest rows before and after it in which they are not NULL. `running`: the results
    depend on those of the row before all these rows, too; `remaining`: of the row after them.

    >>> from halfjoin.sql.functions.window_functions import resolve_window
    >>> from halfjoin.sql.types import INTEGER
    >>> lag = resolve_window("lag", [Literal(7, INTEGER), Literal(2, INTEGER)], frame=Frame(), ordered=True)
    >>> reach_of(lag) == Reach(before=2)
    True
    >>> reach_of(resolve_window("rank", [], frame=Frame(), ordered=True)) == Reach(peers=True, running=True)
    True
    """

    before: int = 0
    after: int = 0
    peers: bool = False
    groups: tuple[int, int] = (0, 0)
    ranges: tuple[Frame, ...] = ()
    given: tuple[tuple[Expr, int, int], ...] = ()
    running: bool = False
    remaining: bool = False

    @staticmethod
    def all(parts: Iterable[Reach]) -> Reach:
        """The reach of several results of a row."""
        parts = [Reach(), *parts]
        before, after = (max(one.groups[side] for one in parts) for side in (0, 1))
        return Reach(max(one.before for one in parts), max(one.after for one in parts),
                     any(one.peers for one in parts), (before, after),
                     tuple(dict.fromkeys(frame for one in parts for frame in one.ranges)),
                     tuple(dict.fromkeys(some for one in parts for some in one.given)),
                     any(one.running for one in parts), any(one.remaining for one in parts))  # fmt: skip


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
    frame = call.frame
    if frame.start != _FIRST and frame.end != _LAST:
        return _of_frame(frame)
    if adds_up(call):
        return reach_from_end(frame)
    if call.function not in _FOLDS or frame.exclude != "no others":
        return None
    running, remaining = (one is not None for one in states_of(call))
    found = reach_from_end(frame)
    return None if found is None else replace(found, running=running, remaining=remaining)


def reach_from_end(frame: Frame) -> Reach | None:
    """The reach of results over a frame from the first row of the partition, or to its last one, that are made of those
    of two parts of the frame; None if it is the partition."""
    running, remaining = frame.start == _FIRST, frame.end == _LAST
    beside = Reach() if running and remaining else _of_frame(_beside(frame))
    return None if beside is None else replace(beside, running=running, remaining=remaining)


def adds_up(call: WindowCall) -> bool:
    """Whether it is a sum, or computed from sums, over the rows from the first one of the partition, or to the last."""
    frame = call.frame
    if call.function in WINDOW_FUNCTIONS or (frame.start == _FIRST) == (frame.end == _LAST):
        return False
    return frame.exclude == "no others" and decompose(as_aggregate(call)) is not None


def as_aggregate(call: WindowCall) -> AggregateCall:
    """The call without its frame."""
    return AggregateCall(call.function, call.args, call.type, condition=call.condition)


def plain(frame: Frame, *, ordered: bool) -> Frame:
    """The same frame in its plainest form: one of GROUPS without offsets is one of RANGE, and without an ORDER BY, all
    rows of the partition are peers of the current one."""
    if frame.unit == "rows" or frame.start.offset is not None or frame.end.offset is not None:
        return frame
    start, end = (frame.start, frame.end) if ordered else (_FIRST, _LAST)
    return replace(frame, unit="range", start=start, end=end)


def states_of(call: WindowCall) -> tuple[WindowCall | None, WindowCall | None]:
    """The calls whose results at the row before some rows, and at the row after them, tell what their results need to
    know of the rows that are not among them. None: they need nothing.
    """
    if call.function not in _FOLDS:
        return None, None
    before, after = (None if frame is None else replace(call, frame=frame) for frame in sides_of(call.frame))
    if before is not None and after is not None and not call.ignore_nulls:  # one end of the partition suffices
        before = None if call.function == "last_value" else before
        after = None if call.function == "first_value" else after
    return before, after


def sides_of(frame: Frame) -> tuple[Frame | None, Frame | None]:
    """The frame from the first row of a partition to the current one, and from there to the last row: as far as
    `frame` goes so far."""
    first, last = frame.start == _FIRST, frame.end == _LAST
    unit = frame.unit if frame.unit == "rows" else "range"
    unit = "rows" if first and last else unit
    return Frame(unit, _FIRST, _HERE) if first else None, Frame(unit, _HERE, _LAST) if last else None


def numbered_over(call: WindowCall) -> Frame | None:
    """The frame over which rows are counted if a call continues from a row only if the row's number is known, too: of
    copies of a row, only one is beside the rows that continue."""
    if call.function in ("row_number", "rank"):
        return Frame("rows", _FIRST, _HERE)
    before, after = sides_of(call.frame)
    return (before or after) if call.frame.unit == "rows" and adds_up(call) else None


def _shifted(call: WindowCall) -> Reach | None:
    """lag and lead, by a constant number of rows."""
    offset = call.args[1] if len(call.args) > 1 else None
    number = 1 if offset is None else _rows(offset)
    if number is None:
        return None
    number = -number if call.function == "lag" else number
    before, after = max(-number, 0), max(number, 0)
    return Reach(given=((call.args[0], before, after),)) if call.ignore_nulls else Reach(before, after)


def _beside(frame: Frame) -> Frame:
    """The rows between the current one and the bound that is not the end of the partition."""
    bound = frame.end if frame.start == _FIRST else frame.start
    return Frame(frame.unit, *((bound, _HERE) if bound.kind == "preceding" else (_HERE, bound)))


def _of_frame(frame: Frame) -> Reach | None:
    """A function of the rows of a frame, whatever it is."""
    if frame.unit == "range":
        start_at, end_at = _widened(frame.start, "preceding"), _widened(frame.end, "following")
        if start_at is None or end_at is None:
            return None
        ranges = () if start_at == end_at == _HERE else (Frame("range", start_at, end_at),)
        return Reach(peers=True, ranges=ranges)
    start, end = _place(frame.start), _place(frame.end)
    if start is None or end is None:
        return None
    before, after = max(-start, 0), max(end, 0)
    return Reach(before, after) if frame.unit == "rows" else Reach(peers=True, groups=(before, after))


def _widened(bound: Bound, outwards: str) -> Bound | None:
    """A bound of RANGE as far out or farther, which moves on with the sort key; None if there may be none.

    A bound that is months away does not always move on: of January 30, 12:00 and January 31, 10:00, the first one has
    the later bound a month behind, as both are on February 28. But no month is longer than 31 days.
    """
    if bound.kind == "current row":
        return bound
    if not isinstance(bound.offset, Literal):
        return None
    match bound.offset.value:
        case (int() as months, int() as days, int() as micros) if months:
            if min(months, days, micros) < 0:
                return None
            far = Literal((0, months * 31 + days, micros), bound.offset.type)
            return Bound(bound.kind, far) if bound.kind == outwards else _HERE
    return bound


def _place(bound: Bound) -> int | None:
    """The constant number of rows, or of groups of peers, from the current row to the bound."""
    if bound.kind == "current row":
        return 0
    number = None if bound.offset is None else _rows(bound.offset)
    return number if number is None or bound.kind == "following" else -number


def _rows(offset: Expr) -> int | None:
    """A constant number; None if it is computed, NULL or beyond all partitions."""
    number = offset.value if isinstance(offset, Literal) else None
    return number if isinstance(number, int) and abs(number) <= _MOST else None
