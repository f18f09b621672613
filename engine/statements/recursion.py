"""Evaluates WITH RECURSIVE in queries, round by round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.state import State
from halfjoin.engine.updates.consolidate import consolidate, groups
from halfjoin.engine.updates.updates import MINIMUM, Updates, concat, constant
from halfjoin.errors import DataError
from halfjoin.sql.bind.context import Recursion, Stored
from halfjoin.sql.relation import Relation

Evaluate = Callable[[State, Relation], Updates]

MOST_ROUNDS = 5_000
MOST_FOUND = 10_000_000


def with_recursions(state: State, recursions: Sequence[Recursion], evaluate: Evaluate) -> State:
    """The state with the rows of recursions, each of which may read those before it. `evaluate` gives a relation's
    rows, with counts above 0.

    Raises:
        DataError: an expression fails for a row, or a recursion does not end.
    """
    if not recursions:
        return state
    over = replace(state, tables=dict(state.tables))
    for recursion in recursions:
        over.tables[recursion.rows.collection] = _collection(recursion.rows, _found(over, recursion, evaluate))
    return over


def _found(over: State, recursion: Recursion, evaluate: Evaluate) -> Updates:
    """All rows of a recursion."""
    rows = evaluate(over, recursion.first)
    every = _new(None, rows) if recursion.distinct else rows
    last = every
    for _ in range(MOST_ROUNDS):
        if not len(last):
            return every
        if float(every.diff.sum(dtype=np.float64)) > MOST_FOUND:
            break
        over.tables[recursion.working.collection] = _collection(recursion.working, last)
        last = evaluate(with_recursions(over, recursion.inside, evaluate), recursion.round)
        if recursion.distinct:
            last = _new(every, last)
        every = concat([every, last])
    raise DataError(f"WITH RECURSIVE does not end: it took more than {MOST_ROUNDS:,} rounds, or found more than "
                    f"{MOST_FOUND:,} rows", remedy="add a condition that ends it")  # fmt: skip


def _new(before: Updates | None, rows: Updates) -> Updates:
    """Each of the rows that was not there before, once."""
    rows = consolidate(rows, by_time=False)
    rows = Updates(rows.columns, rows.time, constant(1, len(rows)))
    if before is None:
        return rows
    both = concat([before, rows])
    _, firsts = np.unique(groups(list(both.columns.values()), len(both)), return_index=True)
    return both.take(np.sort(firsts[firsts >= len(before)]))


def _collection(rows: Stored, found: Updates) -> Collection:
    """Rows that are there at all times, as a collection."""
    columns: Mapping[str, pa.Array] = found.columns
    collection = Collection(rows.collection, {name: array.type for name, array in columns.items()}, retain=1)
    collection.publish(make_run(Updates(dict(columns), constant(MINIMUM, len(found)), found.diff), 0))
    return collection
