"""State as Parquet files that Spark's tasks read: a collection's own, or written to a scratch folder."""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from halfjoin.engine.arrange.run import Part
from halfjoin.engine.spark.types import encode
from halfjoin.engine.storage.parquet import write
from halfjoin.engine.storage.place import LocalPlace, Place
from halfjoin.engine.storage.scratch import Scratch, ScratchPlace
from halfjoin.engine.storage.stored_run import StoredRun, stored
from halfjoin.engine.updates.updates import Updates, concat, empty
from halfjoin.errors import UnsupportedSQL

# How files are read, whatever the session's settings: all of them, with days and moments as they were written.
_PATTERN = re.compile(r"[\\*?\[\]{}]")
AS_WRITTEN = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false", "datetimeRebaseMode": "CORRECTED"}


class StateFiles:
    """Which files hold which updates; what has none that Spark sees is written when it is first asked for.

    Args:
        scratch: where to; this process and all of Spark's must see it under the same path.
        direct: whether Spark sees the warehouse's own files, too.
    """

    def __init__(self, scratch: Scratch, *, direct: bool) -> None:
        self.scratch, self._direct = scratch, direct
        self._written: dict[int, StoredRun] = {}  # of updates in memory, by their id, as long as they live
        self._copied: dict[Place, ScratchPlace] = {}  # of folders that Spark does not see
        self._held: list[object] = []

    def runs(self, part: Part) -> list[StoredRun]:
        """Files with the updates of a part, under paths that tasks see; none where there are no updates.

        They have its columns by their names, of the types that `spark.types.encoded` says, `__time` and `__diff`;
        further columns are to be ignored.
        """
        run = stored(part)
        if run is None:
            return [_plain(self._of_updates(updates)) for updates in part.pieces() if len(updates)]
        check_names(run.schema)
        seen = isinstance(run.place, ScratchPlace) or (self._direct and isinstance(run.place, LocalPlace))
        return [_plain(run if seen else replace(run, place=self._copies(run)))]

    def hold(self, part: Part) -> Part:
        """The part, whose files stay until this object goes: somebody may still read them."""
        run = stored(part)
        if run is None:
            self._held.append([*part.pieces()])
            return part
        linked = self.scratch.linked(run)
        self._held.append(linked.place)
        return linked

    def loaded(self, run: StoredRun) -> Updates:
        """All updates of a run that a job has written, in memory; Spark goes on reading the files."""
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
        """The files of a run, which never change, where Spark sees them."""
        if run.place not in self._copied:
            self._copied[run.place] = self.scratch.fresh()
        place = self._copied[run.place]
        for file in run.files:
            if not (place.path / file.name).exists():
                place.write(file.name, run.place.read(file.name))
        return place


def _plain(run: StoredRun) -> StoredRun:
    """As a task may get it."""
    assert isinstance(run.place, LocalPlace)
    return replace(run, place=LocalPlace(run.place.path.absolute()), arranged={})


def is_readable(folder: Path) -> bool:
    """Whether Spark's readers take a path: of one with characters of patterns they take what follows a colon apart."""
    return ":" not in str(folder) or _PATTERN.search(str(folder)) is None


def located(path: str) -> str:
    """The path as Spark's reader takes it: of this file system, whatever the session's default is, and no pattern."""
    return "file:" + _PATTERN.sub(r"\\\g<0>", path)


def check_names(names: Mapping[str, pa.DataType] | Sequence[str]) -> None:
    """Refuse columns that Spark cannot keep apart."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise UnsupportedSQL(f'columns "{other}" and "{name}", which Spark takes for one, on the Spark runner',
                                 remedy='rename one of them, or use Engine(runner="local")')  # fmt: skip
