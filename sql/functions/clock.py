"""The moment at which the texts `now`, `today`, `tomorrow` and `yesterday` are read: that of the query or statement.

A view has no such moment, so there these texts are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_READ_AT: ContextVar[datetime | None] = ContextVar("the moment at which texts are read", default=None)


def read_at() -> datetime | None:
    """The moment, in UTC; None outside of what is bound `at_one_moment`."""
    return _READ_AT.get()


def moment() -> str:
    """What now() returns, as ISO text: the same moment."""
    return (read_at() or datetime.now(UTC)).isoformat(" ")


def at_one_moment(bind: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function that binds a query or statement; all that it reads has the moment of its call."""

    @wraps(bind)
    def bound(*args: _P.args, **named: _P.kwargs) -> _R:
        token = _READ_AT.set(datetime.now(UTC))
        try:
            return bind(*args, **named)
        finally:
            _READ_AT.reset(token)

    return bound
