"""A batch, from checked rows to published runs: the steps of one `Engine.apply`, in order.

The state does not change before `publish`, so a refused or failing batch leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import field, replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.arrange.changes import Changes, StoredChanges
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.index import Index
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.activity import Work
from halfjoin.engine.batch.clock import YEAR, Clock, Times, check_jump, closed, settled
from halfjoin.engine.batch.flows import Flow, Inner, alone, is_passing
from halfjoin.engine.batch.looping import kept, loop_changes, per_round
from halfjoin.engine.batch.runner import LOCAL, Checked, Output, Runner, Tasks
from halfjoin.engine.batch.state import MaintainedView, State
from halfjoin.engine.batch.unreadable import Failure, Standing, closing
from halfjoin.engine.intake.fingerprint import Partial, partial
from halfjoin.engine.intake.foreign_keys import Tables
from halfjoin.engine.intake.foreign_keys import check as check_foreign_keys
from halfjoin.engine.intake.generated import check as check_row_by_row
from halfjoin.engine.intake.generated import with_generated
from halfjoin.engine.intake.primary_key import key_of, primary_key
from halfjoin.engine.intake.primary_key import known as without_nulls
from halfjoin.engine.intake.referential import Effects
from halfjoin.engine.intake.rows import Submitted, unnumbered
from halfjoin.engine.intake.unnamed import filled
from halfjoin.engine.intake.upserts import latest
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.join.gates import Changed
from halfjoin.engine.linear.failures import of_view
from halfjoin.engine.system.identity import by_identity
from halfjoin.engine.system.value import value
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import MAXIMUM, Updates, concat, constant, empty, ends, where_true
from halfjoin.errors import DataError, InvalidRow, InvalidTime


@value
class Staged:
    """What a batch will publish: a run for each collection that it changes, the views' closed changes, the clock.

    `failures`: the views that cannot be read at some time that it closes. `standing`: the errors of views afterwards.
    `rounds`: of the bindings of the loops that ran, how many updates each round made. `work`: of the nodes that ran.
    """

    runs: Mapping[str, Part]
    errors: Mapping[str, Part]
    upper: int
    diffs: dict[str, Changes] = field(default_factory=dict)
    failures: Mapping[str, Failure] = field(default_factory=dict)
    standing: Mapping[str, Standing] = field(default_factory=dict)
    rounds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    clock: Clock | None = None
    work: Mapping[str, Work] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of the runs in memory, without the views' closed changes."""
        return sum(part.row_bytes + part.index_bytes for part in (*self.runs.values(), *self.errors.values()))


_LATER = "submit the row at upper or later"
_CROWDED = 256  # updates; fewer are looked up as they come


def fingerprints(state: State, batch: Mapping[str, Checked]) -> dict[str, Partial]:
    """The fingerprint of each table's rows."""
    return {
        name: partial(latest(state.catalog.table(name), rows)) if isinstance(rows, Submitted) else rows.part
        for name, rows in batch.items()
    }


def batch_times(
    state: State, batch: Mapping[str, Checked], given: int | None, present: int, *, close: bool
) -> Times:
    """The time of rows without their own (`present`), and the `upper` that closes the batch's last time.

    If every row has its own time and the caller gave none, it is the last of theirs. A batch without rows and without
    a time closes times only by the wall clock.

    Raises:
        InvalidTime: the given time is closed, every time is closed, no time is given where one must be, or the jump is
            too far.
    """
    if given is not None and given < state.upper:
        raise closed_at(state, f"time {given}", given, "submit the batch at upper or later")
    own = [rows.last for rows in batch.values() if rows.timed and rows.length]
    timed = bool(batch) and all(rows.timed for rows in batch.values())
    nothing = state.clock == "own" or (timed and state.clock is None)
    if given is None and nothing and not any(rows.length for rows in batch.values()):
        return Times(state.upper - 1, state.upper, state.clock)
    timed = bool(own) and all(rows.timed or not rows.length for rows in batch.values())
    clock = settled(state.clock, given=given is not None or timed)
    at = max(own) if given is None and timed else present
    last = max([at, *own]) if own else at
    if last >= MAXIMUM:
        raise InvalidTime(f"every time below upper = {state.upper} is closed, and there is none after it for a batch",
                          time=last, upper=state.upper)  # fmt: skip
    if not close:
        return Times(at, state.upper, clock)
    if last - state.upper > YEAR:
        check_jump(clock, state.upper, state.history, last)
    return Times(at, last + 1, clock)


