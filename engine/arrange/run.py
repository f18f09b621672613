"""A run: an immutable piece of a collection, its rows stored once, with an index for each arrangement that asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.index import Index, build, build_from_codes, merge
from halfjoin.engine.arrange.netting import NET_FROM, Net, laid, net, together
from halfjoin.engine.updates.consolidate import cancelled
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Ints, Positions, Updates, concat, fitting
from halfjoin.planner.plan import ArrangementKey

# The key columns of updates, and the row that each entry belongs to where that is not one entry per row, in order.
Entries = tuple[list[pa.Array], Positions | None]
KeyColumns = Callable[[Updates], Entries]

SELECTIVE = 16  # rows under a key on average, up to which an index finds what may cancel
RENET = 8  # a run is netted anew when one in so many of the rows that are there has closed since
CANCEL_FROM = 4096  # rows: below this, looking for what cancels costs more than carrying it


class Part(Protocol):
    """A piece of a collection, immutable: a `Run` in memory, or one whose rows stay in files."""

    def __len__(self) -> int: ...

    def pieces(
        self, low: int = MINIMUM, high: int = MAXIMUM, names: Iterable[str] | None = None
    ) -> Iterator[Updates]:
        """The updates with times in `[low, high)`, in parts that memory holds, with at least these columns (all)."""

    def present(self, closed: int, names: Iterable[str] | None = None) -> Iterator[Updates]:
        """As `pieces`, where updates with times below `closed` may be added up."""

    def narrowed(
        self, key: ArrangementKey, columns: KeyColumns, keys: Sequence[pa.Array], names: Iterable[str]
    ) -> Iterable[Run]:
        """Runs in memory that together have at least the updates with one of these keys in an arrangement.

        What is in files comes in several, each of as much as memory should hold at a time. `columns` computes the
        arrangement's keys; `keys` has a column for each of them; `names` are the collection's columns that the result
        must have, besides those that `columns` reads.
        """

    def closing(self, low: int, high: int) -> Updates:
        """The updates with times in `[low, high)`, where `low` is no less than `upper` was when the run was made."""

    def closed(self, upper: int) -> Part:
        """This part once times below `upper` are closed."""

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
    there, so that a row is stored once however far ahead its time lies. `net` says what the closed updates add up to
    (None: it has not been looked at), and `gone` has the entries of rows that are then not there.
    """

    updates: Updates
    indexes: dict[ArrangementKey, Index] = field(default_factory=dict)
    future: Index | None = None
    net: Net | None = None
    gone: dict[ArrangementKey, Index] = field(default_factory=dict)
    _row_bytes: int | None = None

    def __len__(self) -> int:
        return len(self.updates)

    def index(self, key: ArrangementKey, columns: KeyColumns) -> Index:
        """The index for an arrangement, of the rows that are there; built now if it is not there."""
        found = self.indexes.get(key)
        if found is None:
            arrays, rows = columns(self.updates)
            found = build(arrays, rows, len(self.updates) if rows is None else len(rows))
            if self.net is not None and self.net.there is not None:
                found, self.gone[key] = found.split(self.net.there)
            else:
                self.gone.pop(key, None)
            self.indexes[key] = found
        return found

    def entries(self, key: ArrangementKey, columns: KeyColumns, closed: int = MINIMUM) -> list[Index]:
        """The indexes that together have all rows, save those that updates with times below `closed` add up to nothing
        without."""
        index = self.index(key, columns)
        return [index] if self._nets(closed) or key not in self.gone else [index, self.gone[key]]

    def diffs(self, rows: Positions, closed: int) -> Ints:
        """The diffs of rows found in `entries`."""
        if self.net is None or not self._nets(closed):
            return self.updates.diff[rows]
        return self.net.diffs_of(self.updates, rows)

    def _nets(self, closed: int) -> bool:
        """Whether all that is netted has times below `closed`."""
        return self.net is not None and self.net.closed <= closed

    def present(self, closed: int, names: Iterable[str] | None = None) -> Iterator[Updates]:
        """The updates, those that are netted added up if all their times are below `closed`."""
        updates = self.updates if names is None else self.updates.select(names)
        if self.net is not None and self.net.there is not None and self._nets(closed):
            rows = np.flatnonzero(self.net.there)
            found = updates.take(rows)
            updates = Updates(found.columns, found.time, self.net.diffs_of(updates, rows))
        yield updates

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
    ) -> Iterable[Run]:
        """This run: its index finds what is looked for."""
        return (self,)

    def closing(self, low: int, high: int) -> Updates:
        """The updates with times in `[low, high)`, where `low` is no less than `upper` was when the run was made."""
        if self.future is None:
            return self.updates.slice(0, 0)
        rows = self.future.between(low, high)
        return self.updates if len(rows) == len(self.updates) else self.updates.take(np.sort(rows))

    def closed(self, upper: int) -> Run:
        """This run, netted anew once many of its updates have closed; the times of rows are forgotten when all have."""
        if self.net is None:
            # Of one time are most batches, and then only a row that comes and goes in the same one would cancel.
            several = len(self) >= NET_FROM and int(self.updates.time.min()) < int(self.updates.time.max())
            fresh = self if several else replace(self, net=Net(upper))
        elif self.future is None:
            return self
        else:
            there = len(self) if self.net.there is None else int(np.count_nonzero(self.net.there))
            due = len(self.future.between(self.net.closed, upper)) * RENET >= max(there, NET_FROM)
            fresh = self
            several = due or int(self.future.codes[-1]) < upper
        if several:
            fresh = self.netted(upper)
        if fresh.future is not None and int(fresh.future.codes[-1]) < upper:
            fresh = replace(fresh, future=None)
        return fresh

    def netted(self, upper: int) -> Run:
        """This run with the updates added up whose times are below `upper`."""
        found = net(self.updates, upper, self.net)
        if found.there is None:
            return replace(self, net=found)
        indexes, gone = {}, {}
        for key, index in self.indexes.items():
            before = self.gone.get(key)
            whole = index if before is None else merge([(index, 0), (before, 0)], None)
            indexes[key], gone[key] = whole.split(found.there)
        return replace(self, net=found, indexes=indexes, gone=gone)

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
        indexes = [*self.indexes.values(), *self.gone.values()]
        more = sum(one.nbytes for one in (self.future, self.net) if one is not None)
        return sum(index.nbytes for index in indexes) + more

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


