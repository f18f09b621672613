"""Guards files, locks and threads against forks. A forked child copies the memory, but does not own what it refers to.

The child shares the locks on files as long as it has them open. It does not get SQLite's locks, and it does not get
the threads. So the child drops the locks without freeing them. It never closes a journal, never removes a file, and
cannot use an engine of its parent.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakSet

from halfjoin.engine.system.panics import is_panic
from halfjoin.errors import Conflict

_REMEDY = "open one in a process that is not forked: multiprocessing.get_context('spawn')"


class Owned(Protocol):
    """Something that the operating system ties to this process, such as a file lock."""

    def disown(self) -> None:
        """Forget it, and leave the parent's alone. `own` calls this in a forked child."""


def is_this(process: int) -> bool:
    """Whether `process` is the id of this process."""
    return process == os.getpid()


def check_process(process: int) -> None:
    """Refuse an engine that another process made. `process` is the id of the process that made it.

    Raises:
        Conflict: this process did not make it.
    """
    if not is_this(process):
        raise Conflict(f"an engine belongs to the process that opened it: process {process}; this process, "
                       f"{os.getpid()}, is a fork of it", remedy=_REMEDY)  # fmt: skip


_owned: WeakSet[Any] = WeakSet()
_inherited: set[str] = set()
_fork = False  # whether this process is a fork of a process that had loaded deltalake


def own(thing: Owned) -> None:
    """Register something that forked children disown."""
    _owned.add(thing)


def release(thing: Owned) -> None:
    """Unregister something that is now closed."""
    _owned.discard(thing)


def leak(thing: object) -> None:
    """Never free something that this process must not close, not even at its end."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def inherit(path: str) -> None:
    """Record that a file was open at the fork: SQLite would take the parent's locks on it for this process's own."""
    _inherited.add(path)


def check_inherited(path: str) -> None:
    """Refuse to open a file that was open when this process was forked.

    Raises:
        Conflict: the file was open at the fork.
    """
    if path in _inherited:
        raise Conflict(f"{path} was open when this process was forked, so this process cannot open it, not "
                       "even to read", remedy=_REMEDY)  # fmt: skip


def check_threads(work: Callable[[], object]) -> None:
    """Refuse to open a warehouse in a fork that has lost deltalake's threads.

    Args:
        work: a call that needs the threads.

    Raises:
        Conflict: `work` failed because the threads are missing.
    """
    try:
        if _fork:
            work()
    except BaseException as problem:  # a Rust panic is not an Exception
        if not is_panic(problem):
            raise
        raise Conflict("this process is a fork of a process that used Delta tables, so it cannot use Delta tables",
                       remedy=_REMEDY) from problem  # fmt: skip


def _forked() -> None:
    global _fork
    _fork = "deltalake" in sys.modules
    for thing in list(_owned):
        thing.disown()
    _owned.clear()


os.register_at_fork(after_in_child=_forked)
