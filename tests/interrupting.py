"""Exceptions at any line: a call is run again and again, ended at its first line in the engine, its second, its third."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import halfjoin

# The package's rooms: where lines are counted. What is in libraries is one step.
_ROOMS = tuple(str(Path(folder).resolve()) for folder in halfjoin.__path__)


class Ender:
    """Runs calls, and ends them before a line of the engine is carried out."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error
        self._left: float = 0
        self.count = 0
        self.where = ""

    def run(self, call: Callable[[], Any], at: float = float("inf")) -> Any:
        """The call's answer, unless it has a line number `at`: before that line the error is raised."""
        self.count, self._left = 0, at
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            return call()
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if _ours(frame.f_code.co_filename) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.count += 1
            if self.count == self._left:
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                raise self._error(f"before line {self.count}, {self.where}")
        return self._line


_KNOWN: dict[str, bool] = {}


def _ours(file: str) -> bool:
    found = _KNOWN.get(file)
    if found is None:
        found = _KNOWN[file] = str(Path(file).resolve()).startswith(_ROOMS)
    return found


def sampled(count: int, most: int) -> Iterator[int]:
    """Numbers from 1 to `count`, the last ones all, as that is where what is kept is published."""
    step = max(1, count // most)
    yield from range(1, count + 1, step)