def closed_at(state: State, words: str, time: int, remedy: str) -> InvalidTime:
    """The error for a closed time."""
    return closed(words, time, state.upper, state.clock, state.home.closed_by(time), remedy)


def runs_of(
    state: State, batch: Mapping[str, Checked], time: int, upper: int, tasks: Tasks | None = None, *,
    follow: bool = False, deferred: bool = True,
) -> dict[str, Part]:  # fmt: skip
    """A run of each table's updates, checked against `upper` and the constraints.

    `tasks` makes the runs of rows in files. `follow`: ON DELETE of foreign keys acts; statements have done that
    already. `deferred`: foreign keys that are DEFERRED are checked, too.

    Raises:
        InvalidTime: a time is closed.
        InvalidRow: a key would occur twice, or a row to delete does not exist.
    """
    frames = {name: rows for name, rows in batch.items() if not isinstance(rows, Submitted)}
    for name, given in frames.items():
        if given.first < state.upper:
            raise closed_at(state, f"{name}: the time {given.first} of a row", given.first, _LATER).with_(table=name)
    runs: dict[str, Part] = {}
    changed: dict[str, Updates] = {}
    if frames and tasks is not None:
        outputs = tasks.runs_of(list(frames.values()), state.before_and_after({}), time)
        runs = {name: _part(output, upper) for name, output in outputs.items() if len(output)}
    for name, rows in batch.items():
        if not isinstance(rows, Submitted):
            continue
        times = constant(time, rows.length) if rows.time is None else rows.time
        if rows.time is not None and rows.length and ends(times)[0] < state.upper:
            position = int(where_true(times < state.upper)[0])
            early = int(times[position])
            where = f"row {position}: time {early}" if rows.numbered else f"the time {early} of a row"
            raise closed_at(state, f"{name}: {where}", early, _LATER).with_(table=name)
        updates = Updates(rows.columns, times, constant(1, rows.length) if rows.diff is None else rows.diff)
        table, collection = state.catalog.tables[name], state.tables[name]
        constrained = table.constrained
        if rows.whole:
            if rows.unnamed:  # what they do not name is of the batch's own rows, as no other row stays
                rows_key = primary_key(table)
                updates = filled(rows_key, [], updates, rows.unnamed, rows.moved, upsert=rows.upsert)
                rows = replace(rows, unnamed={})
            updates = _in_place_of(collection.as_of(time, distinct=True), updates, time, upsert=rows.upsert)
        indexes = {}
        if constrained and not rows.unnamed:
            updates = with_generated(table, updates, given=True)
        if table.primary_key:
            key = primary_key(table)
            candidates = key.candidates(collection.looked_up(len(updates.time)), updates, closed=state.upper)
            if rows.unnamed:
                unnamed = {one.name: rows.unnamed[one.name] for one in table.columns
                           if one.name in rows.unnamed and one.generated is None}  # fmt: skip
                updates = filled(key, candidates, updates, unnamed, rows.moved, upsert=rows.upsert)
                updates = with_generated(table, updates, given=True)
            if rows.upsert:
                updates = key.replaced(candidates, updates)
            try:
                indexes[key.arrangement] = key.check(candidates, updates)
            except InvalidRow as problem:
                raise problem if rows.numbered else unnumbered(problem, table, None) from None
        if constrained:
            try:
                check_row_by_row(table, updates)
                _check_unique(table, collection, updates, state.upper)
            except InvalidRow as problem:
                if rows.numbered and not rows.upsert:
                    raise
                raise unnumbered(problem, table, pa.table(updates.columns)) from None  # not in the order of the rows
            changed[name] = updates
        if any(map(_is_crowded, indexes.values())):  # constraints have seen each row by its number
            updates, indexes = consolidate(updates), {}
        length = len(updates.time)
        if np.count_nonzero(updates.diff) < length:
            updates, indexes = updates.filter(updates.diff != 0), {}
            length = len(updates)
        if length:
            runs[name] = make_run(updates, upper, indexes)
    if changed and follow and any(key.on_delete for one in state.catalog.tables.values() for key in one.foreign_keys):
        every = Effects(Tables(state.catalog.tables, state.tables), dict(changed)).follow({})
        more = {name: rows for name, rows in every.items() if len(rows) > len(changed.get(name, ()))}
        if more:
            whole = {name: Submitted(dict(rows.columns), len(rows), rows.time, rows.diff, numbered=False)
                     for name, rows in {**changed, **more}.items()}  # fmt: skip
            return runs | runs_of(state, whole, time, upper)
    if changed:
        check_foreign_keys(Tables(state.catalog.tables, state.tables), changed, deferred=deferred)
    return runs


