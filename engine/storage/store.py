"""Where an engine's state is kept: what the engine asks of it, and the store that keeps nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.memory import Memory
from halfjoin.engine.arrange.run import Part
from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.batch.clock import CLOSINGS, Clock, Closing, closing_of
from halfjoin.engine.batch.commit import Entry, Step
from halfjoin.engine.batch.ids import table_of
from halfjoin.engine.batch.stage import Staged
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.times import now
from halfjoin.engine.storage.place import Place
from halfjoin.errors import HalfjoinError, StorageError

P = ParamSpec("P")
T = TypeVar("T")
RETAIN = 1_000_000  # time units of history, where nobody says otherwise


@dataclass(frozen=True, slots=True)
class BatchId:
    """The id that a batch was submitted with, and the fingerprint of its content.

    Raises:
        HalfjoinError: the id is no text that can be kept.
    """

    text: str
    mark: bytes

    def __post_init__(self) -> None:
        try:
            str.encode(self.text)
        except (TypeError, UnicodeEncodeError):
            raise HalfjoinError(f"batch_id={self.text!r} is not text",
                                remedy="give each batch a str of its own") from None


class Store(Protocol):
    """Keeps what is acknowledged. Every method may raise StorageError, and has then changed nothing."""

    @property
    def place(self) -> Place | None:
        """The warehouse's folder, None where there is none."""

    def open(self, retain: int | None, clock: Clock | None, memory: Memory) -> State:
        """The state that was kept, within a budget of memory; `retain` replaces the kept default for history.

        Raises:
            Conflict: another clock is kept.
        """

    def moment(self, state: State) -> AbstractContextManager[State]:
        """The state to read from: one moment for all collections."""

    def answered(self, state: State, batch: str) -> tuple[bytes, Applied] | None:
        """The mark and the outcome of the batch with that id, if there was one."""

    @property
    def staging(self) -> Path | None:
        """Where files may wait to be taken in; None: nowhere."""

    def kept(self, collection: Collection) -> Sequence[Part] | None:
        """A collection's acknowledged updates, all that is in files left there; None where that is not to be had."""

    def has_stale_nodes(self) -> bool:
        """Whether node collections are kept that no view has any more, which the next definition removes."""

    def has_older_errors(self) -> bool:
        """Whether the errors that are kept are told apart in an older form."""

    def errors_renewed(self) -> None:
        """They are made anew."""

    def adopt(self, state: State, staged: Staged) -> Staged:
        """A batch with its files where they stay; without effect as long as it is not kept."""

    def closed_by(self, time: int) -> Closing | None:
        """Who closed a time, if that is remembered."""

    def newest(self, prefix: str) -> str | None:
        """The greatest batch id that begins with a prefix (which ends with a slash), None if there is none."""

    def room(self, state: State, staged: Staged) -> Staged:
        """Room within the budget for what is held and for a batch; some of that may come back in files.

        Raises:
            StorageError: there is not enough.
        """

    def append(self, state: State, staged: Staged, applied: Applied, batch: BatchId | None) -> Entry:
        """A batch that is about to be kept; kept, it is acknowledged, and then published."""

    def define(self, state: State) -> Entry:
        """What is defined now, about to be kept; the feeds of tables that are gone are forgotten."""

    def recover(self) -> None:
        """Put right what an interrupted call has left half done; nothing else is under way."""

    def foreign(self) -> Mapping[tuple[str, str], str]:
        """By kind and name of a collection, what others than the engine have done to its Delta table."""

    def overtaken(self) -> bool:
        """Whether another process has defined something since the last moment, and removed what that had to read."""

    def settle(self, state: State) -> None:
        """A chance for work that is due between batches; never fails."""

    def flush(self, state: State) -> None:
        """Do the work that is due now."""

    def compact(self, state: State) -> None:
        """Let history below since go on disk, too."""

    def close(self) -> None:
        """Let go of everything."""


def retried(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """A method of an engine that reads, called again where its store was overtaken."""

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
    """Keeps nothing but the answers to batch ids, in memory."""

    place = None

    def __init__(self) -> None:
        self._last: object = None  # the last entry
        self._answers: dict[str, tuple[bytes, Applied]] = {}
        self._closings: deque[Closing] = deque(maxlen=CLOSINGS)

    def open(self, retain: int | None, clock: Clock | None, memory: Memory) -> State:
        """An empty state."""
        return State(RETAIN if retain is None else retain, clock=clock, memory=memory)

    def moment(self, state: State) -> AbstractContextManager[State]:
        """The state itself."""
        return nullcontext(state)

    def answered(self, state: State, batch: str) -> tuple[bytes, Applied] | None:
        """The mark and the outcome of the batch with that id, if there was one."""
        return self._answers.get(batch)

    def closed_by(self, time: int) -> Closing | None:
        """Who closed a time, if it was one of the last batches."""
        return closing_of(self._closings, time)

    staging = None

    def kept(self, collection: Collection) -> None:
        """There are no files."""

    def has_stale_nodes(self) -> bool:
        """There are none from before."""
        return False

    def has_older_errors(self) -> bool:
        """There are none from before."""
        return False

    def errors_renewed(self) -> None:
        """There are none from before."""

    def adopt(self, state: State, staged: Staged) -> Staged:
        """There are no files."""
        return staged

    def newest(self, prefix: str) -> str | None:
        """The greatest batch id that begins with a prefix, None if there is none."""
        return max((batch for batch in self._answers if batch.startswith(prefix)), default=None)

    def room(self, state: State, staged: Staged) -> Staged:
        """All is in memory, and stays there."""
        state.memory.check(staged.size)
        return staged

    def append(self, state: State, staged: Staged, applied: Applied, batch: BatchId | None) -> Entry:
        """The batch's id is remembered, and what it closes."""
        closing = None
        if staged.upper > state.upper:
            closing = Closing(state.upper, staged.upper, now(), None if batch is None else batch.text)

        def follow() -> None:
            if closing is not None and closing not in self._closings:
                self._closings.append(closing)
            if batch is not None:
                self._answers[batch.text] = (batch.mark, applied)

        return self._entry(follow)

    def define(self, state: State) -> Entry:
        """The feeds of tables that are gone are forgotten; nothing else is kept."""

        def follow() -> None:
            for batch, table in [(batch, table_of(batch)) for batch in self._answers]:
                if table is not None and table not in state.tables:
                    del self._answers[batch]

        return self._entry(follow)

    def _entry(self, follow: Step) -> Entry:
        """One that is kept from the moment at which it is the last."""
        this = object()

        def commit() -> None:
            self._last = this

        return Entry(commit, lambda: self._last is this, follow)

    def recover(self) -> None:
        """Nothing is left half done."""

    def foreign(self) -> Mapping[tuple[str, str], str]:
        """There are no tables on disk."""
        return {}

    def overtaken(self) -> bool:
        """There are no other processes."""
        return False

    def settle(self, state: State) -> None:
        """Nothing is due."""

    def flush(self, state: State) -> None:
        """Nothing is due."""

    def compact(self, state: State) -> None:
        """There is no disk."""

    def close(self) -> None:
        """There is nothing to let go of."""
