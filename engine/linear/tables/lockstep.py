"""ROWS FROM (f(...), g(...)): several table functions in lockstep.

The n-th results of all functions for a row are one result; a function that has no n-th result gives NULLs. So a row has
as many results as the function with the most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.tables.exploded import Exploded, TableFunction, ordinality, repeated
from halfjoin.engine.updates.updates import MINIMUM, Ints

_WEIGHTED = "a function that gives times or weights cannot be called together with others"


@dataclass(frozen=True, slots=True)
class Part:
    """One of the functions, and the numbers of its arguments and columns."""

    function: TableFunction
    args: int
    columns: int


def lockstep(parts: Sequence[Part], arguments: list[pa.Array], length: int) -> Exploded:
    """The results of the parts, side by side. `arguments`: those of all parts, in order. A row fails if a part fails
    for it, or gives a result a time or a weight: such a result has no place beside others.

    >>> from halfjoin.engine.linear.tables.arrays import unnest
    >>> lists = [pa.array([[1, 2], [3]]), pa.array([["a"], ["b", "c"]])]
    >>> found = lockstep([Part(unnest, 1, 1)] * 2, lists, 2)
    >>> found.rows.tolist(), *(column.to_pylist() for column in found.columns)
    ([0, 0, 1, 1], [1, 2, 3, None], ['a', None, 'b', 'c'])
    """
    made, start = [], 0
    for part in parts:
        made.append(part.function(arguments[start : start + part.args], length))
        start += part.args
    why: dict[int, str] = {}
    for one in reversed(made):  # of several reasons the first part's
        why.update(_weighted(one))
        if one.failed is not None:
            why.update(zip(one.failed.tolist(), one.messages, strict=True))
    failed = np.array(sorted(why), np.int64)
    counts = [np.bincount(one.rows, minlength=length) for one in made]
    most = np.max(counts, axis=0)
    most[failed] = 0
    rows, _ = repeated(most, "ROWS FROM")
    starts = np.cumsum(most) - most
    columns = [column.take(_places(one, most, starts, len(rows))) for one in made for column in one.columns]
    return Exploded(rows, tuple(columns), failed=failed if len(failed) else None, message=[why[row] for row in failed])


def _places(one: Exploded, most: Ints, starts: Ints, length: int) -> pa.Array:
    """For each result the place of one part's result in its columns; NULL where the part has none."""
    found = np.full(length, -1)
    there = np.flatnonzero(most[one.rows] > 0)  # the others belong to rows that fail
    found[(starts[one.rows] + ordinality(one.rows) - 1)[there]] = there
    return pa.array(found, mask=found < 0)


def _weighted(one: Exploded) -> dict[int, str]:
    odd = np.zeros(len(one.rows), np.bool_)
    if one.time is not None:
        odd |= one.time > MINIMUM
    if one.diff is not None:
        odd |= one.diff != 1
    return dict.fromkeys(one.rows[odd].tolist(), _WEIGHTED)
