"""Percentiles and modes of groups whose rows all are there at one time, each once: from sorted numbers.

Then the values of a group need no rows beside them. A row's group and its value become one number, and these are sorted
alone, in a fraction of the time that it takes to put rows in order. Where rows go, or come as copies, or values are no
such numbers, the groups' rows are read in order (`ordered`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.arguments import Arguments
from halfjoin.engine.reduce.at_once import is_one, tells_apart
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.lifted import Lifted, lift_all
from halfjoin.engine.reduce.ordered import constant_fractions, of_sorted
from halfjoin.engine.reduce.percentiles import mode
from halfjoin.engine.reduce.words import of_word, only_word
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import mask_of, valid
from halfjoin.engine.updates import consolidate
from halfjoin.engine.updates.radix import argsort, of_integers
from halfjoin.engine.updates.updates import Ints, Updates, constant, gather, indices_of, taken
from halfjoin.planner.group_functions import Aggregates, Ordered
from halfjoin.sql.expr import Column, columns_of
from halfjoin.sql.functions.aggregates import ORDERED_SETS

_GROUP = "#group"  # no SQL column has this name


@dataclass(frozen=True, slots=True)
class Quantiles:
    """For each part its value for each entry of sums."""

    values: Sequence[pa.Array]

    def at(self, moments: Moments) -> list[pa.Array]:
        """The value of each part at each moment of the entries."""
        places = np.full(len(moments), -1)
        places[moments.moment_of_rows] = np.arange(len(moments.rows))
        found = pa.array(places, mask=places < 0)
        return [one.take(found) for one in self.values]


def are_quantiles(function: Aggregates) -> bool:
    """Whether what does not add up in an aggregate are modes, and percentiles at places that no row tells."""
    return all(one.function in ORDERED_SETS and not any(map(columns_of, one.args))
               and isinstance(one.order[0].expr, Column) for one in function.ordered)  # fmt: skip


def quantiles_and_sums(
    function: Aggregates, keys: Sequence[str], updates: Updates
) -> tuple[Lifted, Quantiles] | None:
    """What the groups of all rows add to sums, and their quantiles. None: their rows must be read in order."""
    arrays = [updates.columns[name] for name in keys]
    if not are_quantiles(function) or not (is_one(updates.time) and is_one(updates.diff) and updates.diff[0] == 1):
        return None
    if not all(tells_apart(array.type) for array in arrays):
        return None
    group = consolidate.groups(arrays, len(updates)) if keys else constant(0, len(updates))
    entries = lift_all(function, [_GROUP], [updates.with_columns({_GROUP: indices_of(group)})])
    assert entries is not None  # there are rows
    numbers = entries.rows.columns[_GROUP].to_numpy()
    firsts = np.empty(len(numbers), np.int64)
    firsts[group[::-1]] = np.arange(len(group))[::-1]  # of the rows of a group, the first one is written last
    by_key = taken(dict(zip(keys, arrays, strict=True)), firsts[numbers])
    values = list[pa.Array]()
    for part in function.ordered:
        found = _values(part, updates, group, len(numbers))
        if found is None:
            return None
        values.append(gather(found, indices_of(numbers)))
    return Lifted(Updates(by_key, entries.rows.time, entries.rows.diff), entries.totals), Quantiles(values)


def _values(part: Ordered, updates: Updates, group: Ints, groups: int) -> pa.Array | None:
    """The part's value for each group; None if the rows must be read in order."""
    (key,) = part.order
    assert isinstance(key.expr, Column)
    column = updates.columns[key.expr.name]
    there = valid(column)
    if part.condition is not None:
        there &= mask_of(updates.columns[part.condition.name])
    if not there.all():
        column, group = column.filter(pa.array(there)), group[there]
    word = only_word(column)
    if word is None:
        return None
    starts = np.append(0, np.bincount(group, minlength=groups).cumsum())
    ordered = of_word(_sorted(group, ~word if key.descending else word), column.type, descending=key.descending)
    rows = Arguments((ordered,), constant(1, len(word)), starts)
    try:
        return mode(rows) if part.function == "mode" else of_sorted(part, rows, constant_fractions(part))
    except Failed:  # the other way finds what is an error
        return None


def _sorted(group: Ints, values: Ints) -> Ints:
    """The values of each group in order, group after group."""
    if not len(values):
        return values
    of_group, of_value = of_integers(group), of_integers(values)
    if of_group.bits + of_value.bits > 64:
        return values[argsort([of_group, of_value], len(values))]
    bits = np.uint64(of_value.bits)
    numbers = of_value.numbers if not of_group.bits else of_group.numbers << bits | of_value.numbers
    numbers = np.sort(numbers)
    if of_group.bits:
        numbers &= (np.uint64(1) << bits) - np.uint64(1)
    found: Ints = numbers.view(np.int64) + values.min()
    return found
