"""Rows in files that are brought into memory behind the batches, with the indexes that lookups need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from halfjoin.engine.arrange.index import KeyColumns
from halfjoin.engine.arrange.memory import INDEXED
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.partial import RowFilter
from halfjoin.engine.arrange.run import Run, loaded_runs
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import StorageError
from halfjoin.planner.plan import ArrangementKey
from halfjoin.planner.wants import Wants


class _Dropped(Exception):
    """Nobody waits for the rows any more."""


@dataclass(slots=True)
class Coming:
    """Parts in files, and the same updates as runs in memory once a thread has loaded them.

    `keys` and `filters` are those of the collection's arrangements when it began. `upper`: times below it are closed,
    and no change that looks the rows up has such a time.
    """

    parts: tuple[Part, ...]
    keys: Mapping[ArrangementKey, tuple[KeyColumns, Wants]]
    filters: Mapping[ArrangementKey, RowFilter]
    dropped: bool = False
    failed: bool = False
    _runs: list[Sequence[Run]] = field(default_factory=list)  # of each part

    @property
    def done(self) -> bool:
        """Whether all is in memory."""
        return len(self._runs) == len(self.parts)

    @property
    def size(self) -> int:
        """About the bytes that it takes."""
        rows = sum(map(len, self.parts))
        return sum(part.loaded_bytes for part in self.parts) + INDEXED * len(self.keys) * rows

    def load(self, upper: int, stopping: Callable[[], bool]) -> None:
        """Load the parts, in the thread."""
        try:
            for part in self.parts:
                runs = loaded_runs(self._pieces(part, stopping), upper)
                for run in runs:
                    run.serve(self.filters)
                    for key, (columns, wants) in self.keys.items():
                        self._check(stopping)
                        run.build(key, columns, wants, upper)
                self._runs.append(runs)
        except (_Dropped, StorageError, MemoryError):
            pass  # whoever needs the rows loads them, and reports what is wrong
        finally:
            self.failed = not self.done

    def _pieces(self, part: Part, stopping: Callable[[], bool]) -> Iterator[Updates]:
        for updates in part.pieces():
            self._check(stopping)
            yield updates

    def _check(self, stopping: Callable[[], bool]) -> None:
        if self.dropped or stopping():
            raise _Dropped

    def instead(self, held: Sequence[Part]) -> Iterator[Part]:
        """The held parts, with the runs in memory instead of the parts in files."""
        runs = {id(part): runs for part, runs in zip(self.parts, self._runs, strict=True)}
        for part in held:
            yield from runs.get(id(part), (part,))
