"""The part of `Engine` that gives clients connections. Their queries do not wait for other connections' batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from threading import RLock
from typing import TypeVar

from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.connection import Connection
from halfjoin.engine.statements.session import Session
from halfjoin.engine.statements.snapshot import snapshot
from halfjoin.engine.statements.temporary import Temporary
from halfjoin.engine.storage.store import retried
from halfjoin.engine.system.exclusive import exclusive
from halfjoin.engine.system.process import check_process

T = TypeVar("T")
_MOMENT = 0.01  # seconds to wait for the lock before looking whether a batch holds it


class Connecting(ABC):
    """Makes connections. `_before`: what their queries read while one of them writes."""

    _session: Session
    _process: int
    _lock: RLock
    _before: State | None = None

    @abstractmethod
    def _reading(self) -> AbstractContextManager[State]:
        """The state at one moment."""

    @abstractmethod
    def _wait(self) -> None:
        """Wait for the turn to write."""

    def connect(self) -> Connection:
        """A connection with settings and a transaction of its own, beside those of `execute`; for servers."""
        session = replace(self._session, time=None, transaction=None, prepared={}, settings={}, columns=None,
                          last={}, kept=Temporary(), report=lambda tag: None)  # fmt: skip
        return Connection(self._locked, self._latest, session)

    @retried
    @exclusive
    def _locked(self, function: Callable[[State], T], *, writes: bool = False) -> T:
        """Run a function of the state while no other call runs."""
        if writes:
            self._wait()
        with self._reading() as state, self._readable(state, meanwhile=writes):
            return function(state)

    @contextmanager
    def _readable(self, state: State, *, meanwhile: bool) -> Iterator[None]:
        """Let queries of connections read the state as it is now, `meanwhile` it changes."""
        try:
            self._before = snapshot(state) if meanwhile else None
            yield
        finally:
            self._before = None

    def _latest(self) -> State:
        """The state as the last batch left it. It does not wait for a batch that a connection is submitting."""
        check_process(self._process)
        while (before := self._before) is None:
            if self._is_free():
                latest: State = self._locked(snapshot)
                return latest
        return before

    def _is_free(self) -> bool:
        """Whether no other thread has the lock, or gives it back at once. An interrupt leaves no lock behind."""
        try:
            return self._lock.acquire(timeout=_MOMENT)
        finally:
            if self._lock._is_owned():  # type: ignore[attr-defined]
                self._lock.release()
