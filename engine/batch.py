"""A batch, from checked rows to published runs: the steps of one `Engine.apply`, in order.

Durability and failure: nothing of the state is changed before `publish`, so a refused or failing batch leaves no trace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from halfjoin.engine.primary_key import arrangement_of, primary_key
from halfjoin.engine.rows import Submitted
from halfjoin.engine.run import Run, make_run
from halfjoin.engine.state import State
from halfjoin.engine.updates import Updates, constant
from halfjoin.sql.errors import InvalidTime


@dataclass(frozen=True, slots=True)
class Staged:
    """What a batch will publish: a run for each collection that it changes, and the views' closed changes."""

    runs: Mapping[str, Run]
    errors: Mapping[str, Run]
    upper: int
    diffs: dict[str, pa.Table] = field(default_factory=dict)


def fingerprint(batch: Mapping[str, Submitted], time: int | None) -> bytes:
    """Equal for equal content, whatever form the rows came in."""
    digest = hashlib.sha256(repr(time).encode())
    for name in sorted(batch):
        rows = batch[name]
        digest.update(repr((name, rows.length, rows.upsert)).encode())
        for ints in (rows.time, rows.diff):
            digest.update(b"-" if ints is None else np.ascontiguousarray(ints).tobytes())
        table = pa.table(rows.columns) if rows.columns else pa.table({})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            # A copy has no offsets and no bytes that are not seen.
            writer.write_table(table.take(np.arange(len(table))).combine_chunks())
        digest.update(sink.getvalue())
    return digest.digest()


def updates_of(state: State, batch: Mapping[str, Submitted], time: int) -> dict[str, Updates]:
    """Each table's updates, with the rows' own times or `time`, checked against `upper` and the primary key.

    Raises:
        InvalidTime: a time is closed.
        InvalidRow: a key would be there twice, or a row that is not there be deleted.
    """
    result = {}
    for name, rows in batch.items():
        times = constant(time, rows.length) if rows.time is None else rows.time
        if rows.length and int(times.min()) < state.upper:
            position = int(np.flatnonzero(times < state.upper)[0])
            raise InvalidTime(
                f"{name}: row {position}: time {int(times[position])} is closed: times below upper = {state.upper} "
                "never change again; submit the row at upper or later"
            )
        diffs = constant(1, rows.length) if rows.diff is None else rows.diff
        updates = Updates(rows.columns, times, diffs)
        if rows.diff is not None and not rows.diff.all():
            updates = updates.filter(rows.diff != 0)
        table, collection = state.catalog.tables[name], state.tables[name]
        if table.primary_key:
            arrangement = arrangement_of(table)
            key = primary_key(table, collection.arrangements[arrangement].columns)
            if rows.upsert:
                updates = key.replaced(collection, updates)
            key.check(collection, updates)
        result[name] = updates
    return result


def stage(state: State, batch: Mapping[str, Updates], upper: int) -> Staged:
    """Run every view over the batch, in order of dependency; `upper` is what is closed afterwards."""
    runs = {name: make_run(updates, upper) for name, updates in batch.items() if len(updates)}
    errors = {}
    lookup = state.before_and_after(runs)
    for name, view in state.views.items():
        if any(collection in runs for collection in view.dataflow.plan.collections):
            output, failed = view.dataflow.changes(runs, lookup)
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
