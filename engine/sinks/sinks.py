"""Give the changes of each closed batch to the sinks' couriers, and close their gaps from the views' history.

A sink never blocks a batch: the batch is acknowledged before the couriers get its changes. If a courier cannot deliver,
it tries again with each next batch, as long as it takes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from halfjoin.catalog.models import Sink
from halfjoin.engine.arrange.changes import StoredChanges
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.batch.readable import closed, readable
from halfjoin.engine.batch.unreadable import first_failure
from halfjoin.engine.sinks.courier import Courier
from halfjoin.engine.sinks.delivery import Closed, Delivery
from halfjoin.engine.sinks.kafka.defining import topic_of
from halfjoin.engine.sinks.outlet import Outlet
from halfjoin.engine.sinks.table import SinkTable, TableShape
from halfjoin.engine.sinks.target import target_place
from halfjoin.engine.storage.encoding import from_table
from halfjoin.engine.storage.kinds import sort_columns
from halfjoin.engine.storage.parquet import has_order
from halfjoin.engine.storage.place import Place
from halfjoin.engine.storage.scratch import Links
from halfjoin.engine.updates.updates import MINIMUM
from halfjoin.errors import HalfjoinError, StorageError

if TYPE_CHECKING:
    from halfjoin.engine.batch.stage import Staged
    from halfjoin.engine.batch.state import State

MOST_MISSED = 64  # up to so many missed times get a commit each; more get one commit for all
_log = logging.getLogger("halfjoin")


@dataclass(frozen=True, slots=True)
class Status:
    """How far a sink is: its table has the contents as of below `upper` (None: not known), and `waiting` batches wait.
    """

    upper: int | None
    waiting: int
    error: str | None


class Sinks:
    """The couriers of the sinks in the catalog.

    `home` is the warehouse's folder, None without a warehouse. `staging` is a folder for links, which keep files until
    they are delivered; None if links are not possible. `store` has the warehouse's lock.
    """

    def __init__(self, home: Place | None, staging: Path | None, store: object) -> None:
        self.home, self._links, self._store = home, Links(staging), store
        self._couriers: dict[str, tuple[Sink, Courier]] = {}

    def open(self, state: State) -> None:
        """Start the sinks of an opened state, and bring them up to date as far as possible now."""
        self.follow(state)
        self._catch_up(state)

    def follow(self, state: State) -> None:
        """Make a courier for each sink in the catalog that has none, and stop the couriers of sinks that are gone."""
        for name, (sink, courier) in list(self._couriers.items()):
            if state.catalog.sinks.get(name) != sink:
                courier.stop()
                del self._couriers[name]
        for name, sink in state.catalog.sinks.items():
            if name not in self._couriers:
                self._couriers[name] = (sink, Courier(name, self._outlet(state, sink), self._store))

    def _outlet(self, state: State, sink: Sink) -> Outlet:
        former, collection = frozenset(state.catalog.former_sinks), state.collection(sink.collection)
        if sink.options:
            return topic_of(state, sink, former)
        source = TableShape(sink.collection, collection.schema, _sort(collection))
        return SinkTable(partial(target_place, sink.target, self.home), sink.id, source, former)

    def begin(self, state: State) -> None:
        """Fill the tables of sinks that do not have one yet, for example because their view was replaced."""
        if names := [name for name, (_, courier) in self._couriers.items() if courier.end is None]:
            self._catch_up(state, *names)

    def fill(self, state: State, name: str) -> None:
        """Make the table of a new sink.

        Raises:
            StorageError, DataError: it cannot be made.
        """
        self._catch_up(state, name)
        courier = self._couriers[name][1]
        if courier.error is not None:
            courier.undo()
            raise courier.error

    def closing(self, state: State, staged: Staged) -> dict[str, Closed]:
        """The updates that a staged batch will close, by sink. Asked before the batch is published: so it costs about
        as much as the batch."""
        if staged.upper == state.upper:
            return {}
        found: dict[str, Closed] = {}
        for name, (sink, _) in self._couriers.items():
            if state.catalog.sinks.get(name) != sink:
                continue  # it is dropped or replaced with the batch
            collection, source = state.collection(sink.collection), sink.collection
            run, changes = staged.runs.get(source), staged.diffs.get(source)
            if isinstance(changes, StoredChanges):
                found[name] = changes
            elif changes is not None:
                found[name] = from_table(changes, collection.schema)
            elif run is None or run.in_memory:
                found[name] = collection.closing(state.upper, staged.upper, run)
            else:
                found[name] = self._links.lasting(collection.closing_in_files(state.upper, staged.upper, run))
        return found

    def offer(self, state: State, low: int, closing: Mapping[str, Closed]) -> None:
        """Give the couriers the updates that a batch closed when it raised `upper` from `low`. The batch is published.
        """
        for name, updates in closing.items():
            sink, courier = self._couriers[name]
            try:
                readable(closed(state), [sink.collection], None)
                if not courier.gap:
                    courier.offer(Delivery(low, state.upper, (updates,)))
                elif courier.wants_history:
                    self._supply(state, sink, courier)
                else:
                    courier.start()
            except HalfjoinError as error:  # the view cannot be read: the table keeps its last readable contents
                courier.hold(error)

    def flush(self, state: State) -> None:
        """Wait until every table is up to date.

        Raises:
            StorageError: a table cannot be brought up to date. The other tables are.
        """
        self._catch_up(state)
        errors = [f"{name}: {courier.error}" for name, (_, courier) in self._couriers.items() if courier.error]
        if errors:
            raise StorageError("sinks are behind, and will be tried again with the next batch. " + "; ".join(errors))

    def status(self, name: str) -> Status:
        """How far a sink is."""
        _, courier = self._couriers[name]
        return Status(courier.upper, courier.waiting, None if courier.error is None else str(courier.error))

    def close(self) -> None:
        """Wait for what is being delivered."""
        for name, (_, courier) in self._couriers.items():
            courier.wait()
            if courier.error is not None:
                _log.warning("the sink %s is closed without being up to date: %s", name, courier.error)

    def _catch_up(self, state: State, *names: str) -> None:
        chosen = [self._couriers[name] for name in names or self._couriers]
        for _, courier in chosen:
            courier.wait()  # so that this call tries again what failed before it
        for _, courier in chosen:
            courier.start()
        for sink, courier in chosen:
            courier.wait()
            try:
                readable(closed(state), [sink.collection], None)
                if courier.end != state.upper:  # an interrupt came between a batch and its offer
                    courier.gap = True
                if courier.wants_history:
                    self._supply(state, sink, courier)
            except HalfjoinError as error:
                courier.hold(error)
        for _, courier in chosen:
            courier.wait()

    def _supply(self, state: State, sink: Sink, courier: Courier) -> None:
        """Close a gap with the changes since then, one commit per readable time. If history no longer reaches back, use
        the whole contents."""
        collection, low, upper = state.collection(sink.collection), courier.end, state.upper
        courier.gap = False
        cold = collection.cold
        if low is not None and (low == upper or (cold is not None and cold.latest < low <= upper)):
            courier.offer(Delivery(low, upper, ()))  # nothing has changed, so load nothing
            return
        runs = StoredChanges(collection.schema, tuple(collection.runs), MINIMUM, upper, consolidated=False)
        ahead = low is not None and low > upper  # the warehouse was put back to an older state
        if low is None or ahead or not (collection.since < low or collection.since == 0):
            note = "first contents" if low is None else f"the difference: history does not reach back to {low}"
            note = f"the difference: the warehouse was put back, from {low}" if ahead else note
            courier.offer(Delivery(low, upper, (self._links.lasting(runs),), whole=True, note=note))
            return
        since = self._links.lasting(replace(runs, low=low))
        times = _times(since)
        if len(times) > MOST_MISSED:
            courier.offer(Delivery(low, upper, (since,), note=f"all changes since {low}"))
            return
        shown = (time for time in times[:-1] if first_failure(state, sink.collection, time, time + 1) is None)
        ends = [*(time + 1 for time in shown), upper]
        for begin, end in zip([low, *ends[:-1]], ends, strict=True):
            courier.offer(Delivery(begin, end, (replace(since, low=begin, high=end),)))


def _times(changes: StoredChanges) -> list[int]:
    """The times of changes. Stops early once a file part shows more than MOST_MISSED times."""
    found = np.zeros(0, np.int64)
    for part in changes.parts:
        for piece in part.pieces(changes.low, changes.high, names=()):
            found = np.union1d(found, piece.time)
            if len(found) > MOST_MISSED:
                break
    return [int(time) for time in found]


def _sort(collection: Collection) -> tuple[str, ...]:
    """The columns that sort the files: those that sort the collection's own files, otherwise all with an order."""
    ordered = tuple(name for name, kind in collection.schema.items() if has_order(kind))
    return sort_columns(collection) or ordered
