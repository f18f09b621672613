"""Read the commits in a Delta table's log: who made each, and whether it changed rows.

Our commits carry the collection's name. A commit without it is somebody else's. It may rewrite files (OPTIMIZE) or
remove files that no version has (VACUUM). It must not change the table's contents, which the journal decides.
"""

from __future__ import annotations

import json
import math
import time as clock
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from halfjoin.engine.storage.place import LOG, UPLOADED, Place

MARK = "halfjoin.collection"
_CHECKPOINT = ".checkpoint.parquet"
_FILES = ("add", "remove")
_HARMLESS = {"commitInfo", "txn", "checkpointMetadata", "sidecar"}


class Torn(Exception):
    """A commit is incomplete: a power failure left only a part, so it never happened."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A version, as the table's log describes it."""

    version: int
    info: dict[str, Any]  # about the writer
    app: str | None  # the application in its transaction action, if any
    rewrites: bool  # whether it adds or removes files
    changes: bool  # whether it may change rows or columns

    @property
    def maker(self) -> str | None:
        """The collection that it was made for; None if somebody else made it."""
        mark = self.info.get(MARK, self.app)
        return None if mark is None else str(mark)

    @property
    def operation(self) -> str:
        """The writer's name for it."""
        return str(self.info.get("operation", "?"))


def commit_file(version: int) -> str:
    """The log entry of a version, as a name in the table's place."""
    return f"{LOG}/{version:020}.json"


def commit(place: Place, version: int) -> Commit | None:
    """A version's commit; None if there is none.

    Raises:
        Torn: it is incomplete.
    """
    size = place.size(commit_file(version))
    if size is None:
        return None
    try:
        text = place.read(commit_file(version)).to_pybytes() if size else b""
        actions = [json.loads(line) for line in text.splitlines()]
        if not actions or not all(isinstance(action, dict) and action for action in actions):
            raise Torn
        kinds = [next(iter(action.items())) for action in actions]
        info: dict[str, Any] = next((content for kind, content in kinds if kind == "commitInfo"), {})
        app = next((content["appId"] for kind, content in kinds if kind == "txn"), None)
        rewrites = any(kind in _FILES for kind, _ in kinds)
        return Commit(version, info, app, rewrites, any(_changes(kind, content) for kind, content in kinds))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise Torn from problem


def commits(place: Place, after: int | None) -> Iterator[Commit]:
    """The commits after a version (None: all that are there), in order. Raises the same errors as `commit`."""
    first = min((_version(name) for name in _entries(place, ".json")), default=0) if after is None else after + 1
    found = commit(place, first)
    while found is not None:
        yield found
        found = commit(place, found.version + 1)


def shorten(place: Place, hours: float) -> None:
    """Remove the entries of the log before the last checkpoint that is older than these hours.

    Delta's own search removes what is before a new checkpoint, however long the version before it was the newest: who
    was about to read that, or has to go back to it, could not. And it keeps a table's entries for 30 days.
    """
    until = clock.time() - 3600 * hours
    for last in sorted(map(_version, _entries(place, _CHECKPOINT)), reverse=True):
        found = commit(place, last)
        if found is not None and found.info.get("timestamp", math.inf) <= 1000 * until:
            for name in sorted(name for name in _entries(place) if _version(name) < last):  # no gap if it ends halfway
                (place / LOG).remove(name)
            return


def drop_checkpoints(place: Place, after: int | None = None) -> None:
    """Remove the checkpoints after a version (None: the newest one), as far as the other entries tell what they do: a
    power failure can leave a part of one that was just made, or its name alone, and then nobody can read the table."""
    (place / LOG).remove("_last_checkpoint")  # first: what names a checkpoint that is gone is as bad
    names = entries(place)
    checkpoints = {name: _version(name) for name in names if name.endswith(_CHECKPOINT)}
    after = max(checkpoints.values(), default=0) - 1 if after is None else after
    kept = max((version for version in checkpoints.values() if version <= after), default=-1)
    if {commit_file(version) for version in range(kept + 1, after + 1)} <= {f"{LOG}/{name}" for name in names}:
        for name, version in checkpoints.items():
            if version > after:
                (place / LOG).remove(name)


def entries(place: Place) -> list[str]:
    """The files of the log, in order, as names in the log's folder."""
    return sorted(name for name in _entries(place) if UPLOADED not in name)


def entries_up_to(place: Place, version: int) -> list[str]:
    """The files of the log that tell what a version holds, in order, as names in the log's folder."""
    return [name for name in entries(place) if _version(name) <= version]


def _entries(place: Place, ending: str = "") -> Iterator[str]:
    return (name for name in (place / LOG).names() if name[:20].isdigit() and name[20:].endswith(ending))


def _version(name: str) -> int:
    return int(name[:20])


def _changes(kind: str, content: dict[str, Any]) -> bool:
    if kind in _FILES:
        return bool(content.get("dataChange", True))
    return kind not in _HARMLESS
