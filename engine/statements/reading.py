"""Reads the contents of collections as of a time, and their history since."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.expand import table
from halfjoin.engine.batch.flows import alone, flow_of
from halfjoin.engine.batch.readable import closed, raise_any, readable
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.unreadable import Failure, first_failure
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.evaluating import QUERY, evaluate
from halfjoin.engine.storage.filling import fill_nodes
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.errors import UnknownName
from halfjoin.planner.plan import Version
from halfjoin.planner.plan_view import plan
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.parse.parse import parse_query


def contents(state: State, name: str, as_of: int | None, *, distinct: bool) -> Updates:
    """The contents of a table or view. With `distinct`, one row per distinct row, with its count in `diff`.

    Raises:
        UnknownName: no table or view has that name.
        InvalidTime: `as_of` is outside `[since, upper)`.
        DataError: an expression of the view, or of one it reads, fails for a row at that time.
    """
    if name not in state.catalog.names():
        raise UnknownName("table or view", name, state.catalog.names())
    if state.catalog.columns(name) is None:  # a plain view
        relation = bind(parse_query(f"SELECT * FROM {quoted(name)}"), state.catalog, "")
        return evaluate(state, relation, as_of, distinct=distinct)
    state = closed(state)
    time = readable(state, [name], as_of)
    return state.collection(name).as_of(time, distinct=distinct)


def rows_of(state: State, name: str, as_of: int | None) -> pa.Table:
    """The rows of a table or view. A row with count n comes n times. Raises as `contents`, and as `expand.table`."""
    if state.catalog.columns(name) is None:
        return table([contents(state, name, as_of, distinct=False)], name)
    state = closed(state)
    return rows(state.collection(name), readable(state, [name], as_of), state.upper)


def frame(state: State, name: str, runners: Runners, as_of: int | None) -> Any:
    """The contents of a table or view as a Spark DataFrame. Raises as `contents`."""
    if name not in state.catalog.names():
        raise UnknownName("table or view", name, state.catalog.names())
    state = closed(state)
    if state.catalog.columns(name) is not None:
        time, collection = readable(state, [name], as_of), state.collection(name)
        return runners.spark.dataframe(collection, state.before_and_after({}).as_files(name, Version.AFTER), time)
    planned = plan(bind(parse_query(f"SELECT * FROM {quoted(name)}"), state.catalog, ""), state, QUERY.name)
    time = readable(state, planned.collections, as_of)
    over, nodes = fill_nodes(state, planned, time, runners.spark, runners.staging)
    for node in nodes.values():
        raise_any(node.errors.up_to(time), name, time, planned.below, node.dataflow.plan)
    flow = alone(flow_of(planned.output, state.functions, name))
    return runners.spark.query(flow, over, over.before_and_after({}), time, name)


def history(
    state: State, name: str, as_of: int | None, up_to: int | None, snapshot: bool
) -> tuple[list[pa.Table], Failure | None]:
    """A view's contents as of a time, then the closed changes after it, each with `__time` and `__diff`.

    The changes end before the first time at which the view cannot be read; that failure is returned too.
    """
    start = readable(closed(state), [name], as_of)
    if as_of is None and state.upper == 0:
        start = -1  # no time is closed, so rows of constants come with the first changes
    end = state.upper if up_to is None else min(up_to, state.upper)
    if up_to is not None and up_to <= start:
        return [], None
    failure = first_failure(state, name, start + 1, end)
    contents = state.views[name].contents
    tables = []
    if snapshot:
        found = contents.as_of(start, distinct=True)
        tables.append(Updates(found.columns, constant(start, len(found)), found.diff).table(changes=True))
    later = contents.changes(start + 1, end if failure is None else failure.time)
    return [*tables, later.table(changes=True)] if len(later) else tables, failure


def quoted(name: str) -> str:
    """A name as SQL accepts it, whatever characters it has."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def rows(collection: Collection, time: int, upper: int) -> pa.Table:
    """The contents as a table. A row with count n comes n times. Times below `upper` are closed."""
    return table(collection.as_of_in_parts(time, upper), collection.name)
