"""Results that continue from the row before: sums and ranks from the first row of a partition, running minima.

A batch evaluates some rows of a partition, not those before them. What the partition's results are up to there is in
the results of the last row before, which is the *start* of the rows at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.partitions import Partitions
from halfjoin.engine.reduce.spans import taken
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.reduce.words import ordered_words
from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.updates.updates import Ints, Mask, indices_of
from halfjoin.planner.group_functions import Running, Windows
from halfjoin.planner.reach import reach_of
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import WindowCall


@dataclass(frozen=True, slots=True)
class Starts:
    """The results of the last row before each group of rows, by the names of their columns. `row`: which of these rows
    is before each group; -1: the group begins its partition."""

    results: Mapping[str, pa.Array]
    row: Ints

    def values(self, name: str) -> pa.Array:
        """A result before each group, NULL where there is none."""
        return taken(self.results[name], self.row)


def summed(part: Running, rows: Partitions, starts: Starts | None) -> pa.Array:
    """A kept sum at each row: what adds up from the first row of the partition to the row, or to the last of its peers.
    """
    kind, name, groups = part.sums.kind, part.sums.column.name, np.arange(len(rows.groups))
    ends = rows.peer_end if part.peers else rows.place + 1
    if kind == "count" and not part.sums.args:
        number = ends - rows.first
        return pa.array(number if starts is None else number + _counts(starts.values(name))[rows.numbers])
    seen = rows.reading(*part.sums.args)
    own = Totals.lifted(kind, [seen.values(arg) for arg in part.sums.args], seen.count)
    type = pa.int64() if kind == "count" else pa.binary()
    begins = Totals.read(kind, pa.nulls(len(groups), type) if starts is None else starts.values(name))
    firsts = rows.starts[:-1]  # what a group begins with is before its first row
    whole = Totals.concat([own, begins]).take(np.insert(rows.place, firsts, len(rows) + groups))
    return whole.running(firsts + groups).take(ends + rows.numbers).kept()


def continued(
    spec: Windows, column: Column, call: WindowCall, found: pa.Array, rows: Partitions, starts: Starts
) -> pa.Array:
    """The results of a call over the partitions, given those over the rows at hand alone."""
    reach = reach_of(call)
    if reach is None or not reach.running:
        return found
    if call.function == "rank":
        assert spec.number is not None  # it is kept where there are ranks
        return pa.array(raw(found) + _counts(starts.values(spec.number.name))[rows.numbers])
    before = starts.values(column.name)
    match call.function:
        case "dense_rank":
            return pa.array(raw(found) + _counts(before)[rows.numbers])
        case "first_value" if not call.ignore_nulls:
            earlier = starts.row >= 0
        case "first_value" | "any_value":
            earlier = valid(before)
        case "last_value" if call.ignore_nulls:
            return _replaced(found, ~valid(found), before, rows.numbers)
        case "min" | "max":
            later = _is_later(found, before, rows.numbers, descending=call.function == "max")
            return _replaced(found, valid(before)[rows.numbers] & (later | ~valid(found)), before, rows.numbers)
        case _:
            return found
    return _replaced(found, earlier[rows.numbers], before, rows.numbers)


def _counts(values: pa.Array) -> Ints:
    return np.where(valid(values), raw(values), 0)


def _replaced(found: pa.Array, mask: Mask, before: pa.Array, group: Ints) -> pa.Array:
    """The results, and where the mask is true what was before the row's group."""
    places = np.where(mask, len(found) + group, np.arange(len(found)))
    return pa.concat_arrays([found, before]).take(indices_of(places))


def _is_later(found: pa.Array, before: pa.Array, group: Ints, *, descending: bool) -> Mask:
    """Whether a result comes in the order after what was before the row's group, or equals it."""
    later, equal = np.zeros((2, len(found)), np.bool_)
    equal[:] = True
    for word in ordered_words(pa.concat_arrays([found, before]), descending):
        own, other = word[: len(found)], word[len(found) :][group]
        later |= equal & (own > other)
        equal &= own == other
    return later | equal
