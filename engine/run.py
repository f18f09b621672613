"""A run: an immutable piece of a collection, its rows stored once, with an index for each arrangement that asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from halfjoin.engine.consolidate import cancelled
from halfjoin.engine.index import Index, build, build_from_codes, merge
from halfjoin.engine.updates import MAXIMUM, MINIMUM, Ints, Positions, Updates, concat
from halfjoin.planner.plan import ArrangementKey

# The key columns of updates, and the row that each entry belongs to where that is not one entry per row, in order.
Entries = tuple[list[pa.Array], Positions | None]
KeyColumns = Callable[[Updates], Entries]

CANCEL_FROM = 4096  # rows: below this, looking for what cancels costs more than carrying it


class Part(Protocol):
    """A piece of a collection, immutable: a `Run` in memory, or one whose rows stay in files."""

    def __len__(self) -> int: ...

    def pieces(
        self, low: int = MINIMUM, high: int = MAXIMUM, names: Iterable[str] | None = None
    ) -> Iterator[Updates]:
        """The updates with times in `[low, high)`, in parts that memory holds, with at least these columns (all)."""

    def narrowed(
        self, key: ArrangementKey, columns: KeyColumns, keys: Sequence[pa.Array], names: Iterable[str]
    ) -> Run:
        """A run in memory with at least the updates that have one of these keys in an arrangement.

        `columns` computes the arrangement's keys; `keys` has a column for each of them; `names` are the collection's
        columns that the result must have, besides those that `columns` reads.
        """

    def closing(self, low: int, high: int) -> Updates:
        """The updates with times in `[low, high)`, where `low` is no less than `upper` was when the run was made."""

    def close(self, upper: int) -> None:
        """Take note that times below `upper` are closed."""

    @property
    def latest(self) -> int:
        """The last of the times, the least of all where there are no updates."""

    @property
    def row_bytes(self) -> int:
        """Memory held by the rows, times and diffs."""

    @property
    def loaded_bytes(self) -> int:
        """About what the rows hold, or would hold, in memory."""

    @property
    def index_bytes(self) -> int:
        """Memory held by the indexes."""

    @property
    def stored(self) -> tuple[int, int]:
        """Files in which the rows stay, and their bytes, those of arrangements included."""


@dataclass(slots=True)
class Run:
    """Updates and indexes on them. The updates never change; an index is added when first needed.

    `future` lists the rows whose times were still open when the run was made, by time: what closes later is found
    there, so that a row is stored once however far ahead its time lies.
    """

    updates: Updates
    indexes: dict[ArrangementKey, Index] = field(default_factory=dict)
    future: Index | None = None
    _row_bytes: int | None = None

    def __len__(self) -> int:
        return len(self.updates)

    def index(self, key: ArrangementKey, columns: KeyColumns) -> Index:
        """The index for an arrangement, built now if it is not there."""
        found = self.indexes.get(key)
        if found is None:
            arrays, rows = columns(self.updates)
            found = self.indexes[key] = build(arrays, rows, len(self.updates) if rows is None else len(rows))
        return found

    def pieces(
        self, low: int = MINIMUM, high: int = MAXIMUM, names: Iterable[str] | None = None
    ) -> Iterator[Updates]:
        """The updates with times in `[low, high)`, all at once."""
        if low == MINIMUM and high == MAXIMUM:
            yield self.updates
            return
        found = self.updates.filter((low <= self.updates.time) & (self.updates.time < high))
        if len(found):
            yield found

    def narrowed(
        self, key: ArrangementKey, columns: KeyColumns, keys: Sequence[pa.Array], names: Iterable[str]
    ) -> Run:
        """This run: its index finds what is looked for."""
        return self

    def closing(self, low: int, high: int) -> Updates:
        """The updates with times in `[low, high)`, where `low` is no less than `upper` was when the run was made."""
        if self.future is None:
            return self.updates.slice(0, 0)
        rows = self.future.between(low, high)
        return self.updates if len(rows) == len(self.updates) else self.updates.take(np.sort(rows))

    def close(self, upper: int) -> None:
        """Forget the times of rows once all of them are closed."""
        if self.future is not None and int(self.future.codes[-1]) < upper:
            self.future = None

    @property
    def latest(self) -> int:
        """The last of the times, the least of all where there are no updates."""
        return int(self.updates.time.max()) if len(self) else MINIMUM

    @property
    def stored(self) -> tuple[int, int]:
        """No files: the rows are in memory."""
        return 0, 0

    @property
    def index_bytes(self) -> int:
        """Memory held by the indexes, in bytes."""
        return sum(index.nbytes for index in self.indexes.values()) + (self.future.nbytes if self.future else 0)

    @property
    def loaded_bytes(self) -> int:
        """What the rows hold."""
        return self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Memory held by the rows, times and diffs, in bytes; a broadcast view holds none."""
        if self._row_bytes is None:  # asked for after every batch
            self._row_bytes = self.updates.nbytes
        return self._row_bytes


def make_run(updates: Updates, upper: int, indexes: dict[ArrangementKey, Index] | None = None) -> Run:
    """A run of updates, where times below `upper` are closed, with the indexes that are there already."""
    rows = np.flatnonzero(updates.time >= upper)
    return Run(updates, indexes or {}, build_from_codes(updates.time[rows], rows, True) if len(rows) else None)


def merge_runs(
    runs: Sequence[Run], since: int, upper: int, live: Mapping[ArrangementKey, KeyColumns], *, final: bool
) -> Run:
    """One run for neighbouring runs; an arrangement's index is merged too where the largest of them has it.

    What cancels is dropped where the run is `final`, or large with deletions that are below since by now.

    Compaction law. Times below `since` may be moved up to `since`, after which equal rows are added up and zeros
    dropped. No read at or above `since` can tell.
    """
    joined = concat([run.updates for run in runs]).not_before(since)
    # Rows of different times cannot cancel, so a deletion does only once its time is moved up to since.
    if final or (len(joined) >= CANCEL_FROM and bool(((joined.time == since) & (joined.diff < 0)).any())):
        positions, diffs = cancelled(joined)
    else:
        positions, diffs = np.arange(len(joined)), joined.diff
    kept: Ints | None = None
    if len(positions) < len(joined):
        kept = np.full(len(joined), -1, np.int64)
        kept[positions] = np.arange(len(positions))
        survivors = joined.take(positions)
        joined = Updates(survivors.columns, survivors.time, diffs)
    elif diffs is not joined.diff:
        joined = Updates(joined.columns, joined.time, diffs)
    merged = make_run(joined, upper)
    before = np.concatenate([[0], np.cumsum([len(run) for run in runs])])
    largest = max(runs, key=len)
    for key, columns in live.items():
        if key in largest.indexes:
            indexes = [run.index(key, columns) for run in runs]
            merged.indexes[key] = merge(list(zip(indexes, before.tolist(), strict=False)), kept)
    return merged
