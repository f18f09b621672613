"""The rows of each group with the results of window functions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.tables import NO_FUNCTIONS, Registry
from halfjoin.engine.reduce.frame_aggregates import aggregate
from halfjoin.engine.reduce.frames import spans
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.offsets import of_frame, shifted
from halfjoin.engine.reduce.partitions import Partitions, partitions
from halfjoin.engine.reduce.ranks import RANKS, ntile
from halfjoin.engine.reduce.running import WHOLE, Sides, continued, summed
from halfjoin.engine.reduce.words import look, ordered_words
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.updates import gather, indices_of, where_true
from halfjoin.planner.group_functions import Windows
from halfjoin.sql.relation import WindowCall


def evaluate(spec: Windows, groups: Groups, registry: Registry = NO_FUNCTIONS, sides: Sides = WHOLE) -> Groups:
    """The rows with a column for each result, in the window's order. Each group is one partition. `registry` has the
    user's aggregates. `sides`: the groups are parts of partitions, and these are the results on both sides of them.

    Copies of a row are separate rows of the partition, so they may get different results: the output has a row for each
    different result, with the number of copies that have it.

    Raises:
        Failed: a function has no value for a row; the mask marks the groups.

    >>> from halfjoin.sql.expr import Column
    >>> from halfjoin.sql.functions.window_functions import resolve_window
    >>> from halfjoin.sql.relation import Bound, Frame, SortKey
    >>> from halfjoin.sql.types import BIGINT
    >>> x = Column("x", BIGINT)
    >>> groups = Groups({"x": pa.array([20, 10])}, np.array([1, 2]), np.array([0, 2]))
    >>> two = Frame("rows", Bound("preceding"), Bound("current row"))
    >>> call = resolve_window("count", [x], frame=two, ordered=True)
    >>> found = evaluate(Windows((SortKey(x),), ((Column("n", BIGINT), call),)), groups)
    >>> found.columns["x"].to_pylist(), found.columns["n"].to_pylist(), found.count.tolist()
    ([10, 10, 20], [1, 2, 3], [1, 1, 1])
    """
    rows = partitions(groups, spec.order)
    try:
        results = {part.sums.column.name: summed(spec, part, rows, sides) for part in spec.running}
        for column, call in spec.calls:
            found = _call(call, rows, registry).cast(arrow_type(column.type))
            results[column.name] = continued(spec, call, found, rows, sides)
    except Failed as failed:
        raise Failed.of(failed.failures(len(rows)).of_groups(rows.numbers), len(groups)) from None
    return _together(rows, results)


def _call(call: WindowCall, rows: Partitions, registry: Registry) -> pa.Array:
    """The function's value for each row."""
    if call.function in RANKS:
        return RANKS[call.function](rows)
    if call.function == "ntile":
        return ntile(rows, rows.values(call.args[0]))
    if call.function in ("lag", "lead"):
        return shifted(call, rows)
    frame = spans(call.frame, rows)
    if call.function in ("first_value", "last_value", "nth_value"):
        return of_frame(call, rows, frame)
    return aggregate(call, rows, frame, registry)


def _together(rows: Partitions, results: dict[str, pa.Array]) -> Groups:
    """One row for copies that follow each other and have equal results."""
    differ = rows.source[1:] != rows.source[:-1]
    for column in results.values():
        copies = where_true(~differ)
        pairs = gather(column, indices_of(np.concatenate([copies, copies + 1])))
        for word in (*ordered_words(pairs), *look(pairs)):
            differ[copies[word[: len(copies)] != word[len(copies) :]]] = True
    first = where_true(np.append(np.ones(min(len(rows), 1), np.bool_), differ))
    count = np.diff(np.append(first, len(rows)))
    taken = rows.groups.take(rows.source[first])
    if len(first) == len(rows):
        return Groups({**taken.columns, **results}, count, rows.starts)
    results = {name: gather(column, indices_of(first)) for name, column in results.items()}
    return Groups({**taken.columns, **results}, count, first.searchsorted(rows.starts))
