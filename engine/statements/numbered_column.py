"""ADD COLUMN of a serial or an identity: the rows that are there get numbers.

A number belongs to a row for as long as it is there. Of rows that are equal each gets its own: the first of them is
there while there is one or more, the second while there are two or more, and so on.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import Sequence
from halfjoin.engine.updates.consolidate import groups
from halfjoin.engine.updates.updates import Ints, Updates


def numbered(updates: Updates, column: str, sequence: Sequence, upper: int, type: pa.DataType
             ) -> tuple[Updates, Sequence]:  # fmt: skip
    """The whole history of a table with a numbered column, and the sequence as it goes on. Rows that are there now have
    the first numbers, in the order in which they came.

    Raises:
        UnsupportedSQL: the sequence comes to its end.

    >>> history = Updates({"a": pa.array(["x", "y", "y", "x"])}, np.array([1, 2, 2, 3]), np.array([1, 1, 1, -1]))
    >>> made, _ = numbered(history, "n", Sequence(name="q", next=1), 4, pa.int64())
    >>> sorted(zip(*(made.columns[name].to_pylist() for name in "an"), made.time.tolist(), made.diff.tolist()))
    [('x', 3, 1, 1), ('x', 3, 3, -1), ('y', 1, 2, 1), ('y', 2, 2, 1)]
    """
    code = groups(list(updates.columns.values()), len(updates))
    order = np.lexsort((updates.time, code))
    group, time = code[order], updates.time[order]
    begins = np.diff(group, prepend=-1) != 0
    total = np.cumsum(updates.diff[order])
    starts = np.flatnonzero(begins)
    base = np.repeat(np.concatenate([[0], total[starts[1:] - 1]]) if len(starts) else total[:0],
                     np.diff(np.append(starts, len(group))))  # fmt: skip
    last = np.append((group[1:] != group[:-1]) | (time[1:] != time[:-1]), True)[: len(group)]  # of its row and time
    group, time, count, order = group[last], time[last], (total - base)[last], order[last]
    before = np.roll(count, 1)
    before[np.diff(group, prepend=-1) != 0] = 0

    # The copies of a row are 1, 2, ..., or -1, -2, ... below zero. A change of the count brings or takes some of them.
    places, copies, diffs = [], [], []
    for sign in (1, -1):
        low, high = np.maximum(sign * before, 0), np.maximum(sign * count, 0)
        some = np.abs(high - low)
        place = np.repeat(np.arange(len(count)), some)
        within = np.arange(len(place)) - np.repeat(np.cumsum(some) - some, some)
        places.append(place)
        copies.append(sign * (np.minimum(low, high)[place] + within + 1))
        diffs.append(sign * np.sign(high - low)[place])
    place, copy, diff = np.concatenate(places), np.concatenate(copies), np.concatenate(diffs)
    came = np.argsort(order[place], kind="stable")  # the rows stay in the order in which they came
    place, copy, diff = place[came], copy[came], diff[came]

    _, first, which = np.unique(np.stack([group[place], copy]), axis=1, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    now = np.zeros(len(first), np.int64)
    np.add.at(now, which[time[place] < upper], diff[time[place] < upper])
    ranks = np.empty(len(now), np.int64)
    ranks[np.lexsort((first, now == 0))] = np.arange(len(now))
    given: Ints = np.asarray(sequence.numbers(sequence.next, len(now)), np.int64)
    made = updates.take(order[place])
    numbers = pa.array(given[ranks[which]]).cast(type)
    following = sequence.next if not len(given) else int(given[-1]) + sequence.step
    return (Updates({**made.columns, column: numbers}, time[place], diff),
            sequence.model_copy(update={"next": following}))  # fmt: skip
