"""The clock of a warehouse, which says what times mean: `wall`, milliseconds since 1970, now by default; or `own`.

The first batch sets the clock, and the warehouse keeps it: `own` if the batch gives a time, otherwise `wall`, unless
`Engine(clock=...)` chooses. A wall clock also accepts given times. With an own clock a batch, statement or `advance`
without a time is refused, because the present would close all the times that the user still needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

from halfjoin.engine.intake.times import now
from halfjoin.errors import Conflict, HalfjoinError, InvalidTime

Clock: TypeAlias = Literal["wall", "own"]

YEAR = 31_622_400_000  # 366 days in milliseconds: a batch that jumps further, and past all history, is refused
CLOSINGS = 1000  # how many closings are remembered, to tell who closed a time


class Times(NamedTuple):
    """The times of a batch: of rows without their own, `upper` after the batch, and the clock that it sets."""

    time: int
    upper: int
    clock: Clock | None


@dataclass(frozen=True, slots=True)
class Closing:
    """Who closed the times in `[low, upper)`: the batch's id (None: it had none), and when it came, in ms."""

    low: int
    upper: int
    submitted: int
    batch: str | None

    def __str__(self) -> str:
        name = "a batch" if self.batch is None else f"batch {self.batch!r}"
        return f"{name} submitted at {_timestamp(self.submitted)} closed {self.low} to {self.upper - 1}"


def closing_of(closings: Iterable[Closing], time: int) -> Closing | None:
    """The closing that closed a time, None if it is not among them."""
    return next((one for one in closings if one.low <= time < one.upper), None)


def check(clock: object) -> None:
    """Refuse a value that is not a clock."""
    if clock not in (None, "wall", "own"):
        raise HalfjoinError(f"clock={clock!r} is not a clock",
                            remedy="'wall': times are milliseconds since 1970 and default to "
                            "now; 'own': they are yours, without a default")  # fmt: skip


def opened(kept: str, said: Clock | None, upper: int) -> Clock | None:
    """The clock of a warehouse that is being opened; None: the first batch sets it.

    `kept` is empty in a new warehouse, and in one written before clocks were kept. An old one gets the wall clock if
    its `upper` is within a year of now, otherwise an own clock; `said` overrides that.

    Raises:
        Conflict: the warehouse has another clock.
    """
    if kept and said not in (None, kept):
        raise Conflict(f"the warehouse has clock={kept!r}, set by its first batch, but Engine was called with "
                       f"clock={said!r}", remedy="leave clock out, or make a new warehouse")  # fmt: skip
    known: dict[str, Clock] = {"wall": "wall", "own": "own"}
    if kept or said is not None or upper <= 0:
        return known.get(kept, said)
    return "wall" if abs(upper - now()) <= YEAR else "own"


def present(clock: Clock | None, upper: int) -> int:
    """The time of rows that come without one. An own clock has no such time; `upper` takes its place."""
    return upper if clock == "own" else max(upper, now())


BATCH_NEEDS = "say time=..., give rows a __time, or write SET TIME = ... before the statement"


def settled(clock: Clock | None, *, given: bool, instead: str = BATCH_NEEDS) -> Clock:
    """The clock after a batch; `given` says whether the batch gave a time.

    Raises:
        InvalidTime: the batch gave no time, and the clock is `own`.
    """
    if clock == "own" and not given:
        raise InvalidTime(
            "no time was given, and this warehouse has its own times (clock='own'), which do not default to now",
            remedy=f"{instead}; for times that default to now make a new warehouse with Engine(..., clock='wall')",
        )
    return clock or ("own" if given else "wall")


def check_jump(clock: Clock, upper: int, retain: int, last: int) -> None:
    """Refuse to close so many times at once that no history is left, unless nothing was closed before.

    Raises:
        InvalidTime: it says what would be lost, and how to confirm.
    """
    base = max(upper, now()) if clock == "wall" else upper
    if upper > 0 and last - base > max(retain, YEAR):
        raise InvalidTime(
            f"time {shown(last, clock)} lies {last - base} after {shown(base, clock)}, where the times are now. "
            f"Closing it would end all history, which is kept for {retain}, and refuse every batch below it from then "
            "on", remedy=f"if that is meant, say so first: engine.advance(to={last})", time=last, upper=upper,
        )  # fmt: skip


def closed(time: str, at: int, upper: int, clock: Clock | None, closing: Closing | None, remedy: str) -> InvalidTime:
    """The error for a closed time: `time` in words, `at` its value, who closed it, and the remedy."""
    since = shown(at, clock).removeprefix(str(at))
    who = "" if closing is None else f" ({closing})"
    return InvalidTime(f"{time}{since} is closed: times below upper = {shown(upper, clock)} never change again{who}",
                       remedy=remedy, time=at, upper=upper)  # fmt: skip


def shown(time: int, clock: Clock | None) -> str:
    """A time for people: a number, and with the wall clock also a timestamp."""
    text = _timestamp(time) if clock == "wall" else ""
    return f"{time} ({text})" if text else str(time)


def _timestamp(milliseconds: int) -> str:
    try:
        return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return ""
