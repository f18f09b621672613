"""Evaluates bound queries as of a time: they are planned and filled as views are, from the contents at that time.

What needs no data is prepared once (`Evaluation`), and may be used again for the same definitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import NamedTuple, cast

from halfjoin.engine.arrange.collection import User
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.flows import Flow, Inner, alone, flow_of
from halfjoin.engine.batch.looping import loop_fill
from halfjoin.engine.batch.readable import closed, raise_any, readable
from halfjoin.engine.batch.state import State
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.linear.failures import NO_ERRORS
from halfjoin.engine.reduce.behind import rows_behind
from halfjoin.engine.reduce.extremes import are_extremes
from halfjoin.engine.reduce.firsts import first_rows
from halfjoin.engine.reduce.flow import ReduceFlow
from halfjoin.engine.statements.moment import Moment, scanned
from halfjoin.engine.statements.system_tables import system_tables, with_system
from halfjoin.engine.system.machine import machine_memory
from halfjoin.engine.updates.consolidate import cancel, consolidate
from halfjoin.engine.updates.updates import Updates, concat, some_below_zero
from halfjoin.errors import DataError
from halfjoin.planner.asked_groups import asked_groups
from halfjoin.planner.below_groups import below_groups
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.exact_quotients import with_exact_quotients
from halfjoin.planner.group_functions import Aggregates
from halfjoin.planner.known import are_few, lookups, reads_by_key
from halfjoin.planner.one_partner import with_one_partner
from halfjoin.planner.plan import ArrangementKey, Join, Node, Reduce, ViewPlan
from halfjoin.planner.plan_view import plan_of_query
from halfjoin.planner.whole_partitions import with_whole_partitions
from halfjoin.sql.relation import Relation, TopK

QUERY = User("query", "this query")
QUERY_NAME = "the query"  # in errors
_TOGETHER = 1 << 15  # rows that are added up at a time, at least
_LEAST = 1 << 26  # bytes that a query may take, however little memory the engine has


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A bound query, ready to be evaluated: its plan, its nodes in executable form by their names, the tables and views
    that it reads, and the arrangements that it looks up."""

    plan: ViewPlan
    flows: Mapping[str, Flow | Inner]
    collections: tuple[str, ...]
    keys: tuple[ArrangementKey, ...]
    by_key: bool  # whether it scans nothing


class Found(NamedTuple):
    """The rows of a query, in at least one part. Rows of different parts do not cancel. `skipped`: how many rows that
    come before them are left out."""

    parts: Sequence[Updates]
    skipped: int = 0


def prepare(state: State, relation: Relation, *, daring: bool = False) -> Evaluation:
    """Plan a bound query, and compile it. `daring`: see `planner.plan_view.plan_of_query`."""
    planned = planned_query(state, relation, daring=daring)
    return compiled(state, planned, planned.nodes)


def planned_query(state: State, relation: Relation, *, daring: bool = False) -> ViewPlan:
    """The plan of a bound query. `daring`: see `planner.plan_view.plan_of_query`."""

    def checked(name: str) -> bool:
        return bool(state.unique_keys(name))

    estimates = Estimates(state, {}, QUERY.name)
    few = partial(are_few, estimates=estimates, arranged=state.arranged)
    lowered = with_whole_partitions(below_groups(with_one_partner(relation, state), checked), checked)
    asked = asked_groups(lowered, checked, few, estimates)
    return plan_of_query(with_exact_quotients(asked), state, QUERY.name, state.arranged, daring)


def compiled(state: State, planned: ViewPlan, nodes: Iterable[Node]) -> Evaluation:
    """A planned query with some of its nodes in executable form; it can be evaluated once it has all."""
    flows = {node.output: flow_of(node, state.functions, QUERY_NAME) for node in nodes}
    return Evaluation(planned, flows, planned.collections, _keys(planned), reads_by_key(planned))


def filled(state: State, evaluation: Evaluation, planned: ViewPlan) -> Evaluation:
    """The evaluation of a plan that differs in constants only; what has none is the same object in both plans."""
    flows = {node.output: flow_of(node, state.functions, QUERY_NAME, evaluation.flows.get(node.output))
             for node in planned.nodes}  # fmt: skip
    return replace(evaluation, plan=planned, flows=flows, keys=_keys(planned))


