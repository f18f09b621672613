"""Reads: contents of collections, and queries, as of a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection, User
from halfjoin.engine.arrange.run import Part, Run, make_run
from halfjoin.engine.batch.state import MaintainedView, State
from halfjoin.engine.batch.unreadable import Failure, first_failure, reason, with_inputs
from halfjoin.engine.join.dataflow import MOST_BYTES, Dataflow
from halfjoin.engine.scalar.bounds import sizes
from halfjoin.engine.statements.adhoc import run
from halfjoin.engine.updates.consolidate import cancel, consolidate
from halfjoin.engine.updates.updates import ARRAY_BYTES, MINIMUM, MOST_ROWS, Updates, concat, constant
from halfjoin.errors import DataError, InvalidTime, UnknownName, bounded
from halfjoin.planner.plan_view import plan
from halfjoin.sql.adhoc.adhoc import tables_of
from halfjoin.sql.adhoc.split import split
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.relation import Relation
from halfjoin.sql.statements import Query

_QUERY = User("query", "this query")


def contents(state: State, name: str, as_of: int | None, *, distinct: bool) -> Updates:
    """What a table or view holds; with `distinct` one row per distinct row, counted in diff.

    Raises:
        UnknownName: there is none of that name.
        InvalidTime: `as_of` is outside `[since, upper)`.
        DataError: an expression of the view, or of one it reads, fails for a row at that time.
    """
    if name not in state.catalog.names():
        raise UnknownName("table or view", name, state.catalog.names())
    if state.catalog.columns(name) is None:  # a plain view
        return evaluate(state, bind(parse_query(f"SELECT * FROM {quoted(name)}"), state.catalog, ""), as_of)
    state = closed(state)
    time = readable(state, [name], as_of)
    return state.collection(name).as_of(time, distinct=distinct)


def frame(state: State, name: str, as_of: int | None) -> Any:
    """What a table or view holds, as a Spark DataFrame. Raises as `contents`."""
    if name not in state.catalog.names():
        raise UnknownName("table or view", name, state.catalog.names())
    state = closed(state)
    if state.catalog.columns(name) is not None:
        time, collection = readable(state, [name], as_of), state.collection(name)
        return state.runners.spark.dataframe(collection, state.before_and_after({}).kept(name, True), time)
    planned = plan(bind(parse_query(f"SELECT * FROM {quoted(name)}"), state.catalog, ""), state, _QUERY.name)
    time = readable(state, planned.collections, as_of)
    flow = Dataflow(planned, state.functions)
    return state.runners.spark.query(flow, state, state.before_and_after({}), time, name)


def history(
    state: State, name: str, as_of: int | None, up_to: int | None, snapshot: bool
) -> tuple[list[pa.Table], Failure | None]:
    """A view's contents as of a time, then its changes after that which are closed, each with `__time` and `__diff`.

    They end before the first time at which the view cannot be read, which is told.
    """
    start = readable(closed(state), [name], as_of)
    if as_of is None and state.upper == 0:
        start = -1  # nothing is closed, not even what holds always: it comes with the first change
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


@bounded()
def query(state: State, statement: Query, as_of: int | None, text: str) -> pa.Table:
    """Any SELECT. The engine computes its values as it computes views'; DuckDB groups, sorts and removes duplicates."""
    state = closed(state)
    names = sorted(tables_of(statement, state.catalog, text))
    time = readable(state, names, as_of)
    script = split(statement, state.catalog, text)
    later = replace(state, upper=max(state.upper, time + 1))  # what has always been can be read at any time

    def evaluated(scratch: State, relation: Relation) -> Updates:
        return expand(evaluate(scratch, relation, time, distinct=False), "the query")

    return run(script, later, evaluated)


def evaluate(state: State, relation: Relation, as_of: int | None, *, distinct: bool = True) -> Updates:
    """Contents of a bound query, with `distinct` one row per distinct row; counted in diff."""
    state = closed(state)
    planned = plan(relation, state, _QUERY.name)
    time = readable(state, planned.collections, as_of)
    flow = Dataflow(planned, state.functions)
    users = [state.collection(key.collection) for key in planned.arrangements if not key.collection.startswith("=")]
    moment = _Moment(state, time)
    try:
        for key in planned.arrangements:
            if not key.collection.startswith("="):
                state.collection(key.collection).share(key, _QUERY, state.functions)
        parts, size = list[tuple[Updates, Updates]](), 0
        for part in flow.fill(moment, moment.closed):
            parts.append(part)
            size += part[0].nbytes
            if size > MOST_BYTES:
                raise DataError(f"the query would make more than {MOST_BYTES:,} bytes of rows")
    finally:
        for collection in users:
            collection.release(_QUERY)
    output, errors = (concat([part.filter(part.time <= time) for part in side]) for side in zip(*parts, strict=True))
    _raise_any(errors, "the query", time)
    found = output
    return consolidate(found, by_time=False) if distinct else cancel(found, by_time=False)


