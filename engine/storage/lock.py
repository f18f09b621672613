"""Allow one writer at a time: a lock on the warehouse that ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import gc
import os
import socket
import sys
from contextlib import suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from types import FrameType

from halfjoin.engine.storage.ownership import LOCK
from halfjoin.engine.system.process import own, release
from halfjoin.errors import Conflict, StorageError


class Lock:
    """An exclusive lock on a warehouse folder.

    The operating system releases it when the process is gone, so a crash leaves nothing to clean up. It also ends when
    nobody has this object any more, as after an interrupt just before the caller got the engine: nobody could close
    that. So a thread that writes has the object, too. The file's text says who holds the lock. Only the error message
    uses it.

    Raises:
        Conflict: somebody else holds the lock.
        StorageError: the file cannot be created.
    """

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / LOCK)
        try:
            self._file = FileIO(self._path, "a+")  # closed by `release`, or when nobody has it any more
            self._held = os.fstat(self._file.fileno())
        except OSError as problem:
            raise StorageError(f"cannot lock the warehouse {folder}: {problem}", path=str(folder)) from problem
        try:
            self._take(folder)
        except BaseException:  # an interrupt, too
            self.release()
            raise

    def _take(self, folder: Path) -> None:
        this = f"process {os.getpid()} on {socket.gethostname()} "
        if not self._try(folder):
            holder = os.pread(self._file.fileno(), 500, 0).decode(errors="replace").strip() or "another process"
            if ours := holder.startswith(this):
                gc.collect()  # perhaps nobody has the engine that holds it
                holder = f"this very process: {holder}"
            if not ours or not self._try(folder):
                raise Conflict(
                    f"the warehouse {folder} is being written by {holder}", name=str(folder), holder=holder,
                    remedy="close that engine first, "
                    "or read beside it with Engine(..., read_only=True)"
                )  # fmt: skip
        since = datetime.now(UTC).isoformat(" ", "seconds")
        with suppress(OSError):  # on a full disk others are not told who holds it
            self._file.truncate(0)
            self._file.write(f"{this}since {since}, opened {_caller()}".encode())
        own(self)

    def _try(self, folder: Path) -> bool:
        """Take the lock, if nobody else holds it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as problem:
            raise StorageError(f"{folder} cannot be locked, so two engines might write there: {problem}",
                               path=str(folder)) from problem  # fmt: skip
        return True

    def check(self) -> None:
        """Make sure that the lock still keeps others away.

        Raises:
            Conflict: its file was removed, so another engine may have the warehouse now.
        """
        try:
            found = os.stat(self._path)
            if found.st_ino == self._held.st_ino and found.st_dev == self._held.st_dev:
                return
        except OSError:  # its folder may also be a file now
            pass
        folder = str(Path(self._path).parent)
        raise Conflict(
            f"the warehouse {folder}, or the lock in it, was moved or removed while this engine had it open, so "
            "another engine may write there; the call has changed nothing", name=folder,
            remedy="close its engines, and open it again"
        )  # fmt: skip

    def release(self) -> None:
        """Release the lock, so that others can write. It can be repeated, if an interrupt ends it."""
        release(self)
        if not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)  # releases it even if a forked child still has the file open
            self._file.close()

    def disown(self) -> None:
        """Close a forked child's copy of the file, or the lock would outlive the process that holds it."""
        self._file.close()


def _caller() -> str:
    """Who opens the engine: a command of halfjoin, or the innermost line of a program outside this package."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and str(module := frame.f_globals.get("__name__")).partition(".")[0] == "halfjoin":
        command = frame.f_code.co_name if str(module).startswith("halfjoin.cli.") else ""
        frame = frame.f_back
    if command:
        return f"by halfjoin {command}"
    return "at ?" if frame is None else f"at {frame.f_code.co_filename}:{frame.f_lineno}"
