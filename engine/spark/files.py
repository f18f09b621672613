"""State as Parquet files that Spark's tasks read: a collection's own, or written to a scratch folder."""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from halfjoin.engine.run import Part
from halfjoin.engine.spark.types import encode
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.scratch import Scratch, ScratchPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import Updates, concat, empty
from halfjoin.sql.errors import UnsupportedSQL

_GROUP_ROWS = 1 << 18  # a row group is the least that a task reads

# How files are read, whatever the session's settings: all of them, with days and moments as they were written.
AS_WRITTEN = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false", "datetimeRebaseMode": "CORRECTED"}


class StateFiles:
    """Which files hold which updates; what has none that Spark sees is written when it is first asked for.

    Args:
        scratch: where to; this process and all of Spark's must see it under the same path.
        direct: whether Spark sees the warehouse's own files, too.
    """

    def __init__(self, scratch: Scratch, *, direct: bool) -> None:
        self._scratch, self._direct = scratch, direct
        self._written: dict[int, list[str]] = {}  # of updates in memory, by their id, as long as they live
        self._copied: dict[tuple[object, str], ScratchPlace] = {}  # of files that Spark does not see
        self._held: list[object] = []

    def of(self, part: Part) -> list[str]:
        """Paths of files with the updates of a part; none where there are no updates.

        They have its columns by their names, of the types that `spark.types.encoded` says, `__time` and `__diff`;
        further columns are to be ignored.
        """
        if not isinstance(part, StoredRun):
            return [path for updates in part.pieces() if len(updates) for path in self._of_updates(updates)]
        check_names(part.schema)
        seen = isinstance(part.place, ScratchPlace) or (self._direct and isinstance(part.place, LocalPlace))
        return [str(part.place.path / file.name) if seen and isinstance(part.place, LocalPlace)
                else self._copy(part, file.name) for file in part.files]  # fmt: skip

    def hold(self, part: Part) -> Part:
        """The part, whose files stay until this object goes: somebody may still read them."""
        kept = self._scratch.linked(part) if isinstance(part, StoredRun) else part
        self._held.append([*kept.pieces()] if not isinstance(kept, StoredRun) else kept.place)
        return kept

    def loaded(self, run: StoredRun) -> Updates:
        """All updates of a run that a job has written, in memory; Spark goes on reading the files."""
        parts = list(run.pieces())
        if not parts:
            return empty(run.schema)
        updates = concat(parts)
        self._keep(updates, self.of(run), run.place)
        return updates

    def _keep(self, updates: Updates, paths: list[str], place: object) -> None:
        self._written[id(updates)] = paths
        weakref.finalize(updates, lambda known, number, _: known.pop(number, None), self._written, id(updates), place)

    def _of_updates(self, updates: Updates) -> list[str]:
        if id(updates) not in self._written:
            check_names(updates.columns)
            place = self._scratch.fresh()
            table = Updates({name: encode(column) for name, column in updates.columns.items()}, updates.time,
                            updates.diff).table(changes=True)  # fmt: skip
            pq.write_table(table, place.path / "0.parquet", row_group_size=_GROUP_ROWS)
            self._keep(updates, [str(place.path / "0.parquet")], place)
        return self._written[id(updates)]

    def _copy(self, run: StoredRun, name: str) -> str:
        """A file of a place that Spark does not see, which never changes."""
        if (run.place, name) not in self._copied:
            place = self._scratch.fresh()
            place.write(name, run.place.read(name))
            self._copied[run.place, name] = place
        return str(self._copied[run.place, name].path / name)


def located(path: str) -> str:
    """The path as Spark's reader takes it: of this file system, whatever the session's default is, and no pattern."""
    return "file:" + re.sub(r"[\\*?\[\]{}]", r"\\\g<0>", path)


def check_names(names: Mapping[str, pa.DataType] | Sequence[str]) -> None:
    """Refuse columns that Spark cannot keep apart."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise UnsupportedSQL(f'columns "{other}" and "{name}", which Spark takes for one, on the Spark runner',
                                 instead='rename one of them, or use Engine(runner="local")')  # fmt: skip
