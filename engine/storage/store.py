"""The store of an engine without a warehouse, and what stores share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.memory import Memory
from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.batch.clock import CLOSINGS, Clock, Closing, closing_of
from halfjoin.engine.batch.commit import Entry, Step
from halfjoin.engine.batch.ids import prefix_of, table_of
from halfjoin.engine.batch.progress import Feed, Progress
from halfjoin.engine.batch.stage import Staged
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.store import BatchId, named
from halfjoin.engine.intake.times import now
from halfjoin.errors import StorageError

P = ParamSpec("P")
T = TypeVar("T")
RETAIN = 1_000_000  # time units of history, the default


def retried(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Wrap a reading method of an engine: call it again if it fails because its store was overtaken."""

    @wraps(method)
    def call(engine: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        while True:
            try:
                return method(engine, *args, **kwargs)
            except StorageError:
                if not engine._store.overtaken():
                    raise

    return call


class Nowhere:
    """Keeps only the answers to batch ids and the last closings, in memory."""

    place = None

    def __init__(self) -> None:
        self._last: object = None  # the last entry
        self._answers: dict[str, tuple[bytes, Applied]] = {}
        self._ids: dict[str, str] = {}  # of the tables, by name, as they were defined last
        self._progress: dict[str, Progress] = {}
        self._closings: deque[Closing] = deque(maxlen=CLOSINGS)

    def open(self, retain: int | None, clock: Clock | None, memory: Memory) -> State:
        """An empty state."""
        return State(RETAIN if retain is None else retain, self, clock=clock, memory=memory)

    def moment(self, state: State) -> AbstractContextManager[State]:
        """The state itself."""
        return nullcontext(state)

    def answered(self, state: State, batch: str) -> tuple[bytes, Applied] | None:
        """The mark and the outcome of the batch with that id, None if there was none."""
        return self._answers.get(batch)

    def closed_by(self, time: int) -> Closing | None:
        """The closing of a time, None if none of the last batches closed it."""
        return closing_of(self._closings, time)

    staging = None
    spill = None

    def as_files(self, collection: Collection) -> None:
        """None: there are no files."""

    def has_stale_nodes(self) -> bool:
        """False: no older version has left nodes."""
        return False

    def has_older_errors(self) -> bool:
        """False: no older version has left errors."""
        return False

    def renew_errors(self, state: State) -> None:
        """Do nothing: no older version has left errors."""

    def errors_renewed(self) -> None:
        """Do nothing: no older version has left errors."""

    def adopt(self, state: State, staged: Staged) -> Staged:
        """The batch itself: it has no files."""
        return staged

    def progress(self, source: str) -> Progress:
        """How far the source with that id has been read."""
        return self._progress.get(source, Progress())

    def newest(self, prefix: str) -> str | None:
        """The greatest batch id with a prefix, None if no id has it."""
        return max((batch for batch in self._answers if batch.startswith(prefix)), default=None)

    def make_room(self, state: State, staged: Staged) -> Staged:
        """The batch itself: everything stays in memory.

        Raises:
            StorageError: the batch does not fit into the memory budget.
        """
        if state.memory.limit is not None:
            state.memory.check(staged.size)
        return staged

    def append(
        self, state: State, staged: Staged, applied: Applied, batch: BatchId | None, feed: Feed | None
    ) -> Entry:
        """Prepare to remember the batch's id, the times that it closes, and the progress of its source."""
        closing = None
        if staged.upper > state.upper:
            closing = Closing(state.upper, staged.upper, now(), named(batch, feed))

        def follow() -> None:
            if closing is not None and (not self._closings or self._closings[-1] != closing):
                self._closings.append(closing)
            if batch is not None:
                self._answers[batch.text] = (batch.mark, applied)
            if feed is not None:
                self._progress[feed.id] = feed.after

        return self._entry(follow)

    def define(self, state: State) -> Entry:
        """Prepare to forget the feeds of dropped tables, and dropped sources. Those of renamed tables get the new
        names. Nothing else is kept."""
        sources = {source.id for source in state.catalog.sources.values()}

        def follow() -> None:
            self._progress = {source: one for source, one in self._progress.items() if source in sources}
            ids = {name: state.incarnation(name) for name in state.tables}
            names, answers = {id: name for name, id in ids.items()}, dict[str, tuple[bytes, Applied]]()
            for batch, answer in self._answers.items():
                table = table_of(batch)
                name = None if table is None else names.get(self._ids.get(table, ""))
                if table is None:
                    answers[batch] = answer
                elif name is not None:
                    answers[prefix_of(name) + batch.removeprefix(prefix_of(table))] = answer
            self._answers, self._ids = answers, ids

        return self._entry(follow)

    def together(self, first: Entry, second: Entry) -> Entry:
        """Two entries that are kept in one step."""

        def follow() -> None:
            first.follow()
            second.follow()

        return self._entry(follow)

    def _entry(self, follow: Step) -> Entry:
        """An entry that is kept from the moment at which it is the last one."""
        this = object()

        def commit() -> None:
            self._last = this

        return Entry(commit, lambda: self._last is this, follow)

    def recover(self) -> None:
        """Do nothing: no call leaves anything half done."""

    def refuse(self) -> None:
        """Do nothing: no change has files."""

    def foreign(self) -> Mapping[tuple[str, str], str]:
        """Empty: there are no tables on disk."""
        return {}

    def overtaken(self) -> bool:
        """False: no other process uses this store."""
        return False

    def do_due_work(self, state: State) -> None:
        """Do nothing: there is no disk."""

    def flush(self, state: State) -> None:
        """Do nothing: there is no disk."""

    def compact(self, state: State) -> None:
        """Do nothing: there is no disk."""

    def close(self) -> None:
        """Do nothing: there are no files."""
