"""What a definition draws when it is made: the clock, and random values. Made again, it draws the same.

A definition in a transaction is made in a copy of the state, which the later statements see, and again at COMMIT. What
these statements have done to its rows fits only if the rows have the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

_T = TypeVar("_T")


class Drawn:
    """The values that were drawn, in order, each with the number of rows that it was drawn for."""

    def __init__(self) -> None:
        self._values: list[tuple[int, Any]] = []
        self._next = 0

    @contextmanager
    def again(self) -> Iterator[None]:
        """Draw the values that were drawn before within the `with` block. From where it asks for others, draw anew."""
        self._next, token = 0, _DRAWN.set(self)
        try:
            yield
        finally:
            _DRAWN.reset(token)

    def draw(self, rows: int, make: Callable[[], _T]) -> _T:
        """The next value, for so many rows."""
        place = self._next
        if self._values[place : place + 1] and self._values[place][0] != rows:
            del self._values[place:]
        if place == len(self._values):
            self._values.append((rows, make()))
        self._next += 1
        value: _T = self._values[place][1]
        return value


_DRAWN: ContextVar[Drawn | None] = ContextVar("what a definition draws", default=None)


def drawn(rows: int, make: Callable[[], _T]) -> _T:
    """A value of chance or of the clock, for so many rows: a new one, or that of the definition that is made again."""
    definition = _DRAWN.get()
    return make() if definition is None else definition.draw(rows, make)
