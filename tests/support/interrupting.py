"""End a call by an exception at any line: repeat it, and end it before its first line, its second, its third, ..."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import halfjoin as hj
from halfjoin import catalog, engine, planner, sql
from tests.support.seeds import ONE_IN, some

POINTS = int(os.environ.get("HALFJOIN_CRASHES") or some(12))  # of a call at which it is ended, about
ALL = 1000  # points, or more: every line
KINDS = (KeyboardInterrupt, MemoryError)
_ROOMS = tuple(f"{Path(folder).resolve()}{os.sep}" for room in (hj, catalog, engine, planner, sql)
               for folder in room.__path__)  # fmt: skip  # what is in libraries is one step
_LATE = 60  # lines at the end, some of which are always among the points: there is what is kept, and published
_LATE_STEP = 7 * ONE_IN or 20


class Ender:
    """Runs calls, and ends them before a line of the engine."""

    def __init__(self, kind: type[BaseException]) -> None:
        self._kind = kind
        self._at = 0
        self._lines = 0
        self.where = "nowhere"

    def points(self, call: Callable[[], Any]) -> list[int]:
        """The lines of a call at which to end it. Runs the call once to count its lines."""
        self._run(call, 0)
        lines, every = self._lines, POINTS >= ALL
        step = 1 if every else max(1, lines // POINTS)
        late = range(max(1, lines - _LATE), lines + 1, 1 if every else _LATE_STEP)
        return sorted({*range(1, lines + 1, step), *late})

    def ends(self, call: Callable[[], Any], at: int) -> bool:
        """Run the call, and end it after `at` lines. Returns whether it has so many lines."""
        with suppress(self._kind, hj.HalfjoinError):
            self._run(call, at)
        return self._lines >= at

    def _run(self, call: Callable[[], Any], at: int) -> None:
        self._lines, self._at, before = 0, at, sys.gettrace()
        self._last: dict[int, int] = {}  # the last line of each frame
        sys.settrace(self._enter)
        try:
            call()
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not _ours(code.co_filename):
            return None
        return self._line_or_with if _has_with(code) else self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._lines += 1
            if self._lines == self._at:
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                raise self._kind(f"before line {self._lines}, {self.where}")
        return self._line

    def _line_or_with(self, frame: FrameType, event: str, argument: Any) -> Any:
        """A line of a function with a `with` statement."""
        if event == "line":
            above, self._last[id(frame)] = self._last.get(id(frame), 0) > frame.f_lineno, frame.f_lineno
            if not (above and _leaves_with(frame)):
                self._line(frame, event, argument)
        return self._line_or_with


@cache
def _has_with(code: CodeType) -> bool:
    return any(_is_with(code.co_filename, line) for _, _, line in code.co_lines() if line is not None)


def _leaves_with(frame: FrameType) -> bool:
    """Whether a `with` statement, at whose line the frame is again, ends. No signal is handled between the end of its
    body and its `__exit__`, so no interrupt can come there."""
    return _is_with(frame.f_code.co_filename, frame.f_lineno)


def _is_with(file: str, line: int) -> bool:
    return linecache.getline(file, line).lstrip().startswith("with ")


@cache
def _ours(file: str) -> bool:
    return str(Path(file).resolve()).startswith(_ROOMS)
