"""The least and the greatest values of all rows of a collection, found where they lie: no row is copied.

Of a table that batches have changed, a query sees each run without the rows that have gone, so it would copy those that
are left. A kernel passes over the others instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.run import Run
from halfjoin.engine.kernels import native, summing
from halfjoin.engine.reduce.extremes import Extremes, are_extremes, extremes_of, of_all
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.planner.group_functions import Aggregates


def extremes_in_place(function: Aggregates, runs: Sequence[Run], upper: int, closed: int) -> Extremes | None:
    """The extremes of all rows, as of one time. None: some update is open or takes rows away, no row is left, or there
    is no kernel for a column."""
    if not native.on or closed < upper or not function.ordered or not are_extremes(function):
        return None
    if not all(run.latest < closed and _only_comes(run, closed) for run in runs):
        return None
    if not any(len(run) > run.hidden for run in runs):
        return None
    found = list[pa.Array]()
    for part in function.ordered:
        (column,), ends = extremes_of([part]), list[pa.Array]()
        for run in runs:
            array = run.updates.columns[column]
            row = summing.extreme(array, None if run.net is None else run.net.there, part.function == "max")
            if row is None:
                return None
            ends.append(array.slice(max(row, 0), int(row >= 0)))
        found.append(of_all(part, pa.concat_arrays(ends)))
    return Extremes(Updates({}, constant(closed - 1, 1), constant(1, 1)), function.ordered, found)


def _only_comes(run: Run, closed: int) -> bool:
    """Whether each row that is left is there, and nothing but what is below `closed` has been added up."""
    net, diff = run.net, run.updates.diff
    if not run.orders_below(closed):
        return False
    if len(diff) and diff.strides == (0,):
        gone = diff.item(0) <= 0
        if not gone or len(run) == run.hidden:  # all rows come, or none is left but those of the net
            return net is None or bool((net.diffs > 0).all())
    below = diff <= 0
    if net is not None and net.there is not None:
        below &= net.there
    if net is not None:
        below[net.rows] = net.diffs <= 0
    return not bool(np.any(below))
