"""Finds the rows among which the first ones of each group are, before all their columns are put in order.

`row_number() OVER (PARTITION BY customer ORDER BY at DESC) = 1` and DISTINCT ON want few rows of a group. The keys of
the groups and the first key of the order tell which rows may be among these; only they are copied, group after group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from halfjoin.engine.arrange.run import Run
from halfjoin.engine.kernels import summing
from halfjoin.engine.reduce.front import Wanted
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.words import differ, ordered_words
from halfjoin.engine.updates.radix import argsort, of_integers, words
from halfjoin.engine.updates.updates import MINIMUM, Ints, Updates, some_below_zero, where_true
from halfjoin.sql.expr import columns_of

FROM = 1 << 14  # rows; of fewer, all are put in order


def leaders(updates: Updates, keys: Sequence[str], wanted: Wanted) -> Ints | None:
    """The rows among which the first ones of each group are, ascending. None: it is better to put all in order.

    All updates are there at one time.
    """
    rows = len(updates)
    if rows < FROM or not wanted.order or wanted.subject is not None or some_below_zero(updates.diff):
        return None
    first, arrays = wanted.order[0], [updates.columns[name] for name in keys]
    values = Groups(updates.columns, updates.diff, np.array([0, rows])).values(first.expr)
    by_order = ordered_words(values, first.descending, first.nulls_first)
    numbered = summing.groups(arrays, None, rows) if wanted.limit == 1 and len(by_order) == 1 and keys else None
    if numbered is not None:
        group, firsts = numbered
        least = by_order[0][firsts]
        np.minimum.at(least, group, by_order[0])
        return where_true(by_order[0] == least[group]) if 2 * len(firsts) <= rows else None
    by_key = words(arrays)
    order = argsort([*by_key, *map(of_integers, by_order)], rows)
    starts = where_true(differ([word.numbers[order] for word in by_key], rows))
    sizes = np.diff(starts, append=rows)
    if 2 * len(starts) * wanted.limit > rows:
        return None
    last = order[starts + np.minimum(sizes, wanted.limit) - 1]  # the last one that is wanted, of each group
    group = np.arange(len(starts)).repeat(sizes)
    place = np.arange(rows) - starts.repeat(sizes)
    found = place < wanted.limit
    ties = where_true(~found)
    for word in by_order:  # those behind it that tie with it
        ties = ties[word[order[ties]] == word[last[group[ties]]]]
    found[ties] = True
    return np.sort(order[found])


def leaders_of(run: Run, keys: Sequence[str], wanted: Wanted, upper: int, closed: int) -> Ints:
    """As `leaders`, of a run's rows below `upper` that are there; all of these if it is better to put all in order."""
    read = {*keys, *(columns_of(wanted.order[0].expr) if wanted.order else ())}
    rows, updates = run.left(closed), run.updates.select(name for name in run.updates.columns if name in read)
    if not updates.within(MINIMUM, upper):
        rows = where_true(updates.time < upper) if rows is None else rows[updates.time[rows] < upper]
    some = updates if rows is None else updates.take(rows)
    found = leaders(Updates(some.columns, some.time, run.diffs(np.arange(len(run)) if rows is None else rows, closed)),
                    keys, wanted)  # fmt: skip
    if found is None:
        return np.arange(len(run)) if rows is None else rows
    return found if rows is None else rows[found]
