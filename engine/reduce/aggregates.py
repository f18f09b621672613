"""Aggregates of groups: a row is kept for each group, and changes by what a batch adds and retracts.

State law. What adds up needs no more than the kept row: the new sums are the old ones and what the updates add. A value
that needs the whole group is computed from the group's rows at each moment.

A group is there while its count of rows is not 0. If some of its rows have negative counts, the counts can add up to 0
although the rows do not cancel. Then the row is kept, as the sums are needed later, and the group is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.failures import NO_ERRORS
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce.contents import Contents, of_groups
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.lifted import Lifted, sums_of
from halfjoin.engine.reduce.over_time import at_moments
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar.values import valid
from halfjoin.engine.updates.updates import (
    Ints,
    Mask,
    Updates,
    chained,
    constant,
    gather,
    indices_of,
    taken,
    where_true,
)
from halfjoin.planner.group_functions import Aggregates, Sums
from halfjoin.sql.types import BIGINT

_UNCANCELLED = "the counts of a group's rows add up to 0, but the rows do not cancel: some have negative counts"


def aggregated(
    function: Aggregates, lifted: Lifted | None, moments: Moments, kept: Mapping[str, pa.Array] | None,
    contents: Sequence[Contents | pa.Array | None], registry: Registry,
) -> tuple[Updates, Updates]:  # fmt: skip
    """The updates of an aggregate's output, and of errors of groups whose rows do not cancel.

    `lifted`: what the input's updates add, None if there are none. `kept`: the columns kept for each group, NULL where
    no row is kept; None if the output is empty so far. `contents`: what each part that does not add up sees of the
    groups, or its values at the moments; None if these are the kept ones. `registry` has the user's aggregates.
    """
    answers = taken(moments.keys, moments.group)
    for number, part in enumerate(sums_of(function)):
        answers[part.column.name] = _sum(part, number, lifted, moments, kept)
    for one, seen in zip(function.ordered, contents, strict=True):
        if seen is None:
            assert kept is not None  # otherwise no value was there
            answers[one.column.name] = moments.of_groups(kept[one.column.name])
            continue
        if not isinstance(seen, Contents):
            answers[one.column.name] = seen
            continue
        made = at_moments(one, seen, registry)
        if kept is not None:  # what was is there as it was kept
            places = np.where(moments.was, moments.group, moments.groups + np.arange(len(moments)))
            made = gather(chained([kept[one.column.name], made]), indices_of(places))
        answers[one.column.name] = made
    there, errors = answers[function.count.name].to_numpy() != 0, NO_ERRORS
    if not moments.keys:  # the only group is always there
        there |= ~moments.was if kept is None else True
    else:
        empties = where_true(~there & _held(function, moments, kept))
        left = empties[_is_left(function, answers, contents, empties)] if len(empties) else empties
        there[left], errors = True, of_groups(moments, left, _UNCANCELLED) if len(left) else errors
    moment = where_true(there)
    rows = answers
    if len(moment) < len(moments):
        rows = taken(answers, moment)
    return moments.changes(rows, moment, constant(1, len(moment)), distinct=True), errors


def each_once(function: Aggregates, lifted: Lifted) -> Updates | None:
    """The updates of the output of sums, which was empty, from what each group adds at one time. None: a group is an
    error, as the counts of its rows add up to 0, but another sum does not."""
    counts = lifted.total(0).kept()
    there = counts.to_numpy() != 0
    sums = {part.column.name: lifted.total(number).kept() for number, part in enumerate(function.sums, 1)}
    rows = Updates({**lifted.rows.columns, function.count.name: counts, **sums}, lifted.rows.time,
                   constant(1, len(counts)))  # fmt: skip
    if there.all():
        return rows
    empty = where_true(~there)
    if any(_is_something(gather(sum, indices_of(empty))).any() for sum in sums.values()):
        return None
    return rows.take(where_true(there))


def _held(function: Aggregates, moments: Moments, kept: Mapping[str, pa.Array] | None) -> Mask:
    """The moments at which something of a group can be left: those after an update, and what was, where it was kept."""
    held: Mask = ~moments.was
    if kept is not None:
        held[moments.was] = valid(kept[function.count.name])  # one moment a group, in their order
    return held


def _is_left(
    function: Aggregates, answers: Mapping[str, pa.Array], contents: Sequence[Contents | pa.Array | None], moment: Ints
) -> Mask:
    """Whether a group, at these moments, has a sum that is not zero, or rows that a value is computed from."""
    left = np.zeros(len(moment), np.bool_)
    for part in function.sums:
        left |= _is_something(answers[part.column.name])[moment]
    for seen in contents:
        if not isinstance(seen, Contents):  # the row with the value is there
            return np.ones(len(moment), np.bool_)
        left |= seen.sizes[moment] > 0
    return left


def _is_something(sums: pa.Array) -> Mask:
    """Which kept sums are not 0: a count is a number, and any other sum of 0 is no byte (`engine.scalar.kept`)."""
    if sums.type == pa.int64():
        there: Mask = sums.to_numpy() != 0
        return there
    offsets = np.frombuffer(sums.buffers()[1], np.int32)[sums.offset : sums.offset + len(sums) + 1]
    return np.diff(offsets) > 0


def _sum(
    part: Sums, number: int, lifted: Lifted | None, moments: Moments, kept: Mapping[str, pa.Array] | None
) -> pa.Array:
    """A sum at each moment: what was kept for the group, and what the updates up to the moment add."""
    name, kind = part.column.name, part.kind
    if lifted is not None and lifted.parts:
        found = lifted.parts[number].running(moments, None if kept is None else kept[name])
        if found is not None:
            return found
    added = [] if lifted is None else [lifted.added(number, moments)]
    type = pa.int64() if part.column.type == BIGINT else pa.binary()
    old = pa.nulls(moments.groups, type) if kept is None else kept[name]
    begins = [Totals.read(kind, pa.nulls(1, type))] if moments.begins else []
    whole = Totals.concat([Totals.read(kind, old), *begins, *added])
    return whole.take(moments.interleaved()).running(where_true(moments.was)).kept()
