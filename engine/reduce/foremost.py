"""Finds the rows among which the first ones of an order are, so that only these are put in order.

Of many rows few are asked for. A row is not among the first k if k rows come before it, and the first key alone tells
that of nearly all rows. Only rows that tie with the k-th one are compared by the next key. Of the rows behind an OFFSET
the first key tells so, too, where it differs between the first and the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.words import ordered_words
from halfjoin.engine.updates.intervals import has_intervals
from halfjoin.engine.updates.updates import Ints, gather, indices_of, where_true
from halfjoin.sql.relation import SortKey

FROM = 1 << 12  # rows; fewer are sorted as fast
_SAMPLE = 1 << 14  # rows
_SHARE = 8  # what is asked for is at most this part (1/8) of the rows; of more, all are sorted


def foremost(groups: Groups, order: Sequence[SortKey], wanted: int, *, with_ties: bool) -> Ints | None:
    """Positions in ascending order, among which the first `wanted` rows of each group are, in the order of
    `sorting.sort`; and those that tie with the last in the sort keys, if asked. None: it is better to sort all."""
    length = len(groups.count)
    if length < FROM:
        return None
    if len(groups) > 1:
        return _least(groups, order[0]) if wanted == 1 and order else None
    if not 0 < wanted <= length // _SHARE:
        return None
    before, tied, left = list[Ints](), np.arange(length), wanted
    for key in (*order, *(() if with_ties else groups.columns)):
        if len(tied) < FROM:
            break
        words = _words(groups, key, tied)
        while words:
            word, *words = words
            bound = _smallest(word, left)
            less, same = where_true(word < bound), where_true(word == bound)
            before.append(tied[less])
            tied, left = tied[same], left - len(less)
            words = [one[same] for one in words]
        if isinstance(key, str) and has_intervals(groups.columns[key].type):
            break  # rows that tie come in the order of how equal intervals look, before the next column counts
    return np.sort(np.concatenate([*before, tied]))


def middle(
    groups: Groups, order: Sequence[SortKey], offset: int, wanted: int, *, with_ties: bool
) -> tuple[Ints, int] | None:
    """Positions in ascending order, among which the rows are that follow `offset` others in the order of
    `sorting.sort`, and those that tie with the last of them in the sort keys, if asked; and how many of the others are
    left out. None: it is better to sort all, or some rows have copies."""
    length = len(groups.count)
    if min(length, offset) < FROM or len(groups) > 1 or not 0 < wanted <= length // _SHARE:
        return None
    if not bool((groups.count == 1).all()):
        return None
    rows, skipped = np.arange(length), 0
    for key in (*order, *(() if with_ties else groups.columns)):
        words = _words(groups, key, rows)
        while words:
            word, *words = words
            place = offset - skipped
            if place >= len(rows):
                return rows[:0], skipped
            ends = np.partition(word, [place, min(place + wanted, len(rows)) - 1])
            least, most = ends[place], ends[min(place + wanted, len(rows)) - 1]
            skipped += int(np.count_nonzero(word < least))
            kept = where_true((word >= least) & (word <= most))
            rows, words = rows[kept], [one[kept] for one in words]
            if least != most or len(rows) < FROM:
                return rows, skipped
        if isinstance(key, str) and has_intervals(groups.columns[key].type):
            break  # as above
    return rows, skipped


def _least(groups: Groups, key: SortKey) -> Ints:
    """The rows of each group with the least word of the key."""
    word = ordered_words(groups.values(key.expr), key.descending, key.nulls_first)[0]
    sizes = np.diff(groups.starts)
    some = sizes > 0
    least = np.minimum.reduceat(word, groups.starts[:-1][some])
    return where_true(word == least.repeat(sizes[some]))


def _words(groups: Groups, key: SortKey | str, rows: Ints) -> list[Ints]:
    """Words of rows, ascending, by a sort key or a column."""
    column = groups.columns[key] if isinstance(key, str) else groups.values(key.expr)
    column = column if len(rows) == len(column) else gather(column, indices_of(rows))
    return ordered_words(column) if isinstance(key, str) else ordered_words(column, key.descending, key.nulls_first)


def _smallest(word: Ints, place: int) -> Ints:
    """The number at a place, from 1, in ascending order. The one at that place in a part is not below it."""
    if len(word) > 4 * _SAMPLE and place <= _SAMPLE:
        word = word[word <= np.partition(word[:: len(word) // _SAMPLE], place - 1)[place - 1]]
    found: Ints = np.partition(word, place - 1)[place - 1]
    return found
