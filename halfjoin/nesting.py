"""How deep a statement may be nested: as deep as Python's recursion limit allows, whoever calls.

Parsing, binding and planning recurse over a statement. The caller's own frames must not count: a notebook, a web server
or a test runner has dozens of them, and a view that was made from a shallow stack has to open again from a deep one.
Each function under `bounded` may therefore use as many frames as the limit says, and more, beside those of its callers.
Most calls of Python functions take no stack of C, so a frame costs little. Where threads get a small stack, there are
no more frames than the limit says. What evaluates deep expressions later, or sends them to tasks, has `headroom`, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident, stack_size

from halfjoin.errors import UnsupportedSQL

_MORE = 2000  # frames; a call within a call takes about 28, most of them to parse it
_STACK = 1 << 20  # bytes of a thread; more frames may not fit into fewer


class _Headroom:
    """The recursion limit of the interpreter, raised while some thread needs it.

    `users` are the threads that do, each with the depth from which it does. An interrupt may come before one has left:
    what a thread did at the same depth or deeper is over when it comes again.
    """

    def __init__(self) -> None:
        self.lock, self.users, self.usual, self.raised = Lock(), set[tuple[int, int]](), 0, 0

    def take(self, thread: int, frames: int) -> None:
        """Raise the limit by the frames of a caller."""
        with self.lock:
            now = sys.getrecursionlimit()
            if now != self.raised:  # it is not left over from an interrupted call
                self.usual = now
            self._forget(thread, frames)
            self.users.add((thread, frames))
            more = 0 if 0 < stack_size() < _STACK else _MORE
            self.raised = max(now, self.usual + frames + more)
            sys.setrecursionlimit(self.raised)

    def leave(self, thread: int, frames: int) -> None:
        """Lower the limit again after the last user."""
        with self.lock:
            self._forget(thread, frames)
            if not self.users and sys.getrecursionlimit() == self.raised:  # else the user has set another one
                sys.setrecursionlimit(self.usual)

    def _forget(self, thread: int, frames: int) -> None:
        self.users = {one for one in self.users if one[0] != thread or one[1] < frames}


_headroom = _Headroom()


def _forked() -> None:
    global _headroom  # another thread of the parent may hold its lock
    _headroom = _Headroom()


os.register_at_fork(after_in_child=_forked)


@contextmanager
def headroom() -> Iterator[None]:
    """Let the `with` block use as many frames as the limit says, and more, beside those of its callers."""
    room, thread, frames = _headroom, get_ident(), _depth()
    try:
        room.take(thread, frames)
        yield
    finally:
        room.leave(thread, frames)  # perhaps in another thread, which ends a task


@contextmanager
def bounded() -> Iterator[None]:
    """Give the `with` block headroom, and turn its RecursionError into UnsupportedSQL: the statement is too deep."""
    try:
        with headroom():
            yield
    except RecursionError:
        raise UnsupportedSQL("the statement is nested too deep", remedy="make a part of it a view of its own") from None


def _depth() -> int:
    """How many frames are on the stack."""
    frame, depth = sys._getframe().f_back, 1
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth
