"""The part of `Engine` that reads sources into tables."""

from __future__ import annotations

import os
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from os import PathLike
from typing import Any, TypeVar

from halfjoin.engine.batch.progress import Progress
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.store import ReaderStore
from halfjoin.engine.batch.writer import Writer, writing
from halfjoin.engine.feeds.delivery import Due, deliver, due
from halfjoin.engine.feeds.source import Polled
from halfjoin.engine.feeds.sources import Sources
from halfjoin.engine.intake.given import given_name, given_names
from halfjoin.engine.system.machine import machine_memory
from halfjoin.engine.system.process import check_process
from halfjoin.engine.system.turns import Turns
from halfjoin.errors import HalfjoinError, UnsupportedSQL
from halfjoin.sql.definitions import CreateSource, OptionValue

T = TypeVar("T")
_SHARE = 16  # of the memory budget: a batch is there as texts, as typed rows, and as what the views make of it


class _Host:
    """What the workers of an engine's sources call."""

    def __init__(self, engine: Sourcing) -> None:
        self._engine = engine

    def memory(self) -> int:
        """The bytes that the rows of one batch may take."""
        limit = self._engine._locked(lambda state: state.memory.limit)
        return (machine_memory() // 2 if limit is None else limit) // _SHARE

    def due(self, id: str) -> Due | None:
        """The source with that id, if somebody is to read it."""
        return self._engine._locked(lambda state: due(writing(self._engine._writer), id))

    def deliver(self, read: Due, polled: Polled) -> Progress:
        """Apply what was read. Queries of connections read the state before it meanwhile."""
        self._engine._sources.begins(read.source.id)  # before it is durable, so that a DROP right after it knows
        return self._engine._locked(lambda state: deliver(writing(self._engine._writer), read, polled), writes=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep the batches of other threads waiting."""
        turns = self._engine._turns
        with turns.following, turns.alone(True):
            yield


class Sourcing(ABC):
    """Creates and reads sources. `_sources`: those of the catalog, with who reads them."""

    _store: ReaderStore
    _writer: Writer | None
    _process: int
    _turns: Turns
    _sources: Sources

    @abstractmethod
    def _locked(self, function: Callable[[State], T], *, writes: bool = False) -> T:
        """Run a function of the state while no other call runs."""

    @abstractmethod
    def _define_source(self, statement: CreateSource) -> None:
        """Carry out CREATE SOURCE."""

    def _make_sources(self) -> Sources:
        return Sources(_Host(self), lambda id: self._store.progress(id).position is not None)

    def create_source(
        self, name: str, kind: str, into: str | Sequence[str], *, errors: str = "stop", if_not_exists: bool = False,
        **options: OptionValue | PathLike[str] | Sequence[str],
    ) -> None:  # fmt: skip
        """Create a source, as CREATE SOURCE does. It is read by `halfjoin serve`, `start_sources` or `run_sources`.

        Args:
            name: the source.
            kind: FILES, KAFKA or POSTGRES.
            into: the table that it feeds, or several.
            errors: `stop`: a record that cannot be read stops the source, until somebody mends it. `table`: it goes to
                the table `<name>_errors`, and the source goes on.
            if_not_exists: leave a source of that name as it is.
            options: those of the kind.

        Raises:
            UnsupportedSQL, UnknownName: the kind, an option or a table is not right. Conflict: the name is in use.
        """
        if errors not in ("stop", "table"):
            raise UnsupportedSQL(f"errors={errors!r} is not supported", remedy="errors='table' or errors='stop'")
        given = {key: _option(key, value) for key, value in options.items()}
        made = CreateSource(given_name(name, "a source"), given_name(kind, "a kind of source").upper(), given,
                            given_names(into, "a table"), errors, if_not_exists)  # fmt: skip
        self._define_source(made)

    def run_sources(self, seconds: float = 2.0, *, only: str | None = None) -> int:
        """Read all sources that are not paused, until none of them has had anything new for `seconds`.
        `only`: read the source of that name.

        Returns:
            The number of batches. Each is applied exactly once, whatever ends the call.

        Raises:
            Conflict: the sources are being read already.
            UnknownName: there is no source of the name `only`.
            HalfjoinError: a source cannot be read, or the engine refuses its rows. The next call begins at the same
                place.
        """
        check_process(self._process)
        writing(self._writer)
        if not isinstance(seconds, int | float) or isnan(seconds):
            raise HalfjoinError(f"{seconds!r} is not a number of seconds", remedy="run_sources(2.0)")
        return self._sources.run(seconds, None if only is None else given_name(only, "a source"))

    def start_sources(self) -> None:
        """Read all sources in the background, each in a thread, until the engine is closed. After an error a source
        tries again, and SHOW SOURCES says why."""
        check_process(self._process)
        writing(self._writer)
        self._sources.start()

    def stop_sources(self) -> None:
        """End what `start_sources` began, after the batches that are being applied."""
        check_process(self._process)
        self._sources.stop()


def _option(name: str, value: Any) -> OptionValue:
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple):
        return tuple(map(str, value))
    if not isinstance(value, PathLike):
        raise UnsupportedSQL(f"the option {name} cannot be {reprlib.repr(value)}",
                             remedy="give a text, a number, a path or a list of texts; or leave the option out")
    return os.fsdecode(value)
