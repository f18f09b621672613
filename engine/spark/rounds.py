"""Rounds of loops as Spark jobs, as long as many rows come in them. This process runs the others.

The jobs compute what the nodes make; this process keeps it until the loop ends, as it does for its own rounds. A
shuffle brings the groups of a reduce together, and each task runs the round of its groups as this process would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing as releasing
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.changes import StoredChanges
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.batch.runner import Held, Output
from halfjoin.engine.join.closing import Closing, RunsOf
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.loop.reduce import Round, RoundReduce
from halfjoin.engine.loop.steps import HERE, New
from halfjoin.engine.spark.asking import Times
from halfjoin.engine.spark.files import StateFiles
from halfjoin.engine.spark.flow import SparkFlow
from halfjoin.engine.spark.frames import mapped, null, read, union
from halfjoin.engine.spark.layout import Frame, Layout
from halfjoin.engine.spark.progress import progress
from halfjoin.engine.spark.reducing import CODE, GROUP_ROWS, Code, called_by
from halfjoin.engine.spark.session import quiet
from halfjoin.engine.spark.task_errors import TooHeavy, call
from halfjoin.engine.spark.tasks import Batches, array_of, gathered, outgoing, updates_of
from halfjoin.engine.spark.tasks import failing as failing_rows
from halfjoin.engine.spark.writing import written
from halfjoin.engine.updates.updates import DIFF, TIME, Updates, concat, empty
from halfjoin.planner.plan import Reduce, Version

_LATER = "__later"  # of a task's rows: whether it is a group to look at again


@dataclass(frozen=True, slots=True)
class SparkSteps:
    """Carries out steps of many rows in a session. `few`: rows of a step that this process does itself. `bind`, `run`:
    how a runner binds a join to the session, and runs its job."""

    session: Any
    files: StateFiles
    held: Held
    few: int
    bind: Callable[[Dataflow, Held, RunsOf, Mapping[Version, Times]], SparkFlow]
    run: Callable[[SparkFlow, Frame | None], tuple[Output, Output]]

    def join(self, flow: Dataflow, new: New, lookup: RunsOf, closing: Closing) -> tuple[Updates, Updates]:
        """As `Steps.join`."""
        closes = {name: self._closing(name, closing) for name in flow.plan.asked}
        came = sum(len(part) for parts in new.values() for part in parts)
        if came + sum(one.most for one in closes.values()) > self.few:
            ends = {Version.BEFORE: closing.before, Version.AFTER: closing.after}
            times = {version: Times(closing.netted, end) for version, end in ends.items()}
            bound = self.bind(flow, self.held, lookup, times)
            if bound.divides:
                with progress(f"a round of {flow.name}"), suppress(TooHeavy), releasing(bound):
                    made, failed = self.run(bound, bound.changes(new, closes))
                    return _loaded(made, flow.schema), _loaded(failed, ERROR_SCHEMA)
        return HERE.join(flow, new, lookup, closing)

    def reduce(
        self, flow: RoundReduce, updates: Updates, again: Updates, lookup: RunsOf, round: Round, before: int, *,
        failing: bool,
    ) -> tuple[Updates, Updates, Updates]:  # fmt: skip
        """As `Steps.reduce`. A reduce without keys has one group, which tasks cannot share."""
        if len(updates) + len(again) <= self.few or not flow.plan.keys:
            return HERE.reduce(flow, updates, again, lookup, round, before, failing=failing)
        functions = called_by(flow.plan, flow.registry)
        task = RoundGroups(flow.plan, functions, flow.name, round, before, failing)
        rows = () if flow.plan.groups is None else lookup(flow.plan.input, Version.AFTER)
        was = lookup(flow.plan.output, Version.AFTER)
        given = [self._coded(flow, [Run(updates)], flow.types), self._coded(flow, [Run(again)], task.keys),
                 self._coded(flow, rows, flow.types), self._coded(flow, was, flow.schema)]  # fmt: skip
        tagged = union(_tagged(frame, number, task) for number, frame in enumerate(given))
        divided = tagged.repartition((sum(map(len, rows)) + sum(map(len, was))) // GROUP_ROWS + 1, "k0")
        with progress(f"a round of {flow.name}"), quiet():
            frame = divided.mapInArrow(partial(call, task), task.outputs.struct)
            found, failed = map(self.files.loaded, written(frame, task.outputs, self.files.scratch.fresh()))
        later = found.columns[_LATER].to_numpy(zero_copy_only=False).astype(np.bool_)
        made = found.filter(~later).select([*flow.schema])
        return made, failed, found.filter(later).select([*task.keys, *flow.rounds])

    def _coded(self, flow: RoundReduce, parts: Sequence[Part], columns: Mapping[str, pa.DataType]) -> Frame:
        """The columns of some parts, with the codes of their groups."""
        runs = [run for part in parts for run in self.files.runs(part)]
        layout = Layout(tuple(columns.items()))
        frame = read(self.session, runs, columns, layout.names)
        return mapped(frame, Code(layout, replace(layout, keys=(CODE,)), tuple(key.name for key in flow.plan.keys)))

    def _closing(self, name: str, closing: Closing) -> StoredChanges:
        updates = closing.updates(name)
        parts = (Run(updates),) if len(updates) else ()
        return StoredChanges(self.held.schema(name), parts, closing.before, closing.after, consolidated=False)


def _loaded(made: Output, schema: Mapping[str, pa.DataType]) -> Updates:
    return made if isinstance(made, Updates) else concat([empty(schema), *made.pieces()])


@dataclass(frozen=True, slots=True)
class RoundGroups:
    """The task that runs a round of the groups that it gets whole.

    Its rows have the columns of the input, then those of the output, then the code and the origin: 0 for what the round
    adds, 1 for groups to look at again, 2 for the rows of the input, 3 for those of the output.
    """

    plan: Reduce
    registry: Registry
    name: str
    round: Round
    before: int
    failing: bool

    @property
    def flow(self) -> RoundReduce:
        """The reduce that it runs."""
        return RoundReduce(self.plan, self.registry, self.name)

    @property
    def keys(self) -> dict[str, pa.DataType]:
        """The columns of the keys."""
        types = self.flow.types
        return {key.name: types[key.name] for key in self.plan.keys}

    @property
    def inputs(self) -> Layout:
        """The layout of its rows."""
        flow = self.flow
        columns = [*flow.types.values(), *flow.schema.values()]
        return Layout(tuple((str(number), kind) for number, kind in enumerate(columns)), (CODE, pa.int32()))

    @property
    def outputs(self) -> Layout:
        """The layout of what it makes."""
        return Layout((*self.flow.schema.items(), (_LATER, pa.bool_())), (), errors=True)

    def places(self, origin: int) -> dict[str, int]:
        """The places of an origin's columns among those of its rows."""
        flow = self.flow
        first = len(flow.types) if origin == 3 else 0
        names = (flow.types, self.keys, flow.types, flow.schema)[origin]
        return {name: first + place for place, name in enumerate(names)}

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        flow, layout = self.flow, self.inputs
        found: list[list[Updates]] = [[], [], [], []]
        for table in gathered(batches):
            updates, origin = updates_of(table, layout), array_of(table, "k1").to_numpy()
            for number, parts in enumerate(found):
                fetch = tuple((str(place), name) for name, place in self.places(number).items())
                parts.append(updates.filter(origin == number).renamed(fetch))
        columns = (flow.types, self.keys, flow.types, flow.schema)
        now, again, rows, was = (concat([empty(own), *parts]) for own, parts in zip(columns, found, strict=True))
        if len(now) or len(again):
            there = {self.plan.input: rows, self.plan.output: was}
            made, failed, later = flow.round(now, again, lambda name, _: [Run(there[name])], self.round, self.before,
                                             failing=self.failing)  # fmt: skip
            yield from _outgoing(made, self.outputs, later=False)
            yield from _outgoing(later, self.outputs, later=True)
            if len(failed):
                yield from failing_rows(failed, self.outputs)


def _outgoing(made: Updates, layout: Layout, *, later: bool) -> Batches:
    if len(made):
        columns = {name: made.columns[name] if name in made.columns else pa.nulls(len(made), kind)
                   for name, kind in layout.columns[:-1]}  # fmt: skip
        columns[_LATER] = pa.array(np.full(len(made), later))
        yield from outgoing(Updates(columns, made.time, made.diff), [], layout)


def _tagged(frame: Frame, origin: int, task: RoundGroups) -> Frame:
    """A frame of an origin, with a code, as rows for a task."""
    given = {place: f"c{number}" for number, place in enumerate(task.places(origin).values())}
    columns = [f"{given.get(number, null(kind))} AS c{number}" for number, (_, kind) in enumerate(task.inputs.columns)]
    return frame.selectExpr(*columns, "k0", f"CAST({origin} AS int) AS k1", TIME, DIFF)
