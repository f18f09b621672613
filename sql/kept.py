"""Keeps what functions answer about expressions, if these are small.

Statements come with ever-new constants, and a constant may be a document. A cache of thousands of entries would keep
each of them: a server that updates texts of 100 KB would have gigabytes of them, which no memory budget counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Generic, TypeVar, cast

from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal, Now, walk

MOST_NODES, MOST_LENGTH = 250, 1000  # of an expression that is kept: its nodes, and the length of its constants
_EXPRS = (Column, Literal, Call, Cast, Now)
R = TypeVar("R")


class KeptIfSmall(Generic[R]):
    """`lru_cache(most)` of a function of expressions, or of sets of them. About others it is asked anew."""

    def __init__(self, function: Callable[..., R], most: int) -> None:
        self._function, self._cached = function, lru_cache(maxsize=most)(function)
        self.cache_info = self._cached.cache_info
        update_wrapper(self, function)

    def __call__(self, *args: object) -> R:
        """The function's answer, kept or not."""
        return (self._cached if all(map(_is_small, args)) else self._function)(*args)


def kept_if_small(most: int) -> Callable[[Callable[..., R]], KeptIfSmall[R]]:
    """The decorator."""
    return lambda function: KeptIfSmall(function, most)


def is_small(expr: Expr) -> bool:
    """Whether an expression takes little memory."""
    if isinstance(expr, Column):  # as most that the planner asks about
        return True
    length = 0
    for number, node in enumerate(walk(expr)):
        if isinstance(node, Literal):
            length += _length(node.value)
        if number >= MOST_NODES or length > MOST_LENGTH:
            return False
    return True


def _is_small(argument: object) -> bool:
    if isinstance(argument, _EXPRS):
        return is_small(argument)
    return all(map(_is_small, argument)) if isinstance(argument, frozenset) else True


def _length(value: object) -> int:
    """The characters or bytes of a constant, about. Its class is not asked: it may be one that cannot be looked at."""
    kind = type(value)
    if issubclass(kind, str | bytes):
        return len(cast("str", value))
    if not issubclass(kind, list | tuple):
        return 0
    items = cast("list[object]", value)
    return len(items) if len(items) > MOST_LENGTH else sum(1 + _length(item) for item in items)
