"""What the times of a warehouse are: `wall`, milliseconds since 1970 that default to now, or the user's `own`.

The first batch settles it, and the warehouse keeps it: a time that nobody gave makes the clock `wall`, one that was
given `own`, unless `Engine(clock=...)` says which. A wall clock takes given times, too; with an own clock a batch,
statement or `advance` without a time is refused, since the present would close all times that the user has left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

from halfjoin.engine.intake.times import now
from halfjoin.errors import Conflict, HalfjoinError, InvalidTime

Clock: TypeAlias = Literal["wall", "own"]

YEAR = 31_622_400_000  # 366 days in milliseconds: further than that, or than all history, nobody jumps unsaid
CLOSINGS = 1000  # that are remembered, to say who closed a time


class Times(NamedTuple):
    """Of a batch: the time of rows without their own, what is closed after it, and the clock that it settles."""

    time: int
    upper: int
    clock: Clock | None


@dataclass(frozen=True, slots=True)
class Closing:
    """Who closed the times from `low` to below `upper`: the batch's id (None: it had none), and when it came, in ms."""

    low: int
    upper: int
    submitted: int
    batch: str | None

    def __str__(self) -> str:
        name = "a batch" if self.batch is None else f"batch {self.batch!r}"
        return f"{name} submitted at {_timestamp(self.submitted)} closed {self.low} to {self.upper - 1}"


def closing_of(closings: Iterable[Closing], time: int) -> Closing | None:
    """The one that closed a time, if it is among them."""
    return next((one for one in closings if one.low <= time < one.upper), None)


def check(clock: object) -> None:
    """Refuse what is no clock."""
    if clock not in (None, "wall", "own"):
        raise HalfjoinError(f"clock={clock!r} is not a clock",
                            remedy="'wall': times are milliseconds since 1970 and default to "
                            "now; 'own': they are yours, and never defaulted")  # fmt: skip


def opened(kept: str, said: Clock | None, upper: int) -> Clock | None:
    """The clock of a warehouse that is opened; None: the first batch settles it.

    `kept` is empty in a new warehouse, and in one that was written before clocks were kept. Such a one went by the
    wall if its last batch was within a year of now; whoever knows better says so.

    Raises:
        Conflict: another clock is kept.
    """
    if kept and said not in (None, kept):
        raise Conflict(f"the warehouse has clock={kept!r}, settled by its first batch, and clock={said!r} was asked "
                       "for", remedy="leave clock out, or make a new warehouse")  # fmt: skip
    known: dict[str, Clock] = {"wall": "wall", "own": "own"}
    if kept or said is not None or upper <= 0:
        return known.get(kept, said)
    return "wall" if abs(upper - now()) <= YEAR else "own"


def present(clock: Clock | None, upper: int) -> int:
    """The time of rows that come without one; with an own clock there is none, and `upper` stands for it."""
    return upper if clock == "own" else max(upper, now())


BATCH_NEEDS = "say time=..., give rows a __time, or write SET TIME = ... before the statement"


def settled(clock: Clock | None, *, given: bool, instead: str = BATCH_NEEDS) -> Clock:
    """The clock after a batch with a time that was given or not.

    Raises:
        InvalidTime: none was given, and the clock is the user's own.
    """
    if clock == "own" and not given:
        raise InvalidTime(
            "no time was given, and the times of this warehouse are its own (clock='own'), so now is none of them",
            remedy=f"{instead}; for times that default to now make a new warehouse with Engine(..., clock='wall')",
        )
    return clock or ("own" if given else "wall")


def check_jump(clock: Clock, upper: int, retain: int, last: int) -> None:
    """Refuse to close so many times at once that all history goes, unless nothing was closed before.

    Raises:
        InvalidTime: with what would be lost, and how to say that it is meant.
    """
    base = max(upper, now()) if clock == "wall" else upper
    if upper > 0 and last - base > max(retain, YEAR):
        raise InvalidTime(
            f"time {shown(last, clock)} lies {last - base} after {shown(base, clock)}, where the times are now. "
            f"Closing it would end all history, which is kept for {retain}, and refuse every batch below it from then "
            "on", remedy=f"if that is meant, say so first: engine.advance(to={last})", time=last, upper=upper,
        )  # fmt: skip


def closed(time: str, at: int, upper: int, clock: Clock | None, closing: Closing | None, remedy: str) -> InvalidTime:
    """The error of a closed time: `time` in words, `at` its value, who closed it, and what to do about it."""
    since = shown(at, clock).removeprefix(str(at))
    who = "" if closing is None else f" ({closing})"
    return InvalidTime(f"{time}{since} is closed: times below upper = {shown(upper, clock)} never change again{who}",
                       remedy=remedy, time=at, upper=upper)  # fmt: skip


def shown(time: int, clock: Clock | None) -> str:
    """A time for people: a number, by the wall clock a timestamp, too."""
    text = _timestamp(time) if clock == "wall" else ""
    return f"{time} ({text})" if text else str(time)


def _timestamp(milliseconds: int) -> str:
    try:
        return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return ""
