"""Answers ad-hoc queries: evaluates them as views are, then puts the rows in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.expand import expand, refuse_negative, table
from halfjoin.engine.batch.readable import closed, readable
from halfjoin.engine.batch.state import State
from halfjoin.engine.reduce import top
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.statements.endless import first_rounds
from halfjoin.engine.statements.evaluating import (
    QUERY_NAME,
    Evaluation,
    check_memory,
    compiled,
    evaluate,
    planned_query,
    prepare,
    run,
    run_in_parts,
)
from halfjoin.engine.statements.numbering import with_numbers
from halfjoin.engine.statements.shapes import Unfit, fill_of
from halfjoin.engine.updates.updates import Updates, concat
from halfjoin.errors import DataError
from halfjoin.nesting import bounded
from halfjoin.planner.group_functions import Top
from halfjoin.sql.bind.numbered_rows import numbered_rows
from halfjoin.sql.bind.query import BoundQuery, bind_query
from halfjoin.sql.bind.tables import tables_of
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import TopK
from halfjoin.sql.statements import Query

Keep: TypeAlias = "Callable[[Ready], None]"  # takes a query that may be asked again


@dataclass(frozen=True, slots=True)
class Ready:
    """A query that needs no more than a state and a time: the tables and materialized views that it names, the bound
    query, and its evaluation."""

    reads: tuple[str, ...]
    bound: BoundQuery
    evaluation: Evaluation


def query(state: State, statement: Query, as_of: int | None, text: str, keep: Keep | None = None) -> pa.Table:
    """The rows of any SELECT; see `answer`."""
    return answer(state, statement, as_of, text, keep)[0]


@bounded()
def answer(
    state: State, statement: Query, as_of: int | None, text: str, keep: Keep | None = None
) -> tuple[pa.Table, tuple[Column, ...]]:
    """The rows of any SELECT, as they are in a view of it, in the order of its ORDER BY; and its columns.

    Rows that tie are ordered by their columns, the first one first: ascending, NULLs last. So with ORDER BY or LIMIT
    there is one answer. Columns are named as in PostgreSQL, so names may repeat. `keep` gets what may be used again.

    Raises:
        DataError: an expression fails for a row, or there are too many rows or bytes.
    """
    now = closed(state)
    reads = tuple(sorted(tables_of(statement, now.catalog, text)))
    time = readable(now, reads, as_of)
    halves = numbered_rows(statement, now.catalog)
    bound = bind_query(statement if halves is None else halves.first, now.catalog, text)
    if not bound.fleeting and halves is None:
        made = Ready(reads, bound, prepare(now, bound.relation, daring=True))
        try:
            answers = answered(state, made, as_of)
            if answers is None:
                made = replace(made, evaluation=prepare(now, bound.relation))
                answers = answered(state, made, as_of)
            assert answers is not None
        except DataError:
            found = first_rounds(bound, lambda one: run(now, prepare(now, one), time, distinct=False))
            if found is None:
                raise
            return _shown(bound, [_ordered(now, bound, found)])
        if keep is not None:
            keep(made)
        return answers
    later = replace(now, upper=max(now.upper, time + 1))  # constants can be read at any time
    found = _ordered(now, bound, evaluate(later, bound.relation, time, distinct=False))
    if halves is None:
        return _shown(bound, [found])
    rows = expand(found.select(list(found.columns)[: len(bound.names)]), QUERY_NAME)
    return with_numbers(now, halves, bound, list(rows.columns.values()), len(rows), text)


@bounded()
def ready(state: State, statement: Query, text: str) -> Ready | None:
    """A query with values that cannot be looked at. Those of its nodes that have such a value are not in executable
    form. None for a query that means something only now.

    Raises:
        Looked, Unfit: the query depends on a value in another way than as a constant of its plan.
    """
    state = closed(state)
    reads = tuple(sorted(tables_of(statement, state.catalog, text)))
    bound = bind_query(statement, state.catalog, text)
    if bound.fleeting or numbered_rows(statement, state.catalog) is not None:
        return None
    planned = planned_query(state, bound.relation, daring=True)
    evaluation = compiled(state, planned, [node for node in planned.nodes if fill_of(node) is None])
    top = bound.top
    order = () if top is None else (top.order, top.limit, top.offset, top.with_ties)
    if fill_of((reads, bound.names, bound.relation.columns, order, evaluation.collections)) is not None:
        raise Unfit
    return Ready(reads, bound, evaluation)


@bounded()
def answered(state: State, ready: Ready, as_of: int | None) -> tuple[pa.Table, tuple[Column, ...]] | None:
    """As `answer`, of a query that is ready. None: it has dared too much, and has to be planned for what is there."""
    state = closed(state)
    time = readable(state, ready.reads, as_of)
    later, top = replace(state, upper=max(state.upper, time + 1)), ready.bound.top
    try:
        found = run_in_parts(later, ready.evaluation, time, order=top)
    except DataError:
        if ready.evaluation.plan.dares:
            return None
        raise
    if top is None:
        return _shown(ready.bound, found.parts)
    rest = None if not found.skipped else replace(top, offset=top.offset - found.skipped)
    return _shown(ready.bound, [_ordered(state, ready.bound, concat(found.parts), rest)])


def _ordered(state: State, bound: BoundQuery, found: Updates, rest: TopK | None = None) -> Updates:
    """The rows in the order of the query, and no more of them than it asks for. `rest`: what it asks for of them if
    some that OFFSET skips have been left out."""
    found = refuse_negative(found, QUERY_NAME)
    if bound.top is None:
        return found
    check_memory(state, found.nbytes)
    return first(found, bound.top if rest is None else rest)


def _shown(bound: BoundQuery, found: Sequence[Updates]) -> tuple[pa.Table, tuple[Column, ...]]:
    """The rows under the names of the query, and its columns. Rows of different parts do not cancel."""
    if not bound.names:  # Arrow keeps the number of rows of a table whose columns have gone
        rows = sum(int(refuse_negative(part, QUERY_NAME).diff.sum()) for part in found)
        return pa.table({"": pa.nulls(rows)}).select([]), ()
    shown = [part.select(list(part.columns)[: len(bound.names)]) for part in found]
    shown_as = tuple(Column(name, column.type)
                     for name, column in zip(bound.names, bound.relation.columns, strict=False))  # fmt: skip
    return table(shown, QUERY_NAME, list(bound.names)), shown_as


def first(rows: Updates, order: TopK) -> Updates:
    """The rows in an order: the first of them, after those that OFFSET skips."""
    groups = Groups(rows.columns, rows.diff, np.array([0, len(rows)]))
    positions, count = top.evaluate(Top(order.order, order.limit, order.offset, order.with_ties), groups)
    found = rows.take(positions)
    return Updates(found.columns, found.time, count)
