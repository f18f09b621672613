"""The moment at which the texts `now`, `today`, `tomorrow` and `yesterday` are read: that of the query or statement.

A view has no such moment, so there these texts are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import ParamSpec, TypeVar

from halfjoin.sql.functions.drawn import drawn

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(slots=True)
class _Moment:
    at: datetime
    told: bool = False  # whether a text has been read that depends on it


_READ_AT: ContextVar[_Moment | None] = ContextVar("the moment at which texts are read", default=None)


def may_read() -> bool:
    """Whether there is a moment: inside of what is bound `at_one_moment`."""
    return _READ_AT.get() is not None


def read_at() -> datetime | None:
    """The moment, in UTC, for a text that depends on it; None if there is none."""
    now = _READ_AT.get()
    if now is None:
        return None
    now.told = True
    return now.at


def was_read() -> bool:
    """Whether a text that depends on the moment has been read: at another moment it means something else."""
    now = _READ_AT.get()
    return now is not None and now.told


def moment() -> str:
    """What now() returns, as ISO text: the same moment."""
    now = _READ_AT.get()
    return (_now() if now is None else now.at).isoformat(" ")


def _now() -> datetime:
    return drawn(0, lambda: datetime.now(UTC))


def at_one_moment(bind: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that binds a query or statement; all that it reads has the moment of its call."""

    @wraps(bind)
    def bound(*args: _P.args, **named: _P.kwargs) -> _R:
        token = _READ_AT.set(_Moment(_now()))
        try:
            return bind(*args, **named)
        finally:
            _READ_AT.reset(token)

    return bound
