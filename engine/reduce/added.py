"""Aggregates that add up, over rows at hand: those that DISTINCT left, or those of a window's frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar import evaluate
from halfjoin.engine.scalar.failures import Failed
from halfjoin.sql.expr import Column
from halfjoin.sql.functions.aggregates import Decomposed


def added(sums: Decomposed, groups: Groups) -> pa.Array:
    """The aggregate's value for each group. Over no rows it is NULL, or 0 for a count.

    Raises:
        Failed: a result is out of range; the mask marks the groups.
    """
    kept = []
    for part in sums.parts:
        args = [groups.values(arg) for arg in part.args]
        # A zero for each group comes before its rows, so that no group is empty.
        nothing = [pa.nulls(len(groups), arg.type) for arg in args]
        zeros = Totals.lifted(part.kind, nothing, np.zeros(len(groups), np.int64))
        all_rows = Totals.concat([Totals.lifted(part.kind, args, groups.count), zeros])
        at = np.insert(np.arange(len(groups.count)), groups.starts[:-1], len(groups.count) + np.arange(len(groups)))
        starts = groups.starts[:-1] + np.arange(len(groups))
        kept.append(all_rows.take(at).added(starts).kept())
    return result(sums, kept)


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
        mask = np.zeros(len(kept[0]), np.bool_)
        mask[found.failures.rows] = True
        raise Failed(str(found.failures.messages[0]), mask)
    return found.values
