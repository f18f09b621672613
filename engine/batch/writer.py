"""The writer of an engine: it carries out batches and definitions, step by step, all of one or nothing.

For a batch it checks the rows, chooses a runner and stages every view. The store appends one entry, which acknowledges
the batch. Then the writer publishes the runs and gives the changes to subscribers and sinks.
The caller holds the engine's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from halfjoin.catalog.models import Table
from halfjoin.engine.arrange.changes import Changes, StoredChanges, changes_of, diffs_of
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.batch.activity import Activity
from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.batch.clock import Times, present, settled
from halfjoin.engine.batch.commit import Commits, Entry, Step, nothing
from halfjoin.engine.batch.ids import reused
from halfjoin.engine.batch.progress import Feed
from halfjoin.engine.batch.runner import LOCAL, Checked, Runner, Tasks
from halfjoin.engine.batch.spans import tell_batch, tell_refused
from halfjoin.engine.batch.stage import Staged, batch_times, fingerprints, publishing, runs_of, stage
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.store import BatchId, WriterStore
from halfjoin.engine.batch.subscription import Subscription
from halfjoin.engine.intake.fingerprint import agree, digest, same_rows
from halfjoin.engine.intake.rows import Submitted
from halfjoin.engine.intake.times import Time, to_time
from halfjoin.engine.system.telemetry import watched
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import Conflict, HalfjoinError, InvalidRow, InvalidTime, UnknownName
from halfjoin.nesting import headroom

READ_ONLY = "the engine was opened with read_only=True; open the warehouse without it to change anything"
_REPLACED = "it was dropped or replaced during this subscription; if it was replaced, subscribe again"


class Choice(Tasks, Protocol):
    """Chooses who carries out a batch, and checks its rows; Spark checks those of DataFrames and makes their runs."""

    def checked(
        self, batch: Mapping[str, Any], table: Callable[[str], Table], held: Callable[[str], int], time: int, *,
        marked: bool,
    ) -> dict[str, Checked]:  # fmt: skip
        """The rows of a batch, checked. `held` counts a table's rows. `time`: that of rows without their own. `marked`:
        the batch has an id."""

    def brought_in(
        self, rows: Mapping[str, Checked], in_memory: Callable[[Iterable[str]], bool]
    ) -> Mapping[str, Checked]:
        """Checked rows, loaded into this process if they are few and the collections that they touch are in memory."""

    def choose(
        self, rows: int, *, frame: bool = False, stored: Callable[[], int] = int
    ) -> tuple[Runner, str]:
        """The runner for a change of so many rows, and why."""


class Deliveries(Protocol):
    """Passes on what batches change: the sinks."""

    def closing(self, state: State, staged: Staged) -> Mapping[str, Updates | StoredChanges]:
        """What a staged batch will close, by sink."""

    def offer(self, state: State, low: int, closing: Mapping[str, Updates | StoredChanges]) -> None:
        """Pass on what a published batch closed when it raised `upper` from `low`."""

    def follow(self, state: State) -> None:
        """Follow the present definitions: take up new sinks, stop dropped ones."""


class Followers(Protocol):
    """Follow the definitions: the sources."""

    def follow(self, state: State) -> None:
        """Follow the present definitions: read new sources, stop dropped ones."""

    def settle(self) -> None:
        """Wait, for a while at most, until dropped sources have given back what they hold elsewhere."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Carries out batches and definitions.

    `frames` makes the Spark DataFrame of a view's changes, for `Applied.dataframe`. After a batch `reconsider` checks
    whether views need a new plan; it gets the batch's runs, and `define`. `activity` notes each batch."""

    state: State
    store: WriterStore
    choice: Choice
    sinks: Deliveries
    sources: Followers
    commits: Commits
    frames: Callable[[Mapping[str, Changes], str], Any]
    reconsider: Callable[[Mapping[str, Part], Callable[[Callable[[], None]], None]], None]
    activity: Activity = field(default_factory=Activity)

    def apply(
        self, batches: Mapping[str, Any], time: Time | None = None, batch_id: str | None = None, *, close: bool = True,
        follow: bool = True, feed: Feed | None = None,
    ) -> Applied:  # fmt: skip
        """Submit changed rows of any tables, as one atomic batch; see `Engine.apply`. `follow`: as in `runs_of`.

        `feed`: the source of the batch. Its progress is kept with the rows.
        """
        started = perf_counter()
        try:
            return self._applied(batches, time, batch_id, started, close, follow, feed)
        except BaseException as problem:
            if watched():
                tell_refused(started, problem, batch_id)
            raise

    def _applied(
        self, batches: Mapping[str, Any], time: Time | None, batch_id: str | None, started: float, close: bool,
        follow: bool, feed: Feed | None,
    ) -> Applied:  # fmt: skip
        state = self.state
        if not isinstance(batches, Mapping):
            raise InvalidRow("a batch is a dict of rows by table name", remedy="write engine.apply({'table': rows})")
        given_time = None if time is None else to_time(time)
        default = present(state.clock, state.upper) if given_time is None else given_time
        rows: Mapping[str, Checked]
        rows = self.choice.checked(batches, state.catalog.table, state.rows, default, marked=batch_id is not None)
        batch = None
        if batch_id is not None:
            ids = {name: state.incarnation(name) for name in rows}
            batch = BatchId(batch_id, digest(fingerprints(state, rows), given_time, close, ids))
            known = self._answered(batch)
            if known is not None:
                return known
        rows = dict(self.choice.brought_in(rows, state.in_memory))
        times = batch_times(state, rows, given_time, default, close=close)
        runs = runs_of(state, rows, times.time, times.upper, self.choice, follow=follow)
        frames = [given for given in rows.values() if not isinstance(given, Submitted)]
        chosen = self.choice.choose(
            sum(map(len, runs.values())), frame=bool(frames),
            stored=lambda: state.stored(runs),
        )  # fmt: skip
        feed = None if feed is None else feed.at(times.time)
        return self._carry_out(runs, times, started, batch, chosen, feed)

    def check(self, batches: Mapping[str, Any]) -> None:
        """Check the rows of a batch as `apply` does, and change nothing. Raises the same errors."""
        state = self.state
        default = present(state.clock, state.upper)
        rows = self.choice.checked(batches, state.catalog.table, state.rows, default, marked=False)
        times = batch_times(state, rows, None, default, close=True)
        runs_of(state, rows, times.time, times.upper, self.choice, follow=True)

    def _answered(self, batch: BatchId) -> Applied | None:
        """The outcome of the batch with that id; None if there was none.

        Raises:
            Conflict: that batch had other content, or a table of it was dropped and made anew since.
        """
        known = self.store.answered(self.state, batch.text)
        if known is None:
            return None
        mark, applied = known
        if not agree(mark, batch.mark):
            raise Conflict(reused(batch.text, anew=same_rows(mark, batch.mark)), name=batch.text)
        return replace(applied, frames=partial(self.frames, changes_of(applied.diffs)))

    def advance(self, to: Time | None = None) -> Applied:
        """Close every time below `to` without data; see `Engine.advance`."""
        started, state = perf_counter(), self.state
        clock = settled(state.clock, given=to is not None, instead="say advance(to=...)")
        upper = present(clock, state.upper) if to is None else to_time(to)
        if upper < state.upper:
            raise InvalidTime(f"cannot advance to {upper}: upper is {state.upper} already", time=upper,
                              upper=state.upper)  # fmt: skip
        chosen = (LOCAL, "nothing changes but the time")
        return self._carry_out({}, Times(upper - 1, upper, clock), started, None, chosen)

    def _carry_out(
        self, runs: Mapping[str, Part], times: Times, started: float, batch: BatchId | None,
        chosen: tuple[Runner, str], feed: Feed | None = None,
    ) -> Applied:  # fmt: skip
        """The last steps of a batch. Once the store has kept it, it is acknowledged; then it becomes visible."""
        self._renew_errors()
        state, low = self.state, self.state.upper
        with self.commits.alone:
            staged, applied = self._staged(runs, times, started, chosen)
            closing = self.sinks.closing(state, staged)
            self.commits.carry_out(lambda: self._prepared(staged, applied, batch, feed), nothing)
        self._carried_out(staged, low, closing)
        applied = applied.after(perf_counter() - started)
        self._note(applied, runs, staged, started, batch)
        return applied

    def _note(
        self, applied: Applied, runs: Mapping[str, Part], staged: Staged, started: float, batch: BatchId | None
    ) -> None:
        """Note a batch that is done, for people who watch the engine."""
        tables = {name: len(run) for name, run in runs.items()}
        self.activity.add(applied.upper, applied.runner, applied.seconds, tables, staged.work)
        if watched():
            tell_batch(applied, started, tables, staged.work, None if batch is None else batch.text)

    def _staged(
        self, runs: Mapping[str, Part], times: Times, started: float, chosen: tuple[Runner, str]
    ) -> tuple[Staged, Applied]:
        """A batch, staged, and what is told of it."""
        runner, reason = chosen
        staging = stage if runner is LOCAL else headroom()(stage)  # Spark gets whole expressions
        staged = staging(self.state, runs, times.upper, runner, times.clock)
        staged = self.store.adopt(self.state, staged)
        staged = self.store.make_room(self.state, staged)
        return staged, Applied(
            times.time, times.upper, runner.name, perf_counter() - started, diffs_of(staged.diffs), reason,
            partial(self.frames, staged.diffs), {name: str(one.error) for name, one in staged.failures.items()},
            times.clock,
        )  # fmt: skip

    def _renew_errors(self) -> None:
        if self.store.has_older_errors():
            self.define(lambda: self.store.renew_errors(self.state))
            self.store.errors_renewed()

    def _carried_out(self, staged: Staged, low: int, closing: Mapping[str, Updates | StoredChanges]) -> None:
        """Pass on what a batch closed, and do what is due after it."""
        state = self.state
        self.sinks.offer(state, low, closing)
        with suppress(HalfjoinError, MemoryError):  # the batch is done; a later batch can tidy what this one cannot
            state.tidy()
        self.reconsider(staged.runs, self.define)
        self.commits.finish()  # of a plan that was kept, if there was no memory to follow it
        self.store.do_due_work(state)

    def _prepared(
        self, staged: Staged, applied: Applied, batch: BatchId | None, feed: Feed | None = None
    ) -> tuple[Entry, Step]:
        """The entry of a batch, and the step that makes the batch visible after it is kept."""
        state = self.state
        entry, publish = self.store.append(state, staged, applied, batch, feed), publishing(state, staged)

        def done() -> None:
            publish()
            for name, waiting in state.subscriptions.items():
                for subscription in list(waiting):
                    subscription.push(staged.diffs[name], staged.upper, staged.failures.get(name))

        return entry, done

    def define(self, change: Callable[[], None]) -> None:
        """Change definitions and keep the change. If either fails, nothing is changed."""
        state, before = self.state, self._followed()

        def prepare() -> tuple[Entry, Step]:
            return self._defined(change), lambda: self._follow(before)

        with self.commits.alone:
            self.commits.carry_out(prepare, state.checkpoint())
        state.narrow()
        self.store.do_due_work(state)

    def transact(self, change: Step, batches: Mapping[str, Any], time: Time | None) -> None:
        """Change definitions, then the rows of tables, in one entry. If any of it fails, nothing is changed."""
        self._renew_errors()
        started, state, before, low = perf_counter(), self.state, self._followed(), self.state.upper
        made: list[tuple[Staged, Mapping[str, Updates | StoredChanges]]] = []
        noted: list[tuple[Applied, Mapping[str, Part]]] = []

        def prepare() -> tuple[Entry, Step]:
            defined = self._defined(change)
            given_time = None if time is None else to_time(time)
            default = present(state.clock, state.upper) if given_time is None else given_time
            rows = self.choice.checked(batches, state.catalog.table, state.rows, default, marked=False)
            times = batch_times(state, rows, given_time, default, close=True)
            runs = runs_of(state, rows, times.time, times.upper, self.choice)
            chosen = self.choice.choose(sum(map(len, runs.values())), stored=lambda: state.stored(runs))
            staged, applied = self._staged(runs, times, started, chosen)
            made.append((staged, self.sinks.closing(state, staged)))
            noted.append((applied, runs))
            entry, publish = self._prepared(staged, applied, None)

            def done() -> None:
                publish()
                self._follow(before)

            return self.store.together(defined, entry), done

        with self.commits.alone:
            self.commits.carry_out(prepare, state.checkpoint())
        self._carried_out(made[0][0], low, made[0][1])
        applied, runs = noted[0]
        self._note(applied.after(perf_counter() - started), runs, made[0][0], started, None)

    def _defined(self, change: Step) -> Entry:
        """The entry of changed definitions."""
        change()
        self.store.make_room(self.state, Staged({}, {}, self.state.upper))
        return self.store.define(self.state)

    def _followed(self) -> list[tuple[str, Subscription]]:
        """The open subscriptions, with their views."""
        return [(name, one) for name, found in self.state.subscriptions.items() for one in found]

    def _follow(self, before: Iterable[tuple[str, Subscription]]) -> None:
        """Let sinks, sources and subscriptions follow changed definitions."""
        self.sinks.follow(self.state)
        self.sources.follow(self.state)
        going_on = subscriptions(self.state)
        for name, subscription in before:
            if subscription not in going_on:
                subscription.fail(UnknownName("materialized view", name, remedy=_REPLACED))

    def flush(self) -> None:
        """Do the work that the store has left to later batches."""
        with self.commits.alone:
            self.store.flush(self.state)

    def compact(self) -> None:
        """Remove history below `since` in the store too."""
        with self.commits.alone:
            self.store.compact(self.state)


def writing(writer: Writer | None) -> Writer:
    """The writer of an engine. Every change passes here, so an engine that only reads refuses it here.

    Raises:
        HalfjoinError: the engine only reads.
    """
    if writer is None:
        raise HalfjoinError(READ_ONLY)
    return writer


def subscriptions(state: State) -> list[Subscription]:
    """All open subscriptions."""
    return [one for waiting in state.subscriptions.values() for one in waiting]
