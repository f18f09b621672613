"""Provide state as Parquet files for Spark's tasks: a collection's own files, or copies in a scratch folder."""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.spark.types import encode
from halfjoin.engine.storage.parquet import write
from halfjoin.engine.storage.place import LocalPlace, Place
from halfjoin.engine.storage.scratch import Scratch, ScratchPlace
from halfjoin.engine.storage.stored_run import StoredRun, stored
from halfjoin.engine.updates.updates import Updates, concat, empty
from halfjoin.errors import UnsupportedSQL

# Options for reading, whatever the session's settings: all files, with dates and timestamps as written.
_PATTERN = re.compile(r"[\\*?\[\]{}]")
AS_WRITTEN = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false", "datetimeRebaseMode": "CORRECTED"}


class StateFiles:
    """Finds files with given updates, and writes updates that have no files visible to Spark on first use.

    Args:
        scratch: where to write. This process and all of Spark's must see it under the same path.
        direct: whether Spark also sees the warehouse's own files.
    """

    def __init__(self, scratch: Scratch, *, direct: bool) -> None:
        self.scratch, self._direct = scratch, direct
        self._written: dict[int, StoredRun] = {}  # files of updates in memory, by their id, as long as they live
        self._copied: dict[Place, ScratchPlace] = {}  # copies of folders that Spark does not see
        self._held: list[object] = []

    def runs(self, part: Part) -> list[StoredRun]:
        """Files with the updates of a part, under paths that tasks see. No files if there are no updates.

        They have the columns by name, in the types of `spark.types.encoded`, and `__time` and `__diff`. Readers must
        ignore further columns.
        """
        run = stored(part)
        if run is None:
            return [_plain(self._of_updates(updates)) for updates in part.pieces() if len(updates)]
        check_names(run.schema)
        seen = isinstance(run.place, ScratchPlace) or (self._direct and isinstance(run.place, LocalPlace))
        return [_plain(run if seen else replace(run, place=self._copies(run)))]

    def hold(self, part: Part) -> Part:
        """Keep the files of a part until this object goes, because somebody may still read them. Returns the part."""
        run = stored(part)
        if run is None:
            self._held.append([*part.pieces()])
            return part
        linked = self.scratch.linked(run)
        self._held.append(linked.place)
        return linked

    def loaded(self, run: StoredRun) -> Updates:
        """Load all updates of a run that a job has written. Spark continues to read the files."""
        parts = list(run.pieces())
        return self._keep(concat(parts), run) if parts else empty(run.schema)

    def _keep(self, updates: Updates, run: StoredRun) -> Updates:
        self._written[id(updates)] = run
        weakref.finalize(updates, self._written.pop, id(updates), None)
        return updates

    def _of_updates(self, updates: Updates) -> StoredRun:
        if id(updates) not in self._written:
            check_names(updates.columns)
            place = self.scratch.fresh()
            columns = {name: encode(column) for name, column in updates.columns.items()}
            kinds = {name: column.type for name, column in columns.items()}
            files = write(place, Updates(columns, updates.time, updates.diff), kinds, ())
            schema = {name: column.type for name, column in updates.columns.items()}
            self._keep(updates, StoredRun(place, tuple(files), schema))
        return self._written[id(updates)]

    def _copies(self, run: StoredRun) -> ScratchPlace:
        """Copy the files of a run, which never change, to where Spark sees them."""
        if run.place not in self._copied:
            self._copied[run.place] = self.scratch.fresh()
        place = self._copied[run.place]
        for file in run.files:
            if not (place.path / file.name).exists():
                place.write(file.name, run.place.read(file.name))
        return place


def _plain(run: StoredRun) -> StoredRun:
    """The run in a form that can go to a task."""
    assert isinstance(run.place, LocalPlace)
    return replace(run, place=LocalPlace(run.place.path.absolute()), arranged={})


def is_readable(folder: Path) -> bool:
    """Whether Spark's readers take a path. They misread one that has a colon and a pattern's characters."""
    return ":" not in str(folder) or _PATTERN.search(str(folder)) is None


def located(path: str) -> str:
    """The path for Spark's reader: in the local file system, whatever the session's default, and not as a pattern."""
    return "file:" + _PATTERN.sub(r"\\\g<0>", path)


def check_names(names: Mapping[str, pa.DataType] | Sequence[str]) -> None:
    """Refuse columns that Spark cannot tell apart."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise UnsupportedSQL(f'columns "{other}" and "{name}" on the Spark runner, which cannot tell them apart',
                                 remedy='rename one of them, or use Engine(runner="local")')  # fmt: skip