def recover(state: State) -> None:
    """Let go of what a query has left that was interrupted."""
    for collection in state.collections():
        collection.release(_QUERY)


@dataclass(frozen=True, slots=True)
class _Moment:
    """The collections as they are at a time, whatever happened to their rows before.

    Before the last time that is closed, an index does not tell what was there, so the contents are put together and
    looked up there; of what stays in files, and does not fit into memory, the whole history is.
    """

    state: State
    time: int
    found: dict[str, Sequence[Part]] = field(default_factory=dict)

    @property
    def closed(self) -> int:
        """Times below it are added up; what is open is not read."""
        return self.time + 1 if self.time + 1 == self.state.upper else MINIMUM

    def __call__(self, name: str, after: bool) -> Sequence[Part]:
        """The runs to look up."""
        if name not in self.found:
            collection = self.state.collection(name)
            runs = self.state.before_and_after({})(name, after)
            if self.closed == MINIMUM and not collection.in_files:
                runs = (Run(collection.as_of(self.time, distinct=False)),)
            self.found[name] = runs
        return self.found[name]


def closed(state: State) -> State:
    """The state to read: without its open rows, where nothing is closed yet.

    A read is as of a closed time, which open rows are above. Before there is one, all that can be seen is what holds at
    every time: views over empty tables.
    """
    if state.upper > 0 or not any(map(len, state.tables.values())):
        return state
    start = replace(state, tables={name: _emptied(table) for name, table in state.tables.items()}, views={})
    for name, view in state.views.items():
        made = MaintainedView(view.dataflow, _emptied(view.contents), _emptied(view.errors))
        for output, errors in view.dataflow.fill(start.before_and_after({})):
            made.contents.publish(make_run(output, 0))
            made.errors.publish(make_run(errors, 0))
        start.views[name] = made
    return start


def _emptied(collection: Collection) -> Collection:
    return Collection(collection.name, collection.schema, collection.retain, arrangements=collection.shared())


def readable(state: State, names: Iterable[str], as_of: int | None) -> int:
    """The time to read at, once it is certain that all the collections can be read there.

    Raises:
        InvalidTime, DataError: as `contents`.
    """
    # Before anything is closed there is nothing but constants, which hold at every time.
    time = max(state.upper - 1, 0) if as_of is None else as_of
    names = list(names)
    for name in with_inputs(state, names):
        # Of the views below it takes the errors alone, which are kept as long as what is above promises.
        since = state.collection(name).since if name in names else state.views[name].errors.since
        if time < since or (as_of is not None and as_of >= state.upper):
            remedy = (
                "keep more history with Engine(retain=...) or WITH (RETAIN HISTORY FOR ...)"
                if time < since
                else "later times are not closed yet: apply a batch, or advance"
            )
            raise InvalidTime(
                f"cannot read {name} as of {time}: it can be read from since = {since} to below upper = {state.upper}",
                remedy=remedy, time=time, since=since, upper=state.upper, table=name,
            )  # fmt: skip
        if name in state.views:
            _raise_any(state.views[name].errors.up_to(time), name, time)
    return time


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever it holds."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def rows(collection: Collection, time: int) -> pa.Table:
    """Contents as a table, a row as often as it is contained."""
    return expand(collection.as_of(time, distinct=False), collection.name).table(changes=False)


def expand(updates: Updates, name: str) -> Updates:
    """Each row as often as its diff says.

    Raises:
        DataError: a count is negative.
    """
    if bool((updates.diff == 1).all()):
        return updates
    negative = np.flatnonzero(updates.diff < 0)
    if len(negative):
        position = int(negative[0])
        row = {column: values[position].as_py() for column, values in updates.columns.items()}
        raise DataError(
            f"{name} holds a row {int(updates.diff[position])} times, which no table can show: {row}; "
            "more copies were deleted than inserted",
            remedy="read(..., multiplicity=True) gives the counts", view=name,
        )  # fmt: skip
    if float(updates.diff.sum(dtype=np.float64)) > MOST_ROWS:
        raise DataError(f"{name} holds more than {MOST_ROWS:,} rows, copies counted",
                        remedy="read(..., multiplicity=True) gives each once", view=name)  # fmt: skip
    for column, values in updates.columns.items():
        if values.nbytes * int(updates.diff.max()) > ARRAY_BYTES and float(sizes(values) @ updates.diff) > ARRAY_BYTES:
            raise DataError(f"{name}.{column} holds more than {ARRAY_BYTES:,} bytes, copies counted",
                            remedy="read(..., multiplicity=True) gives each once", view=name)  # fmt: skip
    return updates.take(np.repeat(np.arange(len(updates)), updates.diff))


def _raise_any(errors: Updates, name: str, time: int) -> None:
    why = reason(errors)
    if why is not None:
        raise why.with_(view=name, time=time)
