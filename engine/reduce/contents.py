"""The rows of groups at each of their moments, side by side: what the functions of whole groups see.

A row with a negative count has no meaning for such a function. It is an error of the reduce at each moment at which it
is there, and the function does not see it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.failures import of_rows
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Ints, Updates, indices_of

_MOMENT = "#moment"  # no SQL column has this name
_NEGATIVE = "a row with a negative count has no place in an order, a window or the rows of an aggregate"


@dataclass(frozen=True, slots=True)
class Contents:
    """The distinct rows of groups at their moments, in order of the moments; `rows.diff` counts their copies."""

    moments: Moments
    rows: Updates
    moment: Ints
    errors: Updates

    @property
    def groups(self) -> Groups:
        """The rows as groups, one for each moment; a group may be empty."""
        starts = self.moment.searchsorted(np.arange(len(self.moments) + 1))
        return Groups(self.rows.columns, self.rows.diff, starts)


def contents_of(moments: Moments, rows: Updates, group: Ints, before: int) -> Contents:
    """The contents of groups at their moments, given all rows of the groups at closed times, and each row's group.
    Times below `before` were closed before these moments."""
    opens = np.flatnonzero(moments.was)
    counts = np.diff(np.append(opens, len(moments)))[group]
    which = np.arange(len(rows)).repeat(counts)
    ends = counts.cumsum()
    moment = np.arange(len(which)) + (opens[group] - (ends - counts)).repeat(counts)
    time = rows.time[which]
    there = np.where(moments.was[moment], time < before, time <= moments.time[moment])
    which, moment = which[there], moment[there]
    columns = {name: column.take(indices_of(which)) for name, column in rows.columns.items()}
    columns[_MOMENT] = pa.array(moment)
    found = consolidate(Updates(columns, rows.time[which], rows.diff[which]), by_time=False)
    moment = found.columns[_MOMENT].to_numpy()
    order = np.argsort(moment, kind="stable")
    found, moment = found.take(order).select(rows.columns), moment[order]
    negative = np.flatnonzero(found.diff < 0)
    failing = found.take(negative)
    told = of_rows(failing, _NEGATIVE)
    errors = moments.changes(told.columns, moment[negative], -failing.diff)
    positive = np.flatnonzero(found.diff > 0)
    return Contents(moments, found.take(positive), moment[positive], errors)
