"""Results that continue from a row beside those at hand: sums, ranks, minima from the first row of a partition to a row
or from a row to the last one.

A batch evaluates some rows of a partition, not those before them and after them. What the partition's results are up to
there is in the results of the last row before, and of the first row after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.added import over_pieces
from halfjoin.engine.reduce.frames import spans
from halfjoin.engine.reduce.partitions import Partitions
from halfjoin.engine.reduce.spans import taken
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.reduce.words import look, ordered_words
from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.updates.updates import Ints, Mask, indices_of
from halfjoin.planner.group_functions import Running, Windows
from halfjoin.planner.reach import numbered_over, sides_of, states_of
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import WindowCall


@dataclass(frozen=True, slots=True)
class Beside:
    """The results of a row beside each group of rows, by the names of their columns. `row`: which of these rows it is;
    -1: the partition has none there."""

    results: Mapping[str, pa.Array]
    row: Ints

    def values(self, name: str) -> pa.Array:
        """A result beside each group, NULL where there is none."""
        return taken(self.results[name], self.row)


@dataclass(frozen=True, slots=True)
class Sides:
    """The last rows before groups of rows, and the first rows after them. None: no result continues from them."""

    before: Beside | None = None
    after: Beside | None = None


WHOLE = Sides()  # the rows are all rows of their partitions


def summed(spec: Windows, part: Running, rows: Partitions, sides: Sides) -> pa.Array:
    """A kept sum at each row: what adds up over the row's frame."""
    kind, groups, last = part.sums.kind, np.arange(len(rows.groups)), sides_of(part.frame)[0] is None
    ((starts, ends),) = spans(part.frame, rows).pieces
    beside, state = (sides.after if last else sides.before), next(filter(None, sides_of(part.frame)))
    column = spec.sums_over(kind, part.sums.args, state)
    began = None if beside is None or column is None else beside.values(column.name)
    if kind == "count" and not part.sums.args:
        return pa.array(ends - starts + (0 if began is None else _counts(began)[rows.numbers]))
    seen = rows.reading(*part.sums.args)
    args = [seen.values(arg) for arg in part.sums.args]
    plain = over_pieces(kind, args, seen.count, [(starts, ends)]) if began is None else None
    if plain is not None:
        return plain.kept()
    own = Totals.lifted(kind, args, seen.count)
    begins = Totals.read(kind, pa.nulls(len(groups), column_type(kind)) if began is None else began)
    firsts = rows.starts[:-1]  # what a group begins with is before its first row
    entries = np.insert(rows.place, rows.starts[1:] if last else firsts, len(rows) + groups)
    every = Totals.concat([own, begins]).take(entries[::-1] if last else entries)
    if last:  # from the last row on, backwards
        running = every.running((len(entries) - rows.starts[1:] - groups - 1)[::-1])
        return running.take(len(entries) - 1 - starts - rows.numbers).kept()
    return every.running(firsts + groups).take(ends + rows.numbers).kept()


def column_type(kind: str) -> pa.DataType:
    """The type of kept sums."""
    return pa.int64() if kind == "count" else pa.binary()


def continued(spec: Windows, call: WindowCall, found: pa.Array, rows: Partitions, sides: Sides) -> pa.Array:
    """The results of a call over the partitions, given those over the rows at hand alone."""
    before, after = states_of(call)
    if sides.before is not None:
        if call.function == "rank":
            return pa.array(raw(found) + _numbers(spec, call, sides.before)[rows.numbers])
        if call.function == "dense_rank":
            return pa.array(raw(found) + _counts(sides.before.values(spec.kept(call).name))[rows.numbers])
        if before is not None:
            found = _joined(call, found, rows, sides.before, spec.kept(before), "last_value")
    if sides.after is not None and after is not None:
        found = _joined(call, found, rows, sides.after, spec.kept(after), "first_value")
    return found


def _numbers(spec: Windows, call: WindowCall, before: Beside) -> Ints:
    """The number of the row before each group."""
    frame = numbered_over(call)
    column = None if frame is None else spec.sums_over("count", (), frame)
    assert column is not None  # it is kept where there are ranks
    return _counts(before.values(column.name))


def _joined(
    call: WindowCall, found: pa.Array, rows: Partitions, beside: Beside, column: Column, near: str
) -> pa.Array:
    """The results over the rows at hand and those on one side of them. `near`: the function that prefers a value among
    the rows at hand to one on that side; the opposite one prefers the other."""
    state, number = beside.values(column.name), rows.numbers
    if call.function in ("min", "max"):
        later, equal = _compared(found, state, number, descending=call.function == "max")
        further = later | equal if near == "last_value" else later  # of equal values the first is the result
        return _replaced(found, valid(state)[number] & (further | ~valid(found)), state, number)
    of_near = call.function == near or (call.function == "any_value" and near == "first_value")
    if call.ignore_nulls or call.function == "any_value":
        replaced = ~valid(found) if of_near else valid(state)[number]
    elif of_near:
        replaced = (spans(call.frame, rows).sizes == 0) & (beside.row >= 0)[number]
    else:
        replaced = (beside.row >= 0)[number]
    return _replaced(found, replaced, state, number)


def _counts(values: pa.Array) -> Ints:
    return np.where(valid(values), raw(values), 0)


def _replaced(found: pa.Array, mask: Mask, before: pa.Array, group: Ints) -> pa.Array:
    """The results, and where the mask is true what was before the row's group."""
    places = np.where(mask, len(found) + group, np.arange(len(found)))
    return pa.concat_arrays([found, before]).take(indices_of(places))


def _compared(found: pa.Array, beside: pa.Array, group: Ints, *, descending: bool) -> tuple[Mask, Mask]:
    """Whether a result comes in the order after what is beside the row's group, and whether it equals it."""
    later, equal = np.zeros((2, len(found)), np.bool_)
    equal[:] = True
    both = pa.concat_arrays([found, beside])
    for word in (*ordered_words(both, descending), *look(both)):
        own, other = word[: len(found)], word[len(found) :][group]
        later |= equal & (own > other)
        equal &= own == other
    return later, equal