def _keys(planned: ViewPlan) -> tuple[ArrangementKey, ...]:
    """The arrangements of stored collections that a query looks up."""
    own = {node.output for node in planned.nodes}
    known = (key for found in lookups(planned) for key in found.arrangements)
    keys = [key for key in (*_looked_up(planned), *known)
            if key.constant is None and key.collection not in own]  # fmt: skip
    return tuple(dict.fromkeys(keys))


def _looked_up(planned: ViewPlan) -> Iterator[ArrangementKey]:
    """The arrangements that the nodes look up when they are filled."""
    for node in planned.nodes:
        if isinstance(node, Join) and not node.loops:
            for branch in node.branches:
                yield from (key for stage in branch.paths[branch.fill].every_stage
                            for key in stage.half_join.arrangements)  # fmt: skip
        else:
            yield from node.arrangements


def evaluate(state: State, relation: Relation, as_of: int | None, *, distinct: bool = True) -> Updates:
    """The contents of a bound query. With `distinct`, one row per distinct row; counts are in `diff`. If it dares too
    much, it is planned again, as what is there needs it."""
    state = closed(state)
    named = system_tables(relation)
    if named:
        state = replace(state, upper=max(state.upper, 1))  # as if time 0 were closed, at which the catalog's rows are
        state = with_system(state, named, state.upper - 1 if as_of is None else as_of)
    daring = prepare(state, relation, daring=True)
    try:
        return run(state, daring, as_of, distinct=distinct, made=named)
    except DataError:
        if not daring.plan.dares:
            raise
    return run(state, prepare(state, relation), as_of, distinct=distinct, made=named)


def run(
    state: State, evaluation: Evaluation, as_of: int | None, *, distinct: bool = True, made: Collection[str] = ()
) -> Updates:
    """As `evaluate`, of a query that is prepared. `made`: collections that have no history."""
    found = concat(run_in_parts(state, evaluation, as_of, made=made).parts)
    return consolidate(found, by_time=False) if distinct else found


def run_in_parts(
    state: State, evaluation: Evaluation, as_of: int | None, *, made: Collection[str] = (), order: TopK | None = None
) -> Found:
    """As `run`. `order`: the caller wants some rows of an order, so others may be missing."""
    state, planned = closed(state), evaluation.plan
    time = readable(state, [name for name in evaluation.collections if name not in made], as_of)
    moment = Moment(state, time, partial(scanned, planned, evaluation.flows), by_key=evaluation.by_key)
    held, keys, readers = 0, evaluation.keys, _readers(planned)
    try:
        for key in keys:
            if state.users(key) is None:
                state.collection(key.collection).share(key, QUERY, state.functions)
        for node in planned.below:  # computed anew, since a kept node has no history
            if node.loop:
                if node.output not in moment.found:
                    _run_loop(moment, evaluation, [one for one in planned.below if one.loop == node.loop])
                continue
            if isinstance(node, Join) and _adds_up_alone(readers[node.output]):
                continue
            flow = alone(evaluation.flows[node.output])
            if isinstance(node, Reduce) and node.input not in moment.found and node.input in evaluation.flows:
                output = concat(_added_up(moment, planned, alone(evaluation.flows[node.input]), flow,
                                          summed=_is_summed(readers[node.input])))  # fmt: skip
            else:
                output = concat(_at(moment, planned, flow, summed=_is_summed(readers[node.output])))
            held += output.nbytes if isinstance(node, Reduce) else 0
            check_memory(state, held)
            moment.found[node.output] = (make_run(output, state.upper),)
        flow = alone(evaluation.flows[planned.output.output])
        few = None if order is None or not isinstance(flow, Dataflow) else _few(moment, flow, order)
        return Found(_at(moment, planned, flow)) if few is None else few
    finally:
        for key in keys:
            state.collection(key.collection).release(QUERY)


def _few(moment: Moment, flow: Dataflow, order: TopK) -> Found | None:
    """Some rows of an order; None: it is better to read all of them, or some may fail."""
    first = first_rows(flow, moment, moment.time + 1, moment.closed, order)
    if first is not None:
        return Found([first])
    behind = rows_behind(flow, moment, moment.time + 1, moment.closed, order)
    return None if behind is None else Found([behind[0]], behind[1])


