"""The courier of one sink: takes closed batches from the engine, and commits them in order, in a thread of its own.

What it cannot deliver stays in its queue and is tried again with the next batch. Where the queue does not continue what
the table holds (after opening, after an error of the view, when too much is waiting), there is a `gap`, which the
engine closes from the view's history.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from threading import Condition, RLock, Thread

from halfjoin.engine.sinks.delivery import Delivery
from halfjoin.engine.sinks.table import SinkTable
from halfjoin.errors import DataError, HalfjoinError, StorageError

MOST_WAITING = 256  # batches: then the engine waits for the courier, or a courier that fails gives them up
_log = logging.getLogger("halfjoin")


class Courier:
    """Keeps one table up to date. All methods but `_run` and what it calls are for the engine's thread."""

    def __init__(self, name: str, table: SinkTable) -> None:
        self._name, self._table = name, table
        self._lock = RLock()  # taken and released by `with` itself, so that no interrupt comes between
        self._turn = Condition(self._lock)
        self._queue: deque[Delivery] = deque()
        self._thread: Thread | None = None
        self._busy = False
        self._work: object = None  # of the thread that is to be at work
        self._marked: int | None = None  # the upper that the table says it has
        self.upper: int | None = None  # the upper that its contents have: no less, since not every batch changes them
        self.gap = True
        self.error: HalfjoinError | None = None

    @property
    def waiting(self) -> int:
        """Batches that are not delivered."""
        return len(self._queue)

    @property
    def end(self) -> int | None:
        """What the table's upper will be when all that waits is delivered; None if not even a table is there."""
        with self._lock:
            return self._queue[-1].upper if self._queue else self.upper

    @property
    def wants_history(self) -> bool:
        """Whether there is a gap, and it is known where it begins."""
        return self.gap and self._table.is_open

    def offer(self, delivery: Delivery) -> None:
        """Deliver this after what is waiting; it waits itself only for a courier that works and has too much to do."""
        with self._lock:
            self._turn.wait_for(lambda: not self._busy or len(self._queue) < MOST_WAITING or self.error is not None)
            if len(self._queue) >= MOST_WAITING:
                self._give_up()
                self._start()
            elif self._queue or self._busy or delivery.whole or delivery.some or self.error is not None:
                self._queue.append(delivery)
                self._start()
            elif delivery.low == self.upper:
                self.upper = delivery.upper  # nothing changes, and nothing is in the way
            else:
                self.gap = True

    def hold(self, error: HalfjoinError) -> None:
        """The view cannot be read now: nothing is delivered until it can."""
        with self._lock:
            self.gap = True
            self._failed(error)

    def start(self) -> None:
        """Look at the table if that is still to be done, and deliver what waits."""
        with self._lock:
            self._start()

    def wait(self) -> None:
        """Until all is delivered, or it fails."""
        with self._lock:
            self._turn.wait_for(lambda: not self._busy)
        if self._thread is not None:
            self._thread.join()

    def stop(self) -> None:
        """Deliver no more than what is under way."""
        with self._lock:
            self._give_up()
        self.wait()

    def undo(self) -> None:
        """Take away what was made of a table that could not be filled, as far as that can be done."""
        self.stop()
        with suppress(HalfjoinError):
            self._table.undo()

    def _give_up(self) -> None:
        """Forget what waits, but for what is being delivered."""
        while len(self._queue) > self._busy:
            self._queue.pop()
        self.gap = True

    def _start(self) -> None:
        if not self._busy:
            work = object()
            self._work, thread = work, Thread(target=self._run, args=(work,), name=f"halfjoin-sink-{self._name}")
            try:
                self._busy = True
                thread.start()
                self._thread = thread
            except BaseException:  # a thread that has been started all the same finds that it has no work
                self._busy, self._work = False, None
                raise

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
                except DataError:  # a row fewer than zero times, which the next batch may have put right
                    if not self._fold():
                        raise
        except HalfjoinError as problem:
            self._fail(problem)
        except BaseException as problem:  # of a library: the engine goes on, and says so
            self._fail(StorageError(f"the table cannot be written: {problem!r}"))

    def _next(self) -> Delivery | None:
        """What is to be delivered now; None ends the thread."""
        with self._lock:
            if self._queue:
                return self._queue[0]
            if not self.gap:
                self.error = None
            self._busy = False
            self._turn.notify_all()
            return None

    def _look(self) -> None:
        """Open the table, and see whether it is as it was left."""
        found = self._table.open()
        with self._lock:
            if found == self._marked:
                return
            if self._queue and found == self._queue[0].upper:  # it was committed, the answer alone was lost
                self._queue.popleft()
            else:
                self._queue.clear()
                self.gap = True
            self.upper = self._marked = found

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
        """Make what waits one delivery. Returns whether it was several."""
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
            _log.warning("the sink %s falls behind, and will be tried again: %s", self._name, problem)
        self.error = problem
