"""Reduces as Spark jobs: tasks add up what adds up, a shuffle brings groups together, tasks run the reduce on them.

The tasks call the reduce of the local runner, each on the groups that it has. All rows of a group have one code, by
which Spark divides them among the tasks. So equal keys meet, whatever they look like (-0.0 and 0.0), and Spark's own
meaning of values plays no part. Sums go through the shuffle as one row for each task, group and time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.closing import Closing
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce.flow import ReduceFlow
from halfjoin.engine.reduce.lifted import Lifted, add_up, lift_all
from halfjoin.engine.spark.frames import mapped, not_before, null, read, union
from halfjoin.engine.spark.layout import Frame, Layout
from halfjoin.engine.spark.probing import STREAM_ROWS
from halfjoin.engine.spark.session import quiet
from halfjoin.engine.spark.task_errors import TooHeavy, call
from halfjoin.engine.spark.tasks import Batches, OnUpdates, array_of, failing, gathered, outgoing, updates_of
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import DIFF, MAXIMUM, TIME, TOO_HEAVY, Updates, concat, empty
from halfjoin.errors import DataError
from halfjoin.planner.group_functions import Aggregates, Own, Top, Windows
from halfjoin.planner.plan import Reduce

GROUP_ROWS = 1 << 20  # rows of whole groups for one task, if no group has more

CODE = pa.int64()  # the key by which Spark divides groups among tasks


@dataclass(frozen=True, slots=True)
class Reducing:
    """A reduce bound to a session. Its frames are lazy."""

    flow: ReduceFlow
    session: Any

    @property
    def inputs(self) -> Layout:
        """The columns of the input that the reduce reads."""
        return Layout(tuple(self.flow.columns.items()))

    @property
    def outputs(self) -> Layout:
        """The layout of the results. A reduce of sums keeps sums in these columns, so its sums have them too."""
        return Layout(tuple(self.flow.schema.items()), (), errors=True)

    def fill(self, runs: Sequence[StoredRun], since: int, upper: int) -> Frame:
        """The output and errors of the history below `upper` of an input in files. Times below `since` become `since`.

        If the only group of the reduce is always there, the frame may have no rows although it is.
        """
        frame = self._read(runs, self.flow.columns).where(F.col(TIME) < F.lit(upper))
        frame = not_before(frame, since)
        if self.flow.plan.groups is None:
            return self._run(Fill(self.flow.plan, self._sums, self.outputs, since), self._summed(frame))
        frame, layout = self._coded(frame, self.inputs)
        functions = called_by(self.flow.plan, self.flow.registry)
        task = FillGroups(self.flow.plan, layout, self.outputs, functions, self.flow.name, since)
        return self._run(task, self._divided(frame, sum(map(len, runs))))

    def sums(self, runs: Sequence[StoredRun], low: int, high: int) -> tuple[Frame, Layout]:
        """What the input's updates with times in `[low, high)` add to the sums that the reduce keeps."""
        frame = self._read(runs, self.flow.columns).where((F.col(TIME) >= F.lit(low)) & (F.col(TIME) < F.lit(high)))
        layout = replace(self._sums, keys=())
        return self._run(AddUp(self.flow.plan, self._sums, layout), self._summed(frame)), layout

    def changes(
        self, change: Sequence[StoredRun], rows: Sequence[StoredRun], was: Sequence[StoredRun], closing: Closing
    ) -> Frame:
        """The output and errors for what closes in an input of whole groups.

        `change`: the updates that came or waited; `rows`: all updates of the input; `was`: those of the output. Only
        groups that the change touches go through the shuffle, unless the change is large.
        """
        low, high = F.lit(closing.before), F.lit(closing.after)
        now = self._read(change, self.flow.columns).where((F.col(TIME) >= low) & (F.col(TIME) < high))
        every = self._read(rows, self.flow.columns).where(F.col(TIME) < high)
        coded = [self._coded(frame, self.inputs)[0] for frame in (now, every)]
        if self.flow.plan.state is not None:
            coded.append(self._coded(self._read(was, self.flow.schema), replace(self.outputs, errors=False))[0])
        if sum(map(len, change)) <= STREAM_ROWS:
            touched = F.broadcast(coded[0].select("k0"))
            coded[1:] = [frame.join(touched, "k0", "left_semi") for frame in coded[1:]]
        functions = called_by(self.flow.plan, self.flow.registry)
        task = ChangeGroups(self.flow.plan, self.outputs, functions, self.flow.name, closing[:3])
        given = union(_tagged(frame, number, task.inputs) for number, frame in enumerate(coded))
        return self._run(task, self._divided(given, sum(map(len, rows))))

    def _read(self, runs: Iterable[StoredRun], columns: Mapping[str, pa.DataType]) -> Frame:
        return read(self.session, runs, columns, list(columns))

    @property
    def _sums(self) -> Layout:
        return Layout(tuple(self.flow.schema.items()), (CODE,))

    def _summed(self, frame: Frame) -> Frame:
        """The sums of each task over its rows of the input, divided by groups."""
        return self._divided(self._run(SumUp(self.flow.plan, self.inputs, self._sums), frame), 0)

    def _coded(self, frame: Frame, layout: Layout) -> tuple[Frame, Layout]:
        coded = replace(layout, keys=(CODE,))
        return mapped(frame, Code(layout, coded, tuple(key.name for key in self.flow.plan.keys))), coded

    def _divided(self, frame: Frame, rows: int) -> Frame:
        """The rows, with all of a group in one task. `rows`: how many there are; 0: Spark sees how many."""
        if not self.flow.plan.keys:
            return frame.repartition(1)
        return frame.repartition(rows // GROUP_ROWS + 1, "k0") if rows else frame.repartition("k0")

    def _run(self, task: Fill | FillGroups | ChangeGroups | SumUp | AddUp, frame: Frame) -> Frame:
        with quiet():
            return frame.mapInArrow(partial(call, task), task.outputs.struct)


def called_by(plan: Reduce, registry: Registry) -> Registry:
    """The user's functions that a reduce calls. Others need not fit into a task."""
    match plan.function:
        case Own(called):
            names = {called}
        case Aggregates(ordered=ordered):
            names = {part.function for part in ordered}
        case Windows(calls=calls):
            names = {call.function for _, call in calls}
        case Top():
            names = set()
    return {name: one for name, one in registry.items() if name.rpartition(" of ")[2] in names}


@dataclass(frozen=True, slots=True)
class Code:
    """The task that gives each row the code of its group."""

    inputs: Layout
    outputs: Layout
    keys: tuple[str, ...]

    def compile(self) -> OnUpdates:
        """The function of updates."""
        return lambda updates, _: (updates, [_codes(updates, self.keys)])


@dataclass(frozen=True, slots=True)
class SumUp:
    """The task that adds up its rows of the input: one row for each group and time, with the code of the group."""

    plan: Reduce
    inputs: Layout
    outputs: Layout

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        pieces = (updates_of(table, self.inputs) for table in gathered(batches))
        yield from _sums(self.plan, lift_all(_function(self.plan), _keys(self.plan), pieces), self.outputs)


@dataclass(frozen=True, slots=True)
class AddUp:
    """The task that adds up the sums of other tasks."""

    plan: Reduce
    inputs: Layout
    outputs: Layout

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        yield from _sums(self.plan, _added(self.plan, self.inputs, batches), self.outputs)


@dataclass(frozen=True, slots=True)
class Fill:
    """The task that fills a reduce of sums with the groups whose sums it gets."""

    plan: Reduce
    inputs: Layout
    outputs: Layout
    since: int

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        flow = ReduceFlow(self.plan, {}, "")
        yield from _filled(flow, flow.filled(_added(self.plan, self.inputs, batches)), self.outputs, self.since)


@dataclass(frozen=True, slots=True)
class FillGroups:
    """The task that fills a reduce with the groups whose rows it gets."""

    plan: Reduce
    inputs: Layout
    outputs: Layout
    registry: Registry
    name: str
    since: int

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        flow = ReduceFlow(self.plan, self.registry, self.name)
        rows = [updates_of(table, self.inputs) for table in gathered(batches)]
        if rows or flow.always:
            for made in flow.fill(lambda *_: [Run(concat(rows))] if rows else [], MAXIMUM):
                yield from _filled(flow, made, self.outputs, self.since)


@dataclass(frozen=True, slots=True)
class ChangeGroups:
    """The task that changes a reduce for the groups that it gets whole.

    Its rows have the columns of the input, then those of the output, then the code and the origin: 0 for what closes, 1
    for the rows of the input, 2 for those of the output. `times`: the first fields of `Closing`.
    """

    plan: Reduce
    outputs: Layout
    registry: Registry
    name: str
    times: tuple[int, int, int]

    @property
    def inputs(self) -> Layout:
        """The layout of its rows."""
        columns = [*ReduceFlow(self.plan, self.registry, self.name).columns.items(), *self.outputs.columns]
        named = tuple((str(number), kind) for number, (_, kind) in enumerate(columns))
        return Layout(named, (CODE, pa.int32()))

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        flow = ReduceFlow(self.plan, self.registry, self.name)
        names, layout = [*flow.columns], self.inputs
        of_input = tuple(zip(layout.names, names, strict=False))
        of_output = tuple(zip(layout.names[len(names) :], flow.schema, strict=True))
        found: list[list[Updates]] = [[], [], []]
        for table in gathered(batches):
            updates, origin = updates_of(table, layout), array_of(table, "k1").to_numpy()
            for number, fetch in enumerate((of_input, of_input, of_output)):
                found[number].append(updates.filter(origin == number).renamed(fetch))
        now, rows, was = (concat(parts) if parts else empty({}) for parts in found)
        if len(now):
            # The kept answer tells the first rows of a group, and saves lookups. Here all rows are at hand.
            closing = Closing(*self.times, lambda _: now, lambda _: True)
            output, errors = flow.changes(
                {}, lambda name, _: [Run(rows if name == self.plan.input else was)], closing
            )
            output = output if isinstance(output, Updates) else concat([*output.pieces()])
            yield from _made((output, errors), self.outputs)


def _tagged(frame: Frame, origin: int, layout: Layout) -> Frame:
    """A frame of the input or the output, with a code, as rows for `ChangeGroups`."""
    names = [name for name in frame.columns if name.startswith("c")]
    first = len(layout.columns) - len(names) if origin == 2 else 0
    places = dict(zip(range(first, len(layout.columns)), names, strict=False))
    columns = [f"{places.get(i, null(kind))} AS c{i}" for i, (_, kind) in enumerate(layout.columns)]
    return frame.selectExpr(*columns, "k0", f"CAST({origin} AS int) AS k1", TIME, DIFF)


def _function(plan: Reduce) -> Aggregates:
    assert isinstance(plan.function, Aggregates)  # no other function adds up
    return plan.function


def _keys(plan: Reduce) -> list[str]:
    return [key.name for key in plan.keys]


def _codes(updates: Updates, keys: Iterable[str]) -> pa.Array:
    return pa.array(codes([updates.columns[name] for name in keys], len(updates)))


def _added(plan: Reduce, layout: Layout, batches: Batches) -> Lifted | None:
    """All sums that a task gets, added up."""
    rows = (updates_of(table, layout) for table in gathered(batches))
    return add_up(Lifted.read(_function(plan), _keys(plan), updates).summed() for updates in rows)


def _sums(plan: Reduce, lifted: Lifted | None, layout: Layout) -> Batches:
    """Sums, for Spark.

    Raises:
        TooHeavy: an int64 cannot hold a count. Other tasks may bring it back; this process finds out.
    """
    if lifted is not None:
        try:
            rows = lifted.kept(_function(plan))
        except DataError:
            raise TooHeavy(TOO_HEAVY) from None
        yield from outgoing(rows, [_codes(rows, _keys(plan))] if layout.keys else [], layout)


def _filled(flow: ReduceFlow, made: tuple[Updates, Updates], layout: Layout, since: int) -> Batches:
    """The output of a fill. If the only group is always there, it comes before all times of the input."""
    output, errors = made
    return _made((consolidate(output.not_before(since)) if flow.always else output, errors), layout)


def _made(made: tuple[Updates, Updates], layout: Layout) -> Batches:
    output, errors = made
    if len(output):
        yield from outgoing(output, [], layout)
    if len(errors):
        yield from failing(errors, layout)
