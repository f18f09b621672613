"""The courier of one sink: takes closed batches from the engine and commits them in order, in its own thread.

A batch that it cannot deliver stays in its queue, and the courier tries again with the next batch. There is a `gap` if
the queue does not continue the table's contents: after opening, after an error of the view, or when too many batches
wait. The engine closes the gap from the view's history.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from threading import Condition, RLock, Thread

from halfjoin.engine.sinks.delivery import Delivery
from halfjoin.engine.sinks.outlet import Outlet
from halfjoin.engine.system.starting import start
from halfjoin.errors import DataError, HalfjoinError, StorageError

MOST_WAITING = 256  # batches. Beyond that the engine waits for the courier; a courier that fails drops them
_log = logging.getLogger("halfjoin")


class Courier:
    """Keeps one table or topic up to date. The engine's thread calls all methods, except `_run` and what that calls.
    `store` keeps other writers away as long as its thread works, even if nobody has the engine any more."""

    def __init__(self, name: str, table: Outlet, store: object = None) -> None:
        self._name, self._table, self._store = name, table, store
        self._lock = RLock()  # only `with` takes and releases it, so that no interrupt comes between
        self._turn = Condition(self._lock)
        self._queue: deque[Delivery] = deque()
        self._thread: Thread | None = None
        self._busy = False
        self._work: object = None  # identifies the thread that is to work
        self._marked: int | None = None  # the upper that the table's log has
        self.upper: int | None = None  # the upper of its contents: at least `_marked`, as some batches change nothing
        self.gap = True
        self.error: HalfjoinError | None = None

    @property
    def waiting(self) -> int:
        """The number of batches that wait to be delivered."""
        return len(self._queue)

    @property
    def end(self) -> int | None:
        """The table's upper when all that waits is delivered; None if there is not even a table."""
        with self._lock:
            return self._queue[-1].upper if self._queue else self.upper

    @property
    def wants_history(self) -> bool:
        """Whether there is a gap, and the engine knows where it begins."""
        return self.gap and self._table.is_open

    def offer(self, delivery: Delivery) -> None:
        """Queue a delivery behind those that wait. Blocks only while a busy courier's queue is full."""
        with self._lock:
            self._turn.wait_for(lambda: not self._busy or len(self._queue) < MOST_WAITING or self.error is not None)
            if len(self._queue) >= MOST_WAITING:
                self._give_up()
                self._start()
            elif self._queue or self._busy or delivery.whole or delivery.some or self.error is not None:
                self._queue.append(delivery)
                self._start()
            elif delivery.low == self.upper:
                self.upper = delivery.upper  # nothing changes and nothing waits
            else:
                self.gap = True

    def hold(self, error: HalfjoinError) -> None:
        """Deliver nothing until the view can be read again."""
        with self._lock:
            self.gap = True
            self._failed(error)

    def start(self) -> None:
        """Open the table if it is not open yet, and deliver what waits."""
        with self._lock:
            self._start()

    def wait(self) -> None:
        """Wait until all is delivered, or a delivery fails."""
        with self._lock:
            self._turn.wait_for(lambda: not self._busy)
        if self._thread is not None:
            self._thread.join()

    def stop(self) -> None:
        """Finish the delivery under way, and drop the others."""
        with self._lock:
            self._give_up()
        self.wait()

    def undo(self) -> None:
        """Stop, and remove as much as possible of a table that could not be filled."""
        self.stop()
        with suppress(HalfjoinError):
            self._table.undo()

    def _give_up(self) -> None:
        """Drop what waits, except what is being delivered."""
        while len(self._queue) > self._busy:
            self._queue.pop()
        self.gap = True

    def _start(self) -> None:
        if not self._busy:
            work = object()
            self._work, thread = work, Thread(target=self._run, args=(work,), name=f"halfjoin-sink-{self._name}")
            try:
                self._busy = True
                start(thread)
                self._thread = thread
            except BaseException as problem:  # if the thread has started nevertheless, it finds no work
                self._busy, self._work = False, None
                if not isinstance(problem, RuntimeError):
                    raise
                # There can be no more threads. The batch is acknowledged: the next one tries again.
                self._failed(StorageError(f"the table cannot be written: {problem}"))

    def _run(self, work: object) -> None:
        with self._lock:
            if self._work is not work:
                return
        try:
            if not self._table.is_open:
                self._look()
            while (delivery := self._next()) is not None:
                try:
                    self._deliver(delivery)
                except DataError:  # a row with a negative count, which the next batch may correct
                    if not self._fold():
                        raise
        except HalfjoinError as problem:
            self._fail(problem)
        except BaseException as problem:  # an error of a library: the engine goes on and reports it
            self._fail(StorageError(f"the table cannot be written: {problem!r}"))

    def _next(self) -> Delivery | None:
        """The delivery to make now. None ends the thread."""
        with self._lock:
            if self._queue:
                return self._queue[0]
            if not self.gap:
                self.error = None
            self._busy = False
            self._turn.notify_all()
            return None

    def _look(self) -> None:
        """Open the table, and check that it is as the courier left it. If not, a copy of the warehouse has written it,
        or it was put back: then its `upper` does not say what it has, and it gets the whole contents."""
        found = self._table.open()
        with self._lock:
            if found == self._marked:
                return
            if self._queue and found == self._queue[0].upper:  # the commit succeeded; only its answer was lost
                self._queue.popleft()
                self.upper = found
            else:
                self._queue.clear()
                self.gap = True
                self.upper = found if self._marked is None else None
            self._marked = found

    def _deliver(self, delivery: Delivery) -> None:
        if not delivery.whole and delivery.low != self.upper:
            with self._lock:
                self._queue.clear()
                self.gap = True
            return
        write = self._table.rewrite if delivery.whole else self._table.change
        changed = write(delivery, delivery.upper, delivery.note)
        with self._lock:
            self._queue.popleft()
            self.upper = delivery.upper
            if changed:
                self._marked = delivery.upper
            self.error = None
            self._turn.notify_all()

    def _fold(self) -> bool:
        """Turn all that waits into one delivery. Returns whether there were several."""
        with self._lock:
            waiting = list(self._queue)
            first = max((number for number, one in enumerate(waiting) if one.whole), default=0)
            start, last = waiting[first], waiting[-1]
            every = tuple(part for one in waiting[first:] for part in one.changes)
            self._queue = deque([Delivery(start.low, last.upper, every, start.whole, "several batches at once")])
            return len(waiting) > 1

    def _fail(self, problem: HalfjoinError) -> None:
        with self._lock:
            self._failed(problem)
            self._busy = False
            self._turn.notify_all()

    def _failed(self, problem: HalfjoinError) -> None:
        if self.error is None:
            _log.warning("the sink %s falls behind, and the next batch tries again: %s", self._name, problem)
        self.error = problem