def _is_crowded(index: Index) -> bool:
    """Whether a batch changes its keys again and again, so that most of its updates cancel: an update of a row is two.
    Each would be joined with all its partners."""
    return len(index) >= _CROWDED and len(index) > 3 * index.distinct()


def _check_unique(table: Table, collection: Collection, updates: Updates, upper: int) -> None:
    """Check the UNIQUE constraints of a table. Times below `upper` are closed.

    Raises:
        InvalidRow: a key would have two rows.
    """
    for one in table.unique:
        key, asked = key_of(table, one.columns), without_nulls(updates, one.columns)
        rows = updates.filter(asked)
        try:
            key.check(key.candidates(collection.looked_up(len(rows)), rows, closed=upper), rows)
        except InvalidRow as problem:
            row = None if problem.row is None else int(where_true(asked)[problem.row])
            raise problem.with_(row=row) from None


def _in_place_of(contents: Updates, updates: Updates, time: int, *, upsert: bool) -> Updates:
    """Updates that replace a table's contents by the given rows; rows in both are left alone."""
    count = constant(0, len(contents)) if upsert else -contents.diff
    every = concat([Updates(contents.columns, constant(time, len(contents)), count), updates])
    return every if upsert else consolidate(every)


def stage(
    state: State, batch: Mapping[str, Part], upper: int, runner: Runner = LOCAL, clock: Clock | None = None
) -> Staged:
    """Let a runner take each node through the batch, once, in order of dependency. Times below `upper` close.

    A view is due when a collection that it reads changes, by a row that may pass its filters. It is also due, even in
    an empty batch, when updates close of a collection in which it asks whether keys are present, or whose groups it
    reduces.

    A passing node's output is not kept: what closes goes to the reduces above, what does not is pending.

    If a view's changes for the whole batch are too large, though no single row is at fault, the view and the views
    above it fail from the batch's time on. The batch and the other views go on. To repair the view, mend its SQL or the
    rows and create it anew.
    """
    runs = dict(batch)
    errors: dict[str, Part] = {}
    lookup = state.before_and_after(runs, upper)
    changed, values, closed = set(runs), Changed(runs), state.closing(upper)
    due = state.wiring.due(changed, closed, values)
    looped, rounds = set[str](), dict[str, tuple[int, ...]]()
    work: dict[str, Work] = {}
    for number, name in enumerate(due, 1):
        view = state.maintained[name]
        flow = view.dataflow
        if flow.loop:
            if flow.loop not in looped:
                began = perf_counter()
                looped.add(flow.loop)
                spent: dict[str, float] = {}
                made = loop_changes(state, flow.loop, lookup, runner.steps(state), spent)
                for one, (added, wrong) in made.items():
                    rounds[one] = per_round(added)
                    if len(added := kept(state, one, added, upper)):
                        runs[one] = make_run(added, upper)
                        changed.add(one)
                    if len(wrong):
                        errors[one] = make_run(wrong, upper)
                    work[one] = Work(len(added), spent.get(one, 0.0), began)
            continue
        if _concerned(flow, changed, values) or (closed and _waited_for(name, flow, closed)):
            began, found = perf_counter(), lookup.looked_up.rows
            title = f"{name}, view {number} of {len(due)}"
            try:
                output, failed = runner.changes(alone(flow), state, runs, lookup, title)
            except DataError as problem:
                start = state.upper if flow.asked else _earliest(state, runs)
                output, failed = empty(flow.schema), of_view(str(problem), start)
            length = len(output)
            work[name] = Work(length, perf_counter() - began, began, lookup.looked_up.rows - found)
            if is_passing(flow):
                passed, output = _passed(view, output, state.upper, upper)
                lookup.passed[name], length = passed, len(output)
                if isinstance(passed, StoredChanges) or len(passed):
                    changed.add(name)
            if length:
                runs[name] = _part(output, upper)
                changed.add(name)
            if len(failed):
                errors[name] = _part(failed, upper)
    every, standing = closing(state, upper, errors)
    failures = {name: one for name, one in every.items() if state.maintained[name].plan is not None} if every else every
    staged = Staged(runs, errors, upper, {}, failures, standing, rounds, clock, work)
    for name, view in state.maintained.items():
        if view.plan is None:
            continue  # a node collection: its changes are reported to nobody
        run = runs.get(name)
        if run is None and not view.contents.closes(state.upper, upper):
            staged.diffs[name] = _unchanged(view.contents.schema)
        elif run is None or run.in_memory:
            staged.diffs[name] = view.contents.closing(state.upper, upper, run).table(changes=True)
        else:
            staged.diffs[name] = view.contents.closing_in_files(state.upper, upper, run)
    return staged


