"""The store's protocol: what an engine needs from the place where its state is kept, to read and to write."""

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
from halfjoin.engine.batch.progress import Feed, Progress
from halfjoin.engine.batch.stage import Staged
from halfjoin.engine.batch.state import State
from halfjoin.errors import HalfjoinError


@dataclass(frozen=True, slots=True)
class BatchId:
    """The id of a batch, and the fingerprint of its content.

    Raises:
        HalfjoinError: the id is not text, or not text that can be kept.
    """

    text: str
    mark: bytes

    def __post_init__(self) -> None:
        try:
            str.encode(self.text)
        except (TypeError, UnicodeEncodeError):
            raise HalfjoinError(f"batch_id={self.text!r} is not text",
                                remedy="give each batch a str of its own") from None


def named(batch: BatchId | None, feed: Feed | None) -> str | None:
    """The name of a batch, for those who ask what closed a time: its id, or its source; None: it has none."""
    return batch.text if batch is not None else None if feed is None else f"of the source {feed.name}"


class ReaderStore(Protocol):
    """What reading needs. A method that raises StorageError has changed nothing."""

    @property
    def place(self) -> object:
        """The warehouse's folder or URL; None: there is no warehouse."""

    @property
    def staging(self) -> Path | None:
        """The folder where files may wait before the store adopts them; None: there is none."""

    def open(self, retain: int | None, clock: Clock | None, memory: Memory) -> State:
        """The kept state, within a memory budget. `retain` replaces the kept default for history.

        Raises:
            Conflict: the warehouse has another clock.
        """

    def moment(self, state: State) -> AbstractContextManager[State]:
        """The state to read from: all collections at one moment."""

    def progress(self, source: str) -> Progress:
        """How far the source with that id has been read."""

    def recover(self) -> None:
        """Repair what an interrupted call left half done. No other call is running."""

    def refuse(self) -> None:
        """Forget what a call that raised had prepared. Call it when its change, if it had one, is finished or undone:
        what is kept must stay."""

    def foreign(self) -> Mapping[tuple[str, str], str]:
        """What others than the engine have done to Delta tables, by the collection's kind and name."""

    def overtaken(self) -> bool:
        """Whether another process has dropped or replaced something since the last moment, and removed its files."""

    def do_due_work(self, state: State) -> None:
        """Do work that is due between calls. It never fails."""

    def close(self) -> None:
        """Release everything."""


class WriterStore(ReaderStore, Protocol):
    """What writing needs as well: it keeps what is acknowledged."""

    def answered(self, state: State, batch: str) -> tuple[bytes, Applied] | None:
        """The mark and the outcome of the batch with that id; None if there was none."""

    def newest(self, prefix: str) -> str | None:
        """The greatest batch id that begins with a prefix (which ends with a slash); None if there is none."""

    def has_stale_nodes(self) -> bool:
        """Whether node collections are kept that no view uses any more. The next definition removes them."""

    def has_older_errors(self) -> bool:
        """Whether the kept errors are in an older form, which tells them apart differently."""

    def renew_errors(self, state: State) -> None:
        """Compute the errors anew, as part of a definition."""

    def errors_renewed(self) -> None:
        """Note that the errors were computed anew."""

    def adopt(self, state: State, staged: Staged) -> Staged:
        """The batch with its files in their final place. It has no effect until the batch is kept."""

    def make_room(self, state: State, staged: Staged) -> Staged:
        """Make room in memory for what is held and for a batch, and return the batch; some of it may be in files.

        Raises:
            StorageError: there is not enough memory.
        """

    def append(
        self, state: State, staged: Staged, applied: Applied, batch: BatchId | None, feed: Feed | None
    ) -> Entry:
        """The entry of a batch. Once it is kept, the batch is acknowledged and then published, and the progress of the
        source that it came from is that of `feed`."""

    def define(self, state: State) -> Entry:
        """The entry of the present definitions. It forgets the feeds of dropped tables, and dropped sources;
        those of renamed tables get the new names."""

    def together(self, first: Entry, second: Entry) -> Entry:
        """Two entries that are kept in one step: of definitions, and of a batch over them."""

    def flush(self, state: State) -> None:
        """Do all due work now."""

    def compact(self, state: State) -> None:
        """Remove history below `since` on disk too."""
