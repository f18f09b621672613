"""Aggregates that add up, over rows at hand: those that DISTINCT left, or those of a window's frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce import at_once
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.spans import Spans, taken
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar import evaluate
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.wide import Wide
from halfjoin.engine.updates.updates import Ints
from halfjoin.sql.expr import Column
from halfjoin.sql.functions.aggregates import Decomposed, Part


def added(sums: Decomposed, groups: Groups) -> pa.Array:
    """The aggregate's value for each group. Over no rows it is NULL, or 0 for a count.

    Raises:
        Failed: a result is out of range; the mask marks the groups.
    """
    starts = groups.starts[:-1] + np.arange(len(groups))
    return result(sums, [lifted(part, groups).added(starts).kept() for part in sums.parts])


def over_spans(sums: Decomposed, groups: Groups, numbers: Ints, frame: Spans) -> pa.Array:
    """The aggregate's value over the frame of each row; `numbers`: the group that the frame is in.

    It is what adds up before the end of a span, minus what adds up before its start. All from the start of the group
    needs no difference.

    Raises:
        Failed: a result is out of range; the mask marks the rows.
    """
    kept = list[pa.Array]()
    for part in sums.parts:
        plain = over_pieces(part.kind, [groups.values(arg) for arg in part.args], groups.count, frame.pieces)
        kept.append((_over(part, groups, numbers, frame) if plain is None else plain).kept())
    return result(sums, kept)


def _over(part: Part, groups: Groups, numbers: Ints, frame: Spans) -> Totals:
    """What adds up over the frame of each row."""
    starts = groups.starts[:-1] + np.arange(len(groups))
    from_first = len(frame.pieces) == 1 and bool((frame.pieces[0][0] == groups.starts[numbers]).all())
    if from_first:
        return lifted(part, groups).running(starts).take(frame.pieces[0][1] + numbers)
    length = len(groups.count) + len(groups)
    sides = [side + numbers for start, end in frame.pieces for side in (end, start + length)]
    at, firsts = np.stack(sides, axis=1).ravel(), np.arange(len(numbers)) * len(sides)
    both = [lifted(part, groups, sign).running(starts) for sign in (1, -1)]
    return Totals.concat(both).take(at).added(firsts)


def over_pieces(
    kind: str, arrays: Sequence[pa.Array], diffs: Ints, pieces: Sequence[tuple[Ints, Ints]]
) -> Totals | None:
    """What rows add up to from one position to another, for each piece, all pieces of a span together; None if what all
    rows add up to may not be an int64."""
    whole = at_once.numbers_added(kind, arrays, diffs, len(diffs)) if len(diffs) >= at_once.FROM else None
    if whole is None:
        return None
    if isinstance(whole, int):
        found = whole * np.add.reduce([end - start for start, end in pieces])
    else:
        before = np.append(0, whole.cumsum())
        found = np.add.reduce([before[end] - before[start] for start, end in pieces])
    return Totals(kind, Wide.of(found))


def lifted(part: Part, groups: Groups, sign: int = 1) -> Totals:
    """What each row adds, times `sign`, with a zero before the rows of each group; so no group is empty."""
    zeros = groups.starts[:-1]
    at = np.insert(np.arange(len(groups.count)), zeros, -1)
    args = [taken(groups.values(arg), at) for arg in part.args]
    return Totals.lifted(part.kind, args, np.insert(sign * groups.count, zeros, 0))


def result(sums: Decomposed, kept: Sequence[pa.Array]) -> pa.Array:
    """The aggregate's values from the kept columns of its sums.

    Raises:
        Failed: a value is out of range; the mask marks the rows.
    """
    columns = [Column(str(number), part.type) for number, part in enumerate(sums.parts)]
    found = evaluate.compile(sums.result(columns)).evaluate(
        {column.name: array for column, array in zip(columns, kept, strict=True)}, len(kept[0])
    )
    if found.failures is not None:
        raise Failed.of(found.failures, len(kept[0]))
    return found.values
