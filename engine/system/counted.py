"""A dict that counts its changes, so that what is derived from it knows when to be derived anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Count before and after: what another thread derives in between, or what an interrupt leaves, is out of date
        too."""
        self.changes += 1
        try:
            yield
        finally:
            self.changes += 1

    def __setitem__(self, key: K, value: V) -> None:
        with self._changing():
            super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        with self._changing():
            super().__delitem__(key)

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]  # that of a dict is narrower, too
        with self._changing():
            return super().__ior__(other)

    def clear(self) -> None:  # noqa: D102
        with self._changing():
            super().clear()

    def pop(self, *given: Any) -> Any:  # noqa: D102
        with self._changing():
            return super().pop(*given)

    def popitem(self) -> tuple[K, V]:  # noqa: D102
        with self._changing():
            return super().popitem()

    def setdefault(self, *given: Any) -> Any:  # noqa: D102
        with self._changing():
            return super().setdefault(*given)

    def update(self, *given: Any, **named: Any) -> None:  # noqa: D102
        with self._changing():
            super().update(*given, **named)
