"""Reads the contents of collections, and evaluates bound queries, as of a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection, User
from halfjoin.engine.arrange.expand import expand
from halfjoin.engine.arrange.run import Part, Run, make_run
from halfjoin.engine.batch.flows import Flow, Inner, alone, flow_of
from halfjoin.engine.batch.looping import loop_fill
from halfjoin.engine.batch.readable import closed, raise_any, readable
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.unreadable import Failure, first_failure
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.system_tables import system_tables, with_system
from halfjoin.engine.storage.filling import fill_nodes
from halfjoin.engine.system.machine import machine_memory
from halfjoin.engine.updates.consolidate import cancel, consolidate
from halfjoin.engine.updates.updates import MINIMUM, Updates, concat, constant
from halfjoin.errors import DataError, UnknownName
from halfjoin.planner.known import lookups, reads_by_key, with_known
from halfjoin.planner.plan import Node, Reduce, Version, ViewPlan
from halfjoin.planner.plan_view import plan
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.relation import Relation

_QUERY = User("query", "this query")
QUERY_NAME = "the query"  # in errors
_LEAST = 1 << 26  # bytes that a query may take, however little memory the engine has


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
        return evaluate(state, bind(parse_query(f"SELECT * FROM {quoted(name)}"), state.catalog, ""), as_of)
    state = closed(state)
    time = readable(state, [name], as_of)
    return state.collection(name).as_of(time, distinct=distinct)


def frame(state: State, name: str, runners: Runners, as_of: int | None) -> Any:
    """The contents of a table or view as a Spark DataFrame. Raises as `contents`."""
    if name not in state.catalog.names():
        raise UnknownName("table or view", name, state.catalog.names())
    state = closed(state)
    if state.catalog.columns(name) is not None:
        time, collection = readable(state, [name], as_of), state.collection(name)
        return runners.spark.dataframe(collection, state.before_and_after({}).as_files(name, Version.AFTER), time)
    planned = plan(bind(parse_query(f"SELECT * FROM {quoted(name)}"), state.catalog, ""), state, _QUERY.name)
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


def evaluate(state: State, relation: Relation, as_of: int | None, *, distinct: bool = True) -> Updates:
    """The contents of a bound query. With `distinct`, one row per distinct row; counts are in `diff`."""
    state = closed(state)
    if named := system_tables(relation):
        state = with_system(state, named, state.upper - 1 if as_of is None else as_of)
    planned = with_known(plan(relation, state, _QUERY.name), state, state.arranged)
    time = readable(state, [name for name in planned.collections if name not in named], as_of)
    own = {node.output for node in planned.nodes}
    keys = [key for key in planned.arrangements if key.constant is None and key.collection not in own]
    keys += [known.arrangement for known in lookups(planned)]
    moment, held = _Moment(state, time, by_key=reads_by_key(planned)), 0
    try:
        for key in keys:
            state.collection(key.collection).share(key, _QUERY, state.functions)
        for node in planned.below:  # computed anew, since a kept node has no history
            if node.loop:
                if node.output not in moment.found:
                    _run_loop(moment, [one for one in planned.below if one.loop == node.loop])
                continue
            output = _at(moment, planned, alone(flow_of(node, state.functions, QUERY_NAME)))
            held += output.nbytes if isinstance(node, Reduce) else 0
            check_memory(state, held)
            moment.found[node.output] = (make_run(output, state.upper),)
        found = _at(moment, planned, alone(flow_of(planned.output, state.functions, QUERY_NAME)))
    finally:
        for key in keys:
            state.collection(key.collection).release(_QUERY)
    return consolidate(found, by_time=False) if distinct else found


def check_memory(state: State, size: int) -> None:
    """Check that rows which a query groups or orders, `size` bytes of them, fit into the engine's memory.

    Raises:
        DataError: they do not.
    """
    if size > max(state.memory.limit or machine_memory() // 2, _LEAST):
        raise DataError("the query needs more memory than the engine may use: ask for fewer rows, or give the engine "
                        "more, Engine(memory=...)")  # fmt: skip


def _at(moment: _Moment, planned: ViewPlan, flow: Flow) -> Updates:
    """The updates that add up to the output of a query's node.

    Raises:
        DataError: a row fails, or there are too many.
    """
    time = moment.time
    parts = list(flow.fill(moment, time + 1, moment.closed, gathered=True))
    output, errors = (concat([part.filter(part.time <= time) for part in side]) for side in zip(*parts, strict=True))
    raise_any(errors, QUERY_NAME, time, planned.below, flow.plan)
    return cancel(output, by_time=False)


def _run_loop(moment: _Moment, nodes: Sequence[Node]) -> None:
    """Evaluate the nodes of a loop.

    Raises:
        DataError: as `_at`.
    """
    flows = {node.output: cast("Inner", flow_of(node, moment.state.functions, QUERY_NAME)) for node in nodes}
    for name, (output, errors) in loop_fill(flows, moment, moment.time + 1, last=True).items():
        raise_any(errors, QUERY_NAME, moment.time, nodes, flows[name].plan)
        moment.found[name] = (make_run(output, moment.state.upper),)


def recover(state: State) -> None:
    """Release the arrangements that an interrupted query left."""
    for collection in state.collections():
        collection.release(_QUERY)


@dataclass(frozen=True, slots=True)
class _Moment:
    """The collections as they are at a time; what happened to their rows before does not matter.

    For a time before the last closed one the indexes cannot tell which rows were live. So the contents at that time are
    computed and looked up. For a collection in files that does not fit into memory, lookups read its whole history, and
    so do those of a query that scans nothing (`by_key`): the history of few keys is less than the contents.
    """

    state: State
    time: int
    by_key: bool = False
    found: dict[str, Sequence[Part]] = field(default_factory=dict)

    @property
    def closed(self) -> int:
        """Updates with times below it may be added up; open times are not read."""
        return self.time + 1 if self.time + 1 == self.state.upper else MINIMUM

    def __call__(self, name: str, version: Version) -> Sequence[Part]:
        """The runs to look up."""
        if name not in self.found:
            collection = self.state.collection(name)
            runs = self.state.before_and_after({})(name, version)
            if self.closed == MINIMUM and not collection.in_files and not self.by_key:
                runs = (Run(collection.as_of(self.time, distinct=False)),)
            self.found[name] = runs
        return self.found[name]


def quoted(name: str) -> str:
    """A name as SQL accepts it, whatever characters it has."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def rows(collection: Collection, time: int) -> pa.Table:
    """The contents as a table. A row with count n comes n times."""
    return expand(collection.as_of(time, distinct=False), collection.name).table(changes=False)
