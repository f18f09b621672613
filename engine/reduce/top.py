"""The first rows of each group in an order, which LIMIT, OFFSET and FETCH ask for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from halfjoin.engine.reduce.foremost import foremost, middle
from halfjoin.engine.reduce.groups import Groups, starts_of
from halfjoin.engine.reduce.sorting import sort
from halfjoin.engine.updates.updates import MAXIMUM, Ints, Mask, where_true
from halfjoin.planner.group_functions import Top


def evaluate(spec: Top, groups: Groups) -> tuple[Ints, Ints]:
    """The positions of the rows that are there, in order, group after group; and how many copies of each.

    A row with `count` copies takes as many places. `with_ties`: also the rows that tie in the sort keys with the last.

    >>> import pyarrow as pa
    >>> from halfjoin.sql.expr import Column
    >>> from halfjoin.sql.relation import SortKey
    >>> from halfjoin.sql.types import BIGINT
    >>> groups = Groups({"x": pa.array([3, 1, 2, 7])}, np.array([1, 2, 5, 1]), np.array([0, 3, 4]))
    >>> positions, counts = evaluate(Top((SortKey(Column("x", BIGINT)),), limit=3, offset=1), groups)
    >>> positions.tolist(), counts.tolist()  # of 1 1 2 2 2 2 2 3, and of 7
    ([1, 2], [1, 2])
    """
    if spec.limit == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if spec.limit is None:
        return _of_sorted(spec, groups)
    behind = middle(groups, spec.order, spec.offset, spec.limit, with_ties=spec.with_ties)
    if behind is not None:
        rows, skipped = behind
        rest = groups.take(rows, np.array([0, len(rows)]))
        positions, taken = _of_sorted(replace(spec, offset=spec.offset - skipped), rest)
        return rows[positions], taken
    few = foremost(groups, spec.order, spec.offset + spec.limit, with_ties=spec.with_ties)
    if few is None:
        return _of_sorted(spec, groups)
    positions, taken = _of_sorted(spec, groups.take(few, starts_of(groups.numbers[few], len(groups))))
    return few[positions], taken


def _of_sorted(spec: Top, groups: Groups) -> tuple[Ints, Ints]:
    """As `evaluate`, where all rows are put in order."""
    found = sort(groups, spec.order)
    positions, count = found.positions, groups.count[found.positions]
    last = MAXIMUM if spec.limit is None else min(spec.offset + spec.limit, MAXIMUM)
    offset = min(spec.offset, MAXIMUM)
    # Copies beyond the last place need no number. So the running sums stay small.
    capped = np.minimum(count, offset if spec.limit is None else last)
    ends = np.cumsum(capped)
    before = ends - capped
    first = np.repeat(groups.starts[:-1], np.diff(groups.starts))
    before = before - before[first]
    skipped = np.clip(offset - before, 0, count)
    taken = count - skipped
    if spec.limit is not None:
        reached = np.minimum(before + capped, last) - np.maximum(before, offset)
        taken = np.maximum(reached, 0)
        if spec.with_ties:
            taken = np.where(_ties(found.new, before, last), count - skipped, taken)
    kept = taken > 0
    return positions[kept], taken[kept]


def _ties(new: Mask, before: Ints, last: int) -> Mask:
    """Whether a row's peers begin before the last place, so all of them are there."""
    peers = np.cumsum(new) - 1
    within: Mask = before[where_true(new)][peers] < last
    return within
