"""A batch, from checked rows to published runs: the steps of one `Engine.apply`, in order.

Durability and failure: nothing of the state is changed before `publish`, so a refused or failing batch leaves no trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from halfjoin.engine.consolidate import consolidate
from halfjoin.engine.primary_key import PrimaryKey, arrangement_of
from halfjoin.engine.rows import Submitted
from halfjoin.engine.run import Part, Run, make_run
from halfjoin.engine.runners import LOCAL, Runner
from halfjoin.engine.state import State
from halfjoin.engine.times import now
from halfjoin.engine.updates import Updates, concat, constant
from halfjoin.sql.errors import InvalidTime


@dataclass(frozen=True, slots=True)
class Staged:
    """What a batch will publish: a run for each collection that it changes, and the views' closed changes."""

    runs: Mapping[str, Part]
    errors: Mapping[str, Part]
    upper: int
    diffs: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes that it holds in memory, besides the answer."""
        return sum(part.row_bytes + part.index_bytes for part in (*self.runs.values(), *self.errors.values()))


def batch_times(state: State, batch: Mapping[str, Submitted], given: int | None) -> tuple[int, int]:
    """The time of rows without their own (`given`, or the present), and the last time of all.

    Where every row has its own time and none is given, it is the last of theirs.

    Raises:
        InvalidTime: the time given is closed.
    """
    if given is not None and given < state.upper:
        raise InvalidTime(
            f"time {given} is closed: times below upper = {state.upper} never change again; "
            "submit the batch at upper or later"
        )
    own = [int(rows.time.max()) for rows in batch.values() if rows.time is not None and rows.length]
    if given is None and own and all(rows.time is not None for rows in batch.values()):
        return max(own), max(own)
    time = max(state.upper, now()) if given is None else given
    return time, max([time, *own])


def runs_of(state: State, batch: Mapping[str, Submitted], time: int, upper: int) -> dict[str, Run]:
    """A run of each table's updates, checked against what is closed and against the primary key.

    Raises:
        InvalidTime: a time is closed.
        InvalidRow: a key would be there twice, or a row that is not there be deleted.
    """
    runs = {}
    for name, rows in batch.items():
        times = constant(time, rows.length) if rows.time is None else rows.time
        if rows.time is not None and rows.length and int(times.min()) < state.upper:
            position = int(np.flatnonzero(times < state.upper)[0])
            raise InvalidTime(
                f"{name}: row {position}: time {int(times[position])} is closed: times below upper = {state.upper} "
                "never change again; submit the row at upper or later"
            )
        updates = Updates(rows.columns, times, constant(1, rows.length) if rows.diff is None else rows.diff)
        table, collection = state.catalog.tables[name], state.tables[name]
        if rows.whole:
            updates = _in_place_of(collection.as_of(time, distinct=True), updates, time, upsert=rows.upsert)
        indexes = {}
        if table.primary_key:
            arrangement = arrangement_of(table)
            key = PrimaryKey(table, arrangement, collection.arrangements[arrangement].columns)
            if rows.upsert:
                updates = key.replaced(collection, updates)
            indexes[arrangement] = key.check(collection, updates)
        if not updates.diff.all():
            updates, indexes = updates.filter(updates.diff != 0), {}
        if len(updates):
            runs[name] = make_run(updates, upper, indexes)
    return runs


def _in_place_of(contents: Updates, updates: Updates, time: int, *, upsert: bool) -> Updates:
    """Updates by which all of a table's contents go, and what is given comes; what does both does neither."""
    count = constant(0, len(contents)) if upsert else -contents.diff
    every = concat([Updates(contents.columns, constant(time, len(contents)), count), updates])
    return every if upsert else consolidate(every)


def stage(state: State, batch: Mapping[str, Part], upper: int, runner: Runner = LOCAL) -> Staged:
    """Let a runner take every view through the batch, in order of dependency; `upper` is what is closed afterwards."""
    runs = dict(batch)
    errors: dict[str, Run] = {}
    lookup = state.before_and_after(runs)
    for name, view in state.views.items():
        if any(collection in runs for collection in view.dataflow.plan.collections):
            output, failed = runner.changes(view.dataflow, state, runs, lookup)
            if len(output):
                runs[name] = make_run(output, upper)
            if len(failed):
                errors[name] = make_run(failed, upper)
    staged = Staged(runs, errors, upper)
    for name, view in state.views.items():
        staged.diffs[name] = view.contents.closing(state.upper, upper, runs.get(name)).table(changes=True)
    return staged


def publish(state: State, staged: Staged) -> None:
    """Make a staged batch visible, and close its times."""
    for name, run in staged.runs.items():
        state.collection(name).publish(run)
    for name, run in staged.errors.items():
        state.views[name].errors.publish(run)
    state.upper = staged.upper
    for collection in state.collections():
        collection.advance(state.upper)
        collection.tidy(state.upper)
