"""Reads one source, batch after batch, in one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Protocol

from halfjoin.catalog.models import Source, Table
from halfjoin.engine.batch.progress import Progress
from halfjoin.engine.feeds.delivery import Changed, Due
from halfjoin.engine.feeds.kinds import kind_named
from halfjoin.engine.feeds.options import options_of
from halfjoin.engine.feeds.source import POLL_BYTES, Lag, Opening, Polled, Reader
from halfjoin.errors import HalfjoinError


class Host(Protocol):
    """What a worker needs of its engine. Each call takes the engine's lock."""

    def memory(self) -> int:
        """The bytes that the rows of one batch may take."""

    def due(self, id: str) -> Due | None:
        """The source with that id, if somebody is to read it."""

    def deliver(self, read: Due, polled: Polled) -> Progress:
        """Apply what was read."""

    def alone(self) -> AbstractContextManager[None]:
        """Keep the batches of other threads waiting, so that they close no time between the pieces of one
        transaction."""


class Worker:
    """Reads the source with an id. One thread at a time calls it; others may look at its `lag`, and at `away`: whether
    it speaks with what it reads. Meanwhile it waits for no lock, and once it is to stop it does not begin."""

    def __init__(self, id: str, host: Host) -> None:
        self._id, self._host = id, host
        self._reader: Reader | None = None
        self._opened: tuple[Source, tuple[Table, ...]] | None = None  # what the reader was opened for
        self.lag: Lag | None = None
        self.away = False

    def step(self, seconds: float, stopping: Callable[[], bool] = lambda: False) -> bool | None:
        """Read and apply one batch; wait up to `seconds` for it.

        Returns:
            Whether there was one; None: nobody is to read the source (any more).

        Raises:
            HalfjoinError: the source cannot be read, or the engine refuses the batch. Nothing is applied, and the next
            step begins at the same position, with a new reader.
        """
        while True:
            try:
                return self._step(seconds, stopping)
            except Changed:  # look again what there is to read now
                self.close()
            except BaseException:
                self.close()
                raise

    def _step(self, seconds: float, stopping: Callable[[], bool]) -> bool | None:
        read = self._host.due(self._id)
        if read is None:
            self.close()
            return None
        memory = self._host.memory()
        with self._speaking():
            if stopping():
                return False
            reader = self._open(read, memory)
            polled = reader.poll(read.progress.position, seconds)
            self.lag = reader.lag()
        if polled is None or stopping():
            return False
        if polled.last and read.progress.open is None:
            self._deliver(reader, read, polled, stopping)
            return True
        with self._host.alone():
            while polled is not None and not stopping():
                last, read = polled.last, replace(read, progress=self._deliver(reader, read, polled, stopping))
                with self._speaking():
                    polled = None if last or stopping() else reader.poll(read.progress.position, seconds)
        return True

    def _deliver(self, reader: Reader, read: Due, polled: Polled, stopping: Callable[[], bool]) -> Progress:
        after = self._host.deliver(read, polled)
        assert after.position is not None
        with self._speaking():
            if not stopping():  # else the next reader says it
                reader.acknowledge(after.position)
                self.lag = reader.lag()
        return after

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        self.away = True
        try:
            yield
        finally:
            self.away = False

    def close(self) -> None:
        """Close the reader, if there is one."""
        reader, self._reader = self._reader, None
        if reader is not None:
            with suppress(HalfjoinError, OSError):
                reader.close()

    def _open(self, read: Due, memory: int) -> Reader:
        """The reader for a definition and for the tables as they are now."""
        wanted = (read.source, read.tables)
        if self._reader is not None and self._opened != wanted:
            self.close()
        if self._reader is None:
            self._reader = kind_named(read.source.kind).open(opening_of(read.source, read.tables, memory))
            self._opened = wanted
            if read.progress.position is not None:  # the process may have ended before it could say so
                self._reader.acknowledge(read.progress.position)
        return self._reader


def opening_of(source: Source, tables: tuple[Table, ...], memory: int = POLL_BYTES) -> Opening:
    """What a source's reader is opened with."""
    options = options_of(kind_named(source.kind), source.options)
    return Opening(source.name, source.id, options, tables, memory)
