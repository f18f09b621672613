"""Remembers what was derived from an immutable object, such as a table's definition, for as long as it is in use."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

M = TypeVar("M")
T = TypeVar("T")
_MOST = 1024  # objects of one function


def by_identity(derive: Callable[[M], T]) -> Callable[[M], T]:
    """Make a function of one immutable object remember its results.

    Objects are told apart by identity: comparing or hashing a definition costs more than most that is derived from it.
    An equal object is asked anew. The results keep their objects alive, so no identity comes a second time.
    """
    found: dict[int, tuple[M, T]] = {}

    @wraps(derive)
    def remembered(one: M) -> T:
        known: Any = found.get(id(one))
        if known is None:
            if len(found) >= _MOST:
                found.clear()
            known = found[id(one)] = one, derive(one)
        result: T = known[1]
        return result

    return remembered