def check_memory(state: State, size: int) -> None:
    """Check that rows which a query groups or orders, `size` bytes of them, fit into the engine's memory.

    Raises:
        DataError: they do not.
    """
    if size > max(state.memory.limit or machine_memory() // 2, _LEAST):
        raise DataError("the query needs more memory than the engine may use: ask for fewer rows, or give the engine "
                        "more, Engine(memory=...)")  # fmt: skip


def _at(moment: Moment, planned: ViewPlan, flow: Flow, *, summed: bool = False) -> list[Updates]:
    """The updates that add up to the output of a query's node, in at least one part. Those of different parts do not
    cancel, unless it is `summed`.

    Raises:
        DataError: a row fails, or there are too many.
    """
    time = moment.time
    parts = list(_filled(moment, flow, summed))
    outputs, errors = ([part.before(time + 1) for part in side] for side in zip(*parts, strict=True))
    raise_any(concat(errors), QUERY_NAME, time, planned.below, flow.plan)
    if not summed and any(some_below_zero(part.diff) for part in outputs):
        return [cancel(concat(outputs), by_time=False)]
    return [part for part in outputs if len(part)] or outputs[:1]


def _filled(moment: Moment, flow: Flow, summed: bool) -> Iterator[tuple[Updates, Updates]]:
    """What fills a query's node. `summed`: who reads it adds it up, so no more is done than that needs."""
    if isinstance(flow, Dataflow):
        return flow.fill(moment, moment.time + 1, moment.closed, gathered=True, summed=summed)
    return flow.fill(moment, moment.time + 1, moment.closed, gathered=True)


def _readers(planned: ViewPlan) -> Mapping[str, Sequence[Node]]:
    """The nodes that read each collection. A node may have very many inputs, so it is asked once which they are."""
    found = defaultdict[str, list[Node]](list)
    for node in planned.nodes if planned.below else ():
        for name in node.collections:
            found[name].append(node)
    return found


def _is_summed(readers: Sequence[Node]) -> bool:
    """Whether reduces that only add up are all that reads a node."""
    return all(isinstance(node, Reduce) and not node.loop and isinstance(node.function, Aggregates)
               and not node.function.ordered for node in readers)  # fmt: skip


def _adds_up_alone(readers: Sequence[Node]) -> bool:
    """Whether nothing but one reduce without keys reads a join, and adds its rows up, or finds their extremes. Then
    they are never there all at once."""
    if len(readers) != 1 or not isinstance(readers[0], Reduce) or readers[0].loop:
        return False
    function = readers[0].function
    return isinstance(function, Aggregates) and not readers[0].keys and are_extremes(function)


def _added_up(moment: Moment, planned: ViewPlan, join: Flow, reduce: Flow, *, summed: bool) -> list[Updates]:
    """As `_at`, of a reduce for which `_adds_up_alone`, from the rows that the join makes."""
    assert isinstance(reduce, ReduceFlow)
    end, failed = moment.time + 1, [NO_ERRORS]

    def parts() -> Iterator[Updates]:
        few = list[Updates]()
        for output, errors in _filled(moment, join, summed):
            failed.append(errors.before(end))
            few += [part.settled(end) for part in [output.before(end)] if len(part)]
            if sum(map(len, few)) >= _TOGETHER:
                yield concat(few)
                few = []
        yield from [concat(few)] if few else []

    made, found = parts(), None
    begun = list(islice(made, 2))
    if len(begun) > 1:
        found = reduce.added_up(chain(begun, made))
        if found is None:  # all rows are needed in order
            begun = _at(moment, planned, join)
    raise_any(concat(failed), QUERY_NAME, moment.time, planned.below, join.plan)
    if found is None:
        rows = [cancel(concat(begun), by_time=False)] if begun else []
        moment.found[join.plan.output] = tuple(make_run(part, moment.state.upper) for part in rows)
        return _at(moment, planned, reduce)
    raise_any(found[1], QUERY_NAME, moment.time, planned.below, reduce.plan)
    return [found[0]]


def _run_loop(moment: Moment, evaluation: Evaluation, nodes: Sequence[Node]) -> None:
    """Evaluate the nodes of a loop.

    Raises:
        DataError: as `_at`.
    """
    flows = {node.output: cast("Inner", evaluation.flows[node.output]) for node in nodes}
    for name, (output, errors) in loop_fill(flows, moment, moment.time + 1, last=True).items():
        raise_any(errors, QUERY_NAME, moment.time, nodes, flows[name].plan)
        moment.found[name] = (make_run(output, moment.state.upper),)


def recover(state: State) -> None:
    """Release the arrangements that an interrupted query left."""
    for collection in state.collections():
        collection.release(QUERY)
