"""Starts threads while no call is interrupted from outside.

A server interrupts a call by an exception that it raises in the call's thread. Up to Python 3.11, a thread that is
being started has the number of the one that starts it until it runs: it would get the exception and end at once, and
whoever starts it would wait for it for ever.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import RLock, Thread

_starting = RLock()
os.register_at_fork(after_in_child=_starting._at_fork_reinit)  # type: ignore[attr-defined]


def start(thread: Thread) -> None:
    """Start a thread. As `Thread.start`."""
    with _starting:
        thread.start()


def unless_starting(work: Callable[[], object]) -> bool:
    """Call it, but not while another thread starts one. Returns whether it was called."""
    if not _starting.acquire(blocking=False):
        return False
    try:
        work()
    finally:
        _starting.release()
    return True
