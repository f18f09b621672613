"""Where an engine's state is kept: what reading asks of a store, and what writing asks besides."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from halfjoin.engine.arrange.memory import Memory
from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.batch.clock import Clock
from halfjoin.engine.batch.commit import Entry
from halfjoin.engine.batch.stage import Staged
from halfjoin.engine.batch.state import State
from halfjoin.errors import HalfjoinError


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


class ReaderStore(Protocol):
    """What reading needs. Every method may raise StorageError, and has then changed nothing."""

    @property
    def place(self) -> object:
        """The warehouse's folder, None where there is none."""

    @property
    def staging(self) -> Path | None:
        """Where files may wait to be taken in; None: nowhere."""

    def open(self, retain: int | None, clock: Clock | None, memory: Memory) -> State:
        """The state that was kept, within a budget of memory; `retain` replaces the kept default for history.

        Raises:
            Conflict: another clock is kept.
        """

    def moment(self, state: State) -> AbstractContextManager[State]:
        """The state to read from: one moment for all collections."""

    def recover(self) -> None:
        """Put right what an interrupted call has left half done; nothing else is under way."""

    def foreign(self) -> Mapping[tuple[str, str], str]:
        """By kind and name of a collection, what others than the engine have done to its Delta table."""

    def overtaken(self) -> bool:
        """Whether another process has defined something since the last moment, and removed what that had to read."""

    def do_due_work(self, state: State) -> None:
        """A chance for work that is due between calls; never fails."""

    def close(self) -> None:
        """Let go of everything."""


class WriterStore(ReaderStore, Protocol):
    """What writing needs besides: it keeps what is acknowledged."""

    def answered(self, state: State, batch: str) -> tuple[bytes, Applied] | None:
        """The mark and the outcome of the batch with that id, if there was one."""

    def newest(self, prefix: str) -> str | None:
        """The greatest batch id that begins with a prefix (which ends with a slash), None if there is none."""

    def has_stale_nodes(self) -> bool:
        """Whether node collections are kept that no view has any more, which the next definition removes."""

    def has_older_errors(self) -> bool:
        """Whether the errors that are kept are told apart in an older form."""

    def renew_errors(self, state: State) -> None:
        """Make them anew, as part of a definition."""

    def errors_renewed(self) -> None:
        """They are made anew."""

    def adopt(self, state: State, staged: Staged) -> Staged:
        """A batch with its files where they stay; without effect as long as it is not kept."""

    def make_room(self, state: State, staged: Staged) -> Staged:
        """Room within the budget for what is held and for a batch; some of that may come back in files.

        Raises:
            StorageError: there is not enough.
        """

    def append(self, state: State, staged: Staged, applied: Applied, batch: BatchId | None) -> Entry:
        """A batch that is about to be kept; kept, it is acknowledged, and then published."""

    def define(self, state: State) -> Entry:
        """What is defined now, about to be kept; the feeds of tables that are gone are forgotten."""

    def flush(self, state: State) -> None:
        """Do the work that is due now."""

    def compact(self, state: State) -> None:
        """Let history below since go on disk, too."""
