"""Values: objects of many fields that never change, and that a batch makes by the hundred."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def value(made: type[T]) -> type[T]:
    """A dataclass whose fields nobody assigns: the type checker refuses it, as of a frozen one.

    A frozen dataclass also refuses it at run time, and takes four times as long to make. Objects are equal only to
    themselves: their arrays have no truth value.

    >>> @value
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1)
    (Point(x=1, y=0), False)
    """
    return dataclass(slots=True, weakref_slot=True, eq=False)(made)
