"""Answers ad-hoc queries: evaluates them as views are, then puts the rows in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.expand import expand, refuse_negative
from halfjoin.engine.batch.readable import closed, readable
from halfjoin.engine.batch.state import State
from halfjoin.engine.reduce import top
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.statements.numbering import with_numbers
from halfjoin.engine.statements.reading import QUERY_NAME, check_memory, evaluate
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import bounded
from halfjoin.planner.group_functions import Top
from halfjoin.sql.bind.numbered_rows import numbered_rows
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.bind.tables import tables_of
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import TopK
from halfjoin.sql.statements import Query


def query(state: State, statement: Query, as_of: int | None, text: str) -> pa.Table:
    """The rows of any SELECT; see `answer`."""
    return answer(state, statement, as_of, text)[0]


@bounded()
def answer(state: State, statement: Query, as_of: int | None, text: str) -> tuple[pa.Table, tuple[Column, ...]]:
    """The rows of any SELECT, as they are in a view of it, in the order of its ORDER BY; and its columns.

    Rows that tie are ordered by their columns, the first one first: ascending, NULLs last. So with ORDER BY or LIMIT
    there is one answer. Columns are named as in PostgreSQL, so names may repeat.

    Raises:
        DataError: an expression fails for a row, or there are too many rows or bytes.
    """
    state = closed(state)
    time = readable(state, sorted(tables_of(statement, state.catalog, text)), as_of)
    halves = numbered_rows(statement)
    bound = bind_query(statement if halves is None else halves.first, state.catalog, text)
    later = replace(state, upper=max(state.upper, time + 1))  # constants can be read at any time
    found = refuse_negative(evaluate(later, bound.relation, time, distinct=False), QUERY_NAME)
    if bound.top is not None:
        check_memory(state, found.nbytes)
        found = first(found, bound.top)
    if not bound.names:  # Arrow keeps the number of rows of a table whose columns have gone
        return pa.table({"": pa.nulls(int(found.diff.sum()))}).select([]), ()
    shown = list(found.columns)[: len(bound.names)]
    if halves is not None:
        rows = expand(found.select(shown), QUERY_NAME)
        return with_numbers(state, halves, bound, list(rows.columns.values()), len(rows), text)
    columns = expand(found.select(shown), QUERY_NAME).columns
    shown_as = tuple(Column(name, column.type)
                     for name, column in zip(bound.names, bound.relation.columns, strict=False))  # fmt: skip
    return pa.Table.from_arrays(list(columns.values()), names=list(bound.names)), shown_as


def first(rows: Updates, order: TopK) -> Updates:
    """The rows in an order: the first of them, after those that OFFSET skips."""
    groups = Groups(rows.columns, rows.diff, np.array([0, len(rows)]))
    positions, count = top.evaluate(Top(order.order, order.limit, order.offset, order.with_ties), groups)
    found = rows.take(positions)
    return Updates(found.columns, found.time, count)
