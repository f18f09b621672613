"""Decide, before anything is written, whether a folder is a warehouse, may become one, or is somebody else's.

A warehouse is known by its journal. A folder without a journal may hold only what an opening leaves when it is killed
before it has created one.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Collection, Iterable
from pathlib import Path

from halfjoin.engine.storage.place import Place
from halfjoin.errors import StorageError

FILE = "journal.sqlite"
LOCK = "lock"
_BESIDE = tuple(f"{FILE}{end}" for end in ("-journal", "-wal", "-shm"))  # SQLite creates them
_OURS = ("tables", "views", "nodes", "errors", "arrangements", "sinks", "staging")
_HOLDER = re.compile(rb"(process \d+ on [^\n]*)?")


def check_folder(folder: Path) -> bool:
    """Whether a folder holds a warehouse. If not, one can be created there.

    Raises:
        StorageError: the folder holds something else, or a warehouse that has lost its journal.
    """
    try:
        names = set(os.listdir(folder))
        wal = folder / _BESIDE[1]
        state = _journal(folder / FILE)
        torn = state == "empty" and wal.name in names and wal.stat().st_size > 0
        lock = (folder / LOCK).read_bytes()[:500] if LOCK in names else b""
    except FileNotFoundError:
        return False
    except OSError as problem:
        raise StorageError(f"the warehouse {folder} cannot be looked at: {problem}", path=str(folder)) from problem
    if state == "there":
        return True
    strangers = names - {FILE, *_BESIDE, LOCK}
    if not _HOLDER.fullmatch(lock):
        strangers.add(LOCK)
    if strangers or torn or state == "damaged":
        raise _refusal(str(folder), FILE, state, strangers, FILE in names or any(name in _OURS for name in strangers))
    return False


def check_prefix(place: Place, allowed: Collection[str]) -> None:
    """Make sure that a prefix of an object store holds only what is allowed, so that a journal may be created there.

    Raises:
        StorageError: it holds something else.
    """
    strangers = set(place.names()) - set(allowed)
    if strangers:
        ours = any(name in (*_OURS, "journal") for name in strangers)
        raise _refusal(str(place), "journal", "empty", strangers, ours)


def _journal(path: Path) -> str:
    """`there`, `empty` (missing, or still without content), or `damaged`.

    Only SQLite may open the file. By POSIX, a process that closes a file gives up all its locks on it, those of other
    engines in this process, too. Then another process takes itself for the last one, and removes the write-ahead file.
    """
    if not path.exists() or not path.stat().st_size:
        return "empty"
    try:
        db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
        try:
            if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return "empty"
            return "there" if db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone() else "damaged"
        finally:
            db.close()
    except sqlite3.OperationalError as problem:
        return "damaged" if "no such" in str(problem) else "there"  # for example locked; opening it then waits
    except sqlite3.DatabaseError:
        return "damaged"


def _refusal(where: str, journal: str, state: str, strangers: Iterable[str], ours: bool) -> StorageError:
    found = ", ".join(sorted(strangers)[:5]) or "pages of a journal"
    if not ours:
        return StorageError(f"{where} is not a warehouse and holds other things ({found})",
                            remedy="choose a folder that is empty, "
                            "or one that does not exist yet", path=str(where))  # fmt: skip
    how = "damaged, or another program's" if state == "damaged" else "missing or empty"
    return StorageError(
        f"the journal {where}/{journal} is {how}, beside {found}. It is the truth of a warehouse, so the engine "
        "changes nothing",
        remedy="put it back from a backup of the whole folder, or choose another; flushed data can be "
        f"read from the Delta tables in {where}/tables", path=str(where),
    )
