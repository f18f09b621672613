"""A dict that counts its changes, so that what is derived from it knows when to be derived anew."""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Counted(dict[K, V]):
    """A dict whose `changes` grow with each call that may change it.

    >>> numbers = Counted({"one": 1})
    >>> before = numbers.changes
    >>> numbers["two"] = 2
    >>> numbers.changes > before, numbers
    (True, {'one': 1, 'two': 2})
    """

    changes = 0

    def __setitem__(self, key: K, value: V) -> None:
        self.changes += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        self.changes += 1
        super().__delitem__(key)

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]  # that of a dict is narrower, too
        self.changes += 1
        return super().__ior__(other)

    def clear(self) -> None:  # noqa: D102
        self.changes += 1
        super().clear()

    def pop(self, *given: Any) -> Any:  # noqa: D102
        self.changes += 1
        return super().pop(*given)

    def popitem(self) -> tuple[K, V]:  # noqa: D102
        self.changes += 1
        return super().popitem()

    def setdefault(self, *given: Any) -> Any:  # noqa: D102
        self.changes += 1
        return super().setdefault(*given)

    def update(self, *given: Any, **named: Any) -> None:  # noqa: D102
        self.changes += 1
        super().update(*given, **named)
