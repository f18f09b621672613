"""Reads all sources of an engine: in threads of their own, one for each source, or one after the other in a call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, RLock, Thread
from time import monotonic, sleep

from halfjoin.catalog.models import Source
from halfjoin.engine.batch.state import State
from halfjoin.engine.feeds.kinds import kind_named
from halfjoin.engine.feeds.source import Lag
from halfjoin.engine.feeds.worker import Host, Worker, opening_of
from halfjoin.engine.system.starting import start
from halfjoin.errors import Conflict, HalfjoinError, UnknownName

WAIT = 1.0  # seconds that a poll waits for something new. A source that is dropped or paused stops after it
_LOOK = 0.02  # seconds between two looks whether a thread still speaks
_SETTLE = 5.0  # seconds: a poll, and a few statements on a server
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds before the next try after an error, doubled each time
_log = logging.getLogger("halfjoin")


@dataclass(frozen=True, slots=True)
class Status:
    """How a source is.

    `state`: `running`; `failing`, with its `error`, until the next try succeeds; `paused`; or `stopped`, if this engine
    does not read it. `lag`: how far it is behind its end, None if nobody knows.
    """

    state: str
    lag: Lag | None = None
    error: str | None = None


class _Thread:
    """The thread that reads one source."""

    def __init__(self, source: Source, host: Host) -> None:
        self.worker = Worker(source.id, host)
        self._name, self._stop = source.name, Event()
        self.error: str | None = None
        self._thread = Thread(target=self._run, name=f"halfjoin-source-{source.name}", daemon=True)
        start(self._thread)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def ask(self) -> None:
        """Ask the thread to end."""
        self._stop.set()

    def quiet(self) -> None:
        """Wait until the thread, which was asked to end, does not speak with what it reads any more. It may go on to
        wait for a lock, which the caller may have."""
        while self.alive and self.worker.away:
            self._thread.join(_LOOK)

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._stop.is_set():
            try:
                if self.worker.step(WAIT, self._stop.is_set) is None:
                    break
                self.error, pause = None, FIRST_PAUSE
            except Exception as problem:  # an error of a library as well: the source says so, and tries again
                text = str(problem) if isinstance(problem, HalfjoinError) else repr(problem)
                if self.error != text:
                    _log.warning("the source %s stops, and tries again: %s", self._name, text)
                self.error = text
                self._stop.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        self.worker.close()


class Sources:
    """The sources that an engine reads. Its lock is not the engine's: no method calls the engine while it holds it,
    except through `host`, whose calls take the engine's lock for a moment."""

    def __init__(self, host: Host, begun: Callable[[str], bool]) -> None:
        self._host, self._begun = host, begun
        self._read: set[str] = set()  # the sources that have a position, so that they may hold something elsewhere
        self._lock = RLock()
        self._threads: dict[str, _Thread] = {}
        self._reading = False  # whether threads read the sources
        self._defined: Mapping[str, Source] = {}  # by id
        self._calling: Mapping[str, Worker] = {}  # those of a call of `run`
        self._ending: list[Thread] = []  # give back what dropped sources hold

    def follow(self, state: State) -> None:
        """Follow the definitions: read new sources and those that are resumed, stop the others. It waits for nobody."""
        self._follow({source.id: source for source in state.catalog.sources.values()})
        with suppress(HalfjoinError):  # the definitions are kept, so no error may tell otherwise; the next ones ask
            self._read |= {id for id in self._defined if self._begun(id)}

    def begins(self, id: str) -> None:
        """Note that a source stores a position."""
        self._read.add(id)

    def _follow(self, sources: Mapping[str, Source]) -> None:
        with self._lock:
            gone = [one for id, one in self._defined.items() if id not in sources]
            self._defined = sources
            wanted = {id for id, source in self._defined.items() if self._reading and not source.paused}
            ended = {id: one for id, one in self._threads.items() if id not in wanted or not one.alive}
            for id, thread in ended.items():
                thread.ask()
                del self._threads[id]
            for id in wanted - self._threads.keys():
                with _perhaps(self._defined[id], "is not read before the next change of definitions"):
                    self._threads[id] = _Thread(self._defined[id], self._host)
            for source in gone:
                if source.id not in self._read:  # what has the names in its options is somebody else's
                    continue
                self._ending = [one for one in self._ending if one.is_alive()]
                with _perhaps(source, "has not given back what it holds elsewhere"):
                    ending = Thread(target=_forget, args=(source, ended.get(source.id)), daemon=True)
                    start(ending)
                    self._ending.append(ending)

    def start(self) -> None:
        """Read all sources in threads, from now until `stop`."""
        with self._lock:
            self._reading = True
            self._follow(self._defined)

    def stop(self) -> None:
        """End the threads after what they are applying. The caller must not hold the engine's lock."""
        with self._lock:
            self._reading, threads, ending = False, list(self._threads.values()), self._ending
            self._threads = {}
        for thread in threads:
            thread.ask()
        for thread in threads:
            thread.join()
        for one in ending:
            one.join()

    def settle(self) -> None:
        """Wait until dropped sources have given back what they hold elsewhere, so that a new one may have it. If a
        server does not answer, only for a while, as the caller may hold the engine's lock."""
        with self._lock:
            ending, until = list(self._ending), monotonic() + _SETTLE
        for one in ending:
            one.join(max(0.0, until - monotonic()))

    def run(self, seconds: float, only: str | None = None) -> int:
        """Read all sources in this thread until none of them has had anything new for `seconds`. Returns the batches.

        Raises:
            UnknownName: there is no source of the name `only`.
            Conflict: threads read them already. (Two calls at once do no harm: one of them reads again.)
            HalfjoinError: a source cannot be read. The others were read as far as it came.
        """
        with self._lock:
            if self._reading:
                raise Conflict("the sources are being read already", remedy="SHOW SOURCES says how far they are")
            workers = self._calling = {
                id: Worker(id, self._host) for id, one in self._defined.items() if only in (None, one.name)}
        if only is not None and not workers:
            raise UnknownName("source", only, [one.name for one in self._defined.values()])
        done, quiet, left = 0, monotonic(), seconds
        try:
            while workers:
                found = [worker.step(min(WAIT, left / len(workers))) for worker in workers.values()]
                if all(one is None for one in found):  # all are paused or dropped, so no poll has waited
                    sleep(min(WAIT, left))
                done += found.count(True)
                quiet = monotonic() if any(found) else quiet
                left = quiet + seconds - monotonic()
                if left <= 0 and not any(found):
                    break
                left = max(left, 0.0)
            return done
        finally:
            for worker in workers.values():
                worker.close()
            with self._lock:
                self._calling = {}

    def status(self, source: Source) -> Status:
        """How a source is."""
        with self._lock:
            thread, worker = self._threads.get(source.id), self._calling.get(source.id)
        if source.paused:
            return Status("paused")
        if thread is not None:
            return Status("running" if thread.error is None else "failing", thread.worker.lag, thread.error)
        return Status("stopped") if worker is None else Status("running", worker.lag)


@contextmanager
def _perhaps(source: Source, otherwise: str) -> Iterator[None]:
    """Start a thread inside. If there can be no more threads, the definition that asks for it stays: it is kept."""
    try:
        yield
    except RuntimeError as problem:
        _log.warning("the source %s %s: %s", source.name, otherwise, problem)


def _forget(source: Source, reading: _Thread | None) -> None:
    """Give back what a dropped source holds elsewhere, once its thread has let go of it."""
    if reading is not None:
        reading.quiet()
    try:
        kind = kind_named(source.kind)
        if kind.dropped is not None:
            kind.dropped(opening_of(source, ()))
    except Exception as problem:
        _log.warning("the source %s is dropped, but what it holds elsewhere may stay: %s", source.name, problem)
