"""The source of the grammars' choices: hypothesis (which shrinks) or a seeded generator (for long runs)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices(Protocol):
    """The only two questions that a grammar asks. The first answers are simple, so that shrinking reaches them."""

    def integer(self, low: int, high: int) -> int:
        """A number of low..high."""

    def one_of(self, options: Sequence[T]) -> T:
        """One of the options; repeat an option to make it likelier."""


class Drawn:
    """Choices that hypothesis makes."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """A number of low..high."""
        return int(self._draw(st.integers(low, high)))

    def one_of(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.integer(0, len(options) - 1)]


class Seeded:
    """Choices of a seeded generator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """A number of low..high."""
        return self._random.randint(low, high)

    def one_of(self, options: Sequence[T]) -> T:
        """One of the options."""
        return self._random.choice(options)


def chance(choices: Choices, percent: int) -> bool:
    """True in about `percent` of 100; the simple answer is False."""
    return choices.integer(0, 99) >= 100 - percent
