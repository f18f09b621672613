"""The commits of a Delta table as its log has them: who made each, and whether rows are others after it.

Our commits carry the name of the collection. One without it is somebody else's: it may rewrite files (OPTIMIZE), or
remove those that no version has any more (VACUUM), but not change what the table holds, which is the journal's to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from halfjoin.engine.storage.place import LOG, Place

MARK = "halfjoin.collection"
_FILES = ("add", "remove")
_HARMLESS = {"commitInfo", "txn", "checkpointMetadata", "sidecar"}


class Torn(Exception):
    """A commit is not there as a whole: a power failure left a part of it, so it never was one."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A version: what the table's log says of how it came to be."""

    version: int
    info: dict[str, Any]  # of who made it
    app: str | None  # the application whose transaction it is
    rewrites: bool  # whether the files are others than before
    changes: bool  # whether the rows, or the columns, may be, too

    @property
    def maker(self) -> str | None:
        """The collection that it was made for, None if it is of another hand."""
        mark = self.info.get(MARK, self.app)
        return None if mark is None else str(mark)

    @property
    def operation(self) -> str:
        """What its maker calls it."""
        return str(self.info.get("operation", "?"))


def commit_file(version: int) -> str:
    """The log's entry of a version, as a name in the table's place."""
    return f"{LOG}/{version:020}.json"


def commit(place: Place, version: int) -> Commit | None:
    """A version's commit; None if it is not there.

    Raises:
        Torn: it is not whole.
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


def commits(place: Place, after: int) -> Iterator[Commit]:
    """The commits after a version (-1: all), in order. Raises as `commit`."""
    found = commit(place, after + 1)
    while found is not None:
        yield found
        found = commit(place, found.version + 1)


def _changes(kind: str, content: dict[str, Any]) -> bool:
    if kind in _FILES:
        return bool(content.get("dataChange", True))
    return kind not in _HARMLESS