def loaded_runs(pieces: Iterable[Updates], upper: int) -> list[Run]:
    """Runs, as few as can be, of updates that were kept, of any times; those of times below `upper` are netted, as they
    may be many."""
    return [make_run(concat(group), upper).netted(upper) for group in fitting(pieces)]


def merge_runs(
    runs: Sequence[Run], since: int, upper: int, live: Mapping[ArrangementKey, KeyColumns], *, final: bool
) -> Run:
    """One run for neighbouring runs; an arrangement's index is merged too where the largest of them has it.

    What cancels is dropped where the run is `final`, or large with deletions that are below since by now.

    Compaction law. Times below `since` may be moved up to `since`, after which equal rows are added up and zeros
    dropped. No read at or above `since` can tell.

    >>> def run(*updates):
    ...     rows, times, diffs = zip(*updates)
    ...     return make_run(Updates({"x": pa.array(rows)}, np.array(times), np.array(diffs)), 6)
    >>> runs = [run(("fig", 1, 1), ("lime", 2, 1)), run(("fig", 3, -1), ("lime", 5, 1))]
    >>> for update in merge_runs(runs, 4, 6, {}, final=True).updates.table(changes=True).to_pylist():
    ...     print(update)
    {'x': 'lime', '__time': 4, '__diff': 1}
    {'x': 'lime', '__time': 5, '__diff': 1}

    Wrong ways. With times moved to `since - 1`, or up to the newest time of the run, a read at 4 would see another
    number of limes. Rows added up before their times are moved keep both figs for ever. A limit on age that forgets
    updates, instead of moving them, forgets rows that are still there.
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
            indexes = [(index, at) for run, at in zip(runs, before.tolist(), strict=False)
                       for index in run.entries(key, columns)]  # fmt: skip
            merged.indexes[key] = merge(indexes, kept)
    known = laid([(run.net, len(run)) for run in runs]) if kept is None else Net(MINIMUM)
    merged.net = _net_of(merged, since, upper, known, summed=kept is not None)
    if merged.net.there is not None:
        for key, index in merged.indexes.items():
            merged.indexes[key], merged.gone[key] = index.split(merged.net.there)
    return merged


def _net_of(run: Run, since: int, upper: int, known: Net, *, summed: bool) -> Net:
    """What the closed updates of a merged run add up to; those at `since` have been `summed` up, or not.

    With an index that tells most rows apart this is cheap enough for every merge, and else done now and then.
    """
    updates = run.updates
    if len(run) < NET_FROM or (summed and not ((updates.time > since) & (updates.time < upper)).any()):
        return known
    best = max(run.indexes.values(), key=Index.distinct, default=None)
    if best is not None and best.distinct() * SELECTIVE >= len(best):
        return net(updates, upper, known, best)
    return net(updates, upper, known) if known.due(len(run)) else known


def present(parts: Iterable[Part], closed: int, names: Iterable[str] | None = None) -> Iterator[Updates]:
    """All updates of a collection, with at least these columns (all), where those with times below `closed` are added
    up as far as they are in memory together."""
    names, held = None if names is None else list(names), []
    for part in parts:
        for updates in part.present(closed, names):
            if isinstance(part, Run) and closed > MINIMUM:
                held.append(updates)
            elif len(updates):
                yield updates
    if len(held) < 2 or not any(bool((one.diff < 0).any()) for one in held):
        yield from (one for one in held if len(one))
        return
    for group in fitting(held):
        found = concat(group)
        sums = together(found, closed)
        if sums is None:
            yield from (one for one in group if len(one))
        elif len(sums[0]):
            rest = found.take(sums[0])
            yield Updates(rest.columns, rest.time, sums[1])
