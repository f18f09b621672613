"""The current rows of a collection: its runs without the closed updates that cancel in different ones.

A run nets its own updates only. What a batch deletes is still in an older run, so a lookup finds both and adds them up.
A query that reads many rows would do that for each of them, and so would the next one. Here it is done once for all
queries until the next batch, and only rows that share a code with a deletion are compared. The runs stay as they are:
each is seen through a net of its own, and its indexes are shared, though they have entries of rows that have gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.index import Index, KeyColumns, RowNumbers
from halfjoin.engine.arrange.netting import NO_ROWS, Net, together
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.query_run import of_query
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.scalar.ends import Ends, Sieve
from halfjoin.engine.updates.codes import codes, distinct
from halfjoin.engine.updates.consolidate import narrow_codes, sharing
from halfjoin.engine.updates.updates import MINIMUM, Ints, Mask, Updates, concat, fits, some_below_zero, where_true
from halfjoin.planner.plan import ArrangementKey
from halfjoin.planner.wants import ALL, Wants

Arranged: TypeAlias = Mapping[ArrangementKey, KeyColumns]
_FEW = 1 << 12  # updates; adding up so few costs less than finding those that may cancel


@dataclass(slots=True)
class CurrentRun(Run):
    """A run as queries see it. `net` hides what other runs cancel; `behind` is the run that has the indexes.

    `parts` are the stretches that a query has read.
    """

    behind: Run = field(kw_only=True)
    parts: dict[tuple[int, int], Run] = field(default_factory=dict, init=False, repr=False, compare=False)

    def index(
        self, key: ArrangementKey, columns: KeyColumns, wants: Wants = ALL, begins: int = MINIMUM
    ) -> Index:
        """As of a run. What has gone has no entries."""
        found = self.indexes.get(key)
        if found is None or not (found.partial is None or found.partial.serves(wants, begins)):
            whole = self.behind.index(key, columns, wants, begins)
            there = None if self.net is None else self.net.there
            found = self.indexes[key] = whole if there is None else whole.split(there)[0]
        return found

    def entries(
        self, key: ArrangementKey, columns: KeyColumns, closed: int = MINIMUM, wants: Wants | None = ALL,
        begins: int = MINIMUM,
    ) -> list[Index]:  # fmt: skip
        """As of a run. What has gone has entries; `find` and kernels leave them out."""
        return self.behind.entries(key, columns, closed, wants, begins)

    def find(
        self, key: ArrangementKey, columns: KeyColumns, probes: Ints, closed: int = MINIMUM, wants: Wants = ALL,
        begins: int = MINIMUM,
    ) -> Iterator[tuple[Ints, RowNumbers, bool]]:  # fmt: skip
        """As of a run."""
        mask = self.mask(closed)
        for positions, rows, exact in self.behind.find(key, columns, probes, closed, wants, begins):
            if mask is not None:
                left = mask[rows]
                positions, rows = (positions, rows) if left.all() else (positions[left], rows[left])
            yield positions, rows, exact

    def mask(self, closed: int) -> Mask | None:
        """As of a run."""
        return None if self.net is None or not self._nets(closed) else self.net.there

    def lacks(self, key: ArrangementKey) -> bool:
        """As of a run."""
        return self.behind.lacks(key)

    def grouped_for(self, key: ArrangementKey) -> bool:
        """As of a run."""
        return self.behind.grouped_for(key)

    def among(self, key: ArrangementKey, columns: KeyColumns, keys: list[pa.Array]) -> Run:
        """As of a run."""
        own = self.behind.among(key, columns, keys)
        return self if own is self.behind else replace(self, behind=own, indexes={})

    def ends_of(self, column: str) -> Ends | None:
        """As of a run. What has gone counts."""
        return self.behind.ends_of(column)

    def sifted(self, sieve: Sieve) -> Sequence[Run]:
        """As of a run."""
        found = self.behind.stretches(sieve)
        return (self,) if found is None else [self._part(*stretch) for stretch in found]

    def _part(self, start: int, stop: int, behind: Run) -> Run:
        found = self.parts.get((start, stop))
        if found is None:
            net = None if self.net is None else self.net.part(start, stop)
            found = self.parts[start, stop] = CurrentRun(behind.updates, net=net, behind=behind)
        return found

    def alone(self) -> Run:
        """The run as it is without the others."""
        return self.behind

    def at_once(self) -> Run:
        """As of a run; nothing is added up."""
        return self.behind.at_once()


def for_query(part: Part) -> Part:
    """A part of a collection for one query. What is in files has no index that the query could make."""
    if not part.in_memory:
        return part
    run = cast("Run", part)
    if not isinstance(run, CurrentRun):
        return of_query(run)
    own = of_query(run.behind)
    return run if own is run.behind else replace(run, behind=own)


class Current(NamedTuple):
    """What the updates below `closed` of some runs add up to, as a net of each."""

    runs: tuple[Run, ...]
    closed: int
    nets: Sequence[Net | None]

    def after(self, runs: Sequence[Run], closed: int, arranged: Callable[[], Arranged]) -> Current:
        """The same of the runs as they are now. What is known of the first ones is not found again. `arranged`: the
        arrangements of the collection. No runs: a later batch has netted some of them."""
        if any(run.net is not None and run.net.closed > closed for run in runs):
            return NOTHING
        same = len(self.runs) <= len(runs) and all(map(is_, self.runs, runs))
        known = self if same and self.closed <= closed else NOTHING
        if len(known.runs) == len(runs) and known.closed == closed:
            return known
        nets = (*known.nets, *[run.net for run in runs[len(known.runs) :]])
        return Current(tuple(runs), closed, across(runs, nets, closed, arranged()))

    def seen(self) -> tuple[Run, ...]:
        """The runs as queries see them: all with nets of the same times, or none."""
        return tuple(
            run if found is None or found is run.net else
            CurrentRun(run.updates, future=run.future, net=replace(found, closed=self.closed), behind=run,
                       ends=run.ends)
            for run, found in zip(self.runs, self.nets, strict=True)
        )  # fmt: skip


NOTHING = Current((), MINIMUM, ())


def across(
    runs: Sequence[Run], nets: Sequence[Net | None], closed: int, arranged: Arranged
) -> Sequence[Net | None]:
    """What the updates of all runs with times below `closed` add up to, as a net of each run: the one that is given if
    no other run changes it. All updates that `nets` hide add up to 0, and have times below `closed`. `arranged`: the
    arrangements of the collection."""
    known = [Net(closed) if net is None else net for net in nets]
    gone = [_deletions(run.updates, net, closed) for run, net in zip(runs, known, strict=True)]
    if len(runs) < 2 or not any(map(len, gone)):
        return nets
    rows = [_left(run.updates, net, each, closed)
            for run, net, each in zip(runs, known, _sharing(runs, gone, closed, arranged), strict=True)]  # fmt: skip
    pieces = [_counted(run.updates, net, some) for run, net, some in zip(runs, known, rows, strict=True)]
    fit = fits(pieces, sum(piece.nbytes for piece in pieces))
    found = together(concat(pieces), closed) if fit else None
    if found is None:
        return nets
    positions, sums = found
    ends, made = np.cumsum([0, *map(len, rows)]), list(nets)
    for number, (some, piece) in enumerate(zip(rows, pieces, strict=True)):
        first, last = positions.searchsorted(ends[number : number + 2])
        left, diffs = positions[first:last] - ends[number], sums[first:last]
        if len(left) < len(some) or (diffs != piece.diff).any():
            made[number] = _without(runs[number].updates, known[number], closed, some, some[left], diffs)
    return made


def _deletions(updates: Updates, net: Net, closed: int) -> Ints:
    """The rows below `closed` that remain and count less than zero times."""
    if not some_below_zero(updates.diff):
        return NO_ROWS
    return _left(updates, net, where_true(net.diffs_of(updates) < 0), closed)


def _left(updates: Updates, net: Net, rows: Ints, closed: int) -> Ints:
    """Those of the rows that a net leaves, and whose times are closed."""
    rows = rows if net.there is None else rows[net.there[rows]]
    return rows if updates.within(MINIMUM, closed) else rows[updates.time[rows] < closed]


def _counted(updates: Updates, net: Net, rows: Ints) -> Updates:
    """Rows with their diffs in a net."""
    found = updates.take(rows)
    return Updates(found.columns, found.time, net.diffs_of(updates, rows))


def _without(updates: Updates, net: Net, closed: int, rows: Ints, left: Ints, diffs: Ints) -> Net:
    """A net in which, of some rows, these are left and count so often."""
    there = np.ones(len(updates), np.bool_) if net.there is None else net.there.copy()
    there[rows] = False
    others = where_true(there[net.rows])
    there[left] = True
    changed = where_true(diffs != updates.diff[left])
    numbers = np.concatenate([net.rows[others], left[changed]])
    order = numbers.argsort()
    return Net(closed, net.size, there, numbers[order], np.concatenate([net.diffs[others], diffs[changed]])[order])


def _sharing(runs: Sequence[Run], gone: Sequence[Ints], closed: int, arranged: Arranged) -> Iterator[Ints]:
    """For each run the ascending rows that share a code with a deletion, and perhaps a few more: by an index, or by the
    codes of all columns of a fixed width."""
    if sum(map(len, runs)) <= _FEW:
        yield from (np.arange(len(run)) for run in runs)
        return
    largest = max(runs, key=len)
    built = [key for key in arranged if key.keys and key in largest.indexes]
    if not built:
        every = [narrow_codes(run.updates) for run in runs]
        deleted = np.concatenate([each[rows] for each, rows in zip(every, gone, strict=True)])
        yield from (where_true(sharing(each, deleted)) for each in every)
        return
    key = max(built, key=lambda one: largest.indexes[one].about_distinct())
    asked = list[Ints]()
    for run, some in zip(runs, gone, strict=True):
        keys, origins = arranged[key](run.updates.take(some))
        asked.append(codes(keys, len(some) if origins is None else len(origins)))
    probes = distinct(np.concatenate(asked))
    for run in runs:
        there = np.zeros(len(run), np.bool_)
        for _, rows, _ in run.find(key, arranged[key], probes, closed):
            there[rows] = True
        yield where_true(there)
