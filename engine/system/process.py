"""What belongs to the process that made it. A forked child has a copy of the memory, but not of what it stands for.

Locks on files are shared with the child for as long as it has them open, SQLite's are not, and threads stay behind. So
the child lets go of the locks without freeing them, never closes a journal, removes no file, and has no engine.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakSet

from halfjoin.errors import Conflict

_REMEDY = "open one in a process that is not forked: multiprocessing.get_context('spawn')"


class Owned(Protocol):
    """Something that the operating system, too, knows as this process's."""

    def disown(self) -> None:
        """Called in a forked child: let go of it, and leave the parent's alone."""


def is_this(process: int) -> bool:
    """Whether this is the process that made something."""
    return process == os.getpid()


def check_process(process: int) -> None:
    """Refuse what another process has made.

    Raises:
        Conflict: says which one did.
    """
    if not is_this(process):
        raise Conflict(f"an engine belongs to the process that opened it: process {process}, of which this one, "
                       f"{os.getpid()}, is a fork", remedy=_REMEDY)  # fmt: skip


_owned: WeakSet[Any] = WeakSet()
_inherited: set[str] = set()
_fork = False  # whether this process is one of a process that had loaded what writes Delta tables


def own(thing: Owned) -> None:
    """Have something disowned in children."""
    _owned.add(thing)


def release(thing: Owned) -> None:
    """It is closed."""
    _owned.discard(thing)


def leak(thing: object) -> None:
    """Never free something that must not be closed by this process, not even at its end."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def inherit(path: str) -> None:
    """A file was open when this process was forked: SQLite takes the parent's locks on it for its own."""
    _inherited.add(path)


def check_inherited(path: str) -> None:
    """Refuse to open a file that was open when this process was forked.

    Raises:
        Conflict: it was.
    """
    if path in _inherited:
        raise Conflict(f"{path} was open in the process of which this one is a fork, and cannot be opened here, not "
                       "even to read", remedy=_REMEDY)  # fmt: skip


def check_threads(work: Callable[[], object]) -> None:
    """Refuse to open a warehouse where what writes Delta tables has threads, and those stayed behind in a fork.

    Args:
        work: something for the threads to do.

    Raises:
        Conflict: it fails for that.
    """
    try:
        if _fork:
            work()
    except BaseException as problem:  # as Rust's panics are
        if isinstance(problem, Exception) or type(problem).__name__ != "PanicException":
            raise
        raise Conflict("Delta tables were used by the process of which this one is a fork, so it cannot use any",
                       remedy=_REMEDY) from problem  # fmt: skip


def _forked() -> None:
    global _fork
    _fork = "deltalake" in sys.modules
    for thing in list(_owned):
        thing.disown()
    _owned.clear()


os.register_at_fork(after_in_child=_forked)