def _concerned(flow: Flow | Inner, changed: Set[str], values: Changed) -> bool:
    """Whether what changed may change the output."""
    reads = flow.reads & changed
    return bool(reads) and (not isinstance(flow, Dataflow) or flow.gates.open(reads, values))


def _waited_for(name: str, flow: Flow | Inner, closed: Set[str]) -> bool:
    """Whether updates close that change the output, though they came earlier."""
    return not flow.asked.isdisjoint(closed) or (name in closed and is_passing(flow))


@by_identity
def _nothing(schema: Mapping[str, pa.DataType]) -> Updates:
    """No updates. One such object is enough for all batches."""
    return empty(schema)


@by_identity
def _unchanged(schema: Mapping[str, pa.DataType]) -> pa.Table:
    """No changes. Most views are unchanged by a batch, and one table is enough for all batches."""
    return empty(schema).table(changes=True)


def _passed(node: MaintainedView, output: Output, low: int, upper: int) -> tuple[Updates | StoredChanges, Updates]:
    """What a passing node passes on when `upper` goes from `low` to `upper`, and the change of what is pending: the
    output that does not close, and without the updates that were pending and close now.

    Equal updates of what it passes on may be apart. What a job has left in files stays there.
    """
    if isinstance(output, Updates) and not node.contents.closes(low, upper) and output.within(low, upper):
        return output, _nothing(node.contents.schema)  # the common case
    was = node.contents.closing(low, upper)
    part = _part(output, upper)
    later = [*part.pieces(upper)]
    gone = Updates(was.columns, was.time, -was.diff)
    if not part.in_memory and low < upper:
        stored = StoredChanges(node.contents.schema, (make_run(was, upper), part), low, upper, consolidated=False)
        return stored, consolidate(concat([gone, *later]))
    return concat([was, *part.pieces(low, upper)]), consolidate(concat([gone, *later]))


def _earliest(state: State, runs: Mapping[str, Part]) -> int:
    """A time below which a batch changes nothing."""
    return max(state.upper, min(run.earliest for run in runs.values()))


def _part(output: Output, upper: int) -> Part:
    return make_run(output, upper) if isinstance(output, Updates) else output


def publishing(state: State, staged: Staged) -> Callable[[], None]:
    """A step that makes a staged batch visible and closes its times: only assignments, which can be repeated."""
    runs = [(state.collection(name), run) for name, run in staged.runs.items()]
    runs += [(state.maintained[name].errors, run) for name, run in staged.errors.items()]
    after = [(collection, *collection.after(run)) for collection, run in runs]
    collections = state.wiring.collections

    def publish() -> None:
        for collection, held, cold in after:
            collection.held, collection.cold = held, cold
        for name, known in staged.standing.items():
            state.maintained[name].standing = known
        for name, counts in staged.rounds.items():
            state.maintained[name].rounds = counts
        state.move_to(staged.upper, staged.clock)
        for collection in collections:
            collection.advance(staged.upper)

    return publish
