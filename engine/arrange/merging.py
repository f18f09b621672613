"""Merges neighbouring runs and their indexes into one, and drops what cancels, as the compaction law allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from halfjoin.engine.arrange import partial
from halfjoin.engine.arrange.index import Index, KeyColumns, merge, wanted_only
from halfjoin.engine.arrange.netting import NET_FROM, Net, laid, net
from halfjoin.engine.arrange.partial import RowFilter
from halfjoin.engine.arrange.run import Run, make_run
from halfjoin.engine.updates.consolidate import FEW, cancelled
from halfjoin.engine.updates.updates import MINIMUM, Ints, Updates, concat
from halfjoin.planner.plan import ArrangementKey
from halfjoin.planner.wants import ALL

SELECTIVE = 16  # average rows of a key; up to this many, an index finds the rows that may cancel
LATER = 1024  # rows; the index of a smaller run is built when it is looked up
CANCEL_FROM = 256  # rows; for fewer, the search for rows that cancel costs more than keeping them


def merge_runs(
    runs: Sequence[Run], since: int, upper: int, live: Mapping[ArrangementKey, KeyColumns], *, final: bool,
    made: bool = False, filters: Mapping[ArrangementKey, RowFilter] | None = None,
) -> Run:  # fmt: skip
    """One run for neighbouring runs. An arrangement's index is merged too if the largest run has it; of a small run,
    if all of them have it: the next lookup builds it at a lower price than that of building one and merging two.

    An index of a large run gets entries only for the rows that `filters` leave.

    Rows that cancel are dropped if the run is `final`, or if it is large and has deletions at or below `since`; also if
    it is small and the rows are `made` by a view or node, which takes away what it made a batch ago.

    Compaction law. Times below `since` may be moved up to `since`, after which equal rows are added up and zeros
    dropped. No read at or above `since` can tell.

    >>> import pyarrow as pa
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
    # Rows with different times cannot cancel, so a deletion cancels only after its time is moved up to `since`.
    tried = (made and len(joined) <= FEW) or len(joined) >= CANCEL_FROM
    kept: Ints | None = None
    if final or (tried and bool(((joined.time == since) & (joined.diff < 0)).any())):
        positions, diffs = cancelled(joined)
        if len(positions) < len(joined):
            kept = np.full(len(joined), -1, np.int64)
            kept[positions] = np.arange(len(positions))
            survivors = joined.take(positions)
            joined = Updates(survivors.columns, survivors.time, diffs)
        elif diffs is not joined.diff:
            joined = Updates(joined.columns, joined.time, diffs)
    merged = make_run(joined, upper)
    merged.filters = filters
    lengths = [len(run.updates.time) for run in runs]
    before = [0, *accumulate(lengths)]
    large = filters and before[-1] >= partial.LARGE
    ready = [key for key in live if not [run for run in runs if key not in run.indexes]]
    if before[-1] >= (LATER if ready else NET_FROM):  # netting wants an index
        largest = runs[lengths.index(max(lengths))]
        ready = [key for key in live if key in largest.indexes]
    for key in ready:
        indexes = [(index, at) for run, at in zip(runs, before, strict=False)
                   for index in run.entries(key, live[key], MINIMUM, None)]  # fmt: skip
        lacking = False
        for index, _ in indexes:  # each batch comes here, so there are no calls
            lacking = lacking or index.partial is not None
        if not lacking and not large:
            merged.indexes[key] = merge(indexes, kept)
            continue
        found = _filtered(runs, before, key, (filters or {}).get(key), upper, kept)
        if found is not None:
            merged.indexes[key] = found
    nets = zip([run.net for run in runs], lengths, strict=True)
    known = laid(list(nets)) if kept is None else Net(MINIMUM)
    merged.net = _net_of(merged, since, upper, known, summed=kept is not None)
    if merged.net.there is not None:
        for key, index in merged.indexes.items():
            merged.indexes[key], merged.gone[key] = index.split(merged.net.there)
    return merged


def side_by_side(runs: Sequence[Run], upper: int) -> Run:
    """One run for several that have no equal rows and are not netted. It has the indexes that all of them have.

    >>> import pyarrow as pa
    >>> runs = [make_run(Updates({"x": pa.array([x])}, np.array([1]), np.array([1])), 2) for x in ("fig", "lime")]
    >>> side_by_side(runs, 2).updates.columns["x"].to_pylist()
    ['fig', 'lime']
    """
    before = [0, *accumulate(map(len, runs))]
    shared = [] if _lacking(runs) else [key for key in runs[0].indexes if all(key in run.indexes for run in runs)]
    indexes = {key: merge([(run.indexes[key], at) for run, at in zip(runs, before, strict=False)], None)
               for key in shared}  # fmt: skip
    return make_run(concat([run.updates for run in runs]), upper, indexes)


def _lacking(runs: Sequence[Run]) -> bool:
    """Whether some index is partial."""
    for run in runs:
        for index in run.indexes.values():
            if index.partial is not None:
                return True
    return False


def _filtered(
    runs: Sequence[Run], before: Sequence[int], key: ArrangementKey, wanted: RowFilter | None, upper: int,
    kept: Ints | None,
) -> Index | None:  # fmt: skip
    """An arrangement's merged index, with the wanted rows (None: all rows).

    None if the index of some run lacks one of these: the next lookup builds the index anew.
    """
    wants = ALL if wanted is None else wanted.wants
    indexes: list[Sequence[Index]] = []
    for run in runs:
        own = [run.indexes[key], *([run.gone[key]] if key in run.gone else [])]
        if not all(one.partial is None or one.partial.serves(wants, upper) for one in own):
            return None
        indexes.append(own if wanted is None else wanted_only(own, wanted, run.updates, upper))
    placed = [(index, at) for each, at in zip(indexes, before, strict=False) for index in each]
    return merge(placed, kept, placed[0][0].partial)


def _net_of(run: Run, since: int, upper: int, known: Net, *, summed: bool) -> Net:
    """The net of the closed updates of a merged run. `summed`: the updates at `since` are added up already.

    With an index that tells most rows apart this is cheap enough for every merge; otherwise it is done now and then.
    """
    updates = run.updates
    if len(run) < NET_FROM or (summed and not ((updates.time > since) & (updates.time < upper)).any()):
        return known
    # A partial index finds no rows that it lacks. They are not netted then, which changes no sum.
    whole = [index for index in run.indexes.values() if index.partial is None]
    best, count = None, 0
    for index in whole or run.indexes.values():
        distinct = index.distinct()
        if best is None or distinct > count:
            best, count = index, distinct
    if best is not None and count * SELECTIVE >= len(best):
        return net(updates, upper, known, best)
    return net(updates, upper, known) if known.due(len(run)) else known
