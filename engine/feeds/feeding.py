"""The part of `Engine` that takes rows from Structured Streaming and from Delta tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from threading import RLock
from typing import Any

from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.writer import Writer, writing
from halfjoin.engine.feeds.delta_source import DeltaSource
from halfjoin.engine.feeds.follow import follower
from halfjoin.engine.feeds.sink import Format as SinkFormat
from halfjoin.engine.feeds.sink import Sink
from halfjoin.engine.intake.given import given_name, given_names
from halfjoin.engine.intake.times import Time
from halfjoin.engine.system.exclusive import exclusive
from halfjoin.engine.system.process import check_process
from halfjoin.engine.system.turns import Turns


class Feeding(ABC):
    """Makes feeds. Each batch of a feed is applied exactly once."""

    _writer: Writer | None
    _process: int
    _lock: RLock
    _turns: Turns

    @abstractmethod
    def apply(
        self, batches: Mapping[str, Any], time: Time | None = None, batch_id: str | None = None, *, close: bool = True
    ) -> Applied:
        """Submit a batch."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[State]:
        """The state at one moment."""

    @abstractmethod
    def _check_open(self) -> None:
        """Refuse calls of a closed engine."""

    @exclusive
    def sink(
        self, table: str, *, name: str | None = None, format: SinkFormat = "rows",
        time: str | Callable[[int], Time] | None = None,
        close: bool = True,
    ) -> Sink:  # fmt: skip
        """A function for Structured Streaming's `foreachBatch` that applies each micro-batch to a table, exactly once.

        Args:
            table: the table that the rows go to.
            name: the sink's name; batch ids are made from it and the query's epochs. None: the table's name. Two
                queries that write one table need two names.
            format: what the rows mean: `rows` as for `apply` (`__diff` and `__time` columns are optional), `deletes`,
                `upserts`, or `debezium` for messages as `hj.debezium` reads them; or a function from the micro-batch
                to rows as `apply` takes them.
            time: the column with the rows' times, or a function from an epoch's number to its time, the same on each
                call. The times must not be closed. None: now, which `clock="own"` does not allow.
            close: whether an epoch closes its times, as for `apply`.

        Raises:
            UnknownName: the table does not exist. An error of `apply` ends the query.
        """
        with self._reading() as state:
            columns = [column.name for column in state.catalog.table(table).columns]
        called = table if name is None else given_name(name, "a sink")
        return Sink(self.apply, table, called, format, time, close, tuple(columns))

    def follow(
        self, table: str, path: str | PathLike[str], *, columns: Sequence[str] | None = None,
        time: Callable[[int], Time] | None = None, restart: bool = False,
    ) -> list[Applied]:  # fmt: skip
        """Apply the changes of a Delta table since the last call, exactly once: one batch for each version.

        The first call applies the source's rows. Later calls apply each version's changes, each at a time of its own:
        from the Change Data Feed if the version has files there, otherwise from the files that it adds and removes. The
        position is kept with the rows.

        A large version comes in several batches at one time, which the last of them closes. Until then nobody sees any
        of it, and batches of other threads wait. If the process ends before the last, the next call applies the rest; a
        batch that closes the times before that call shows the part that has come.

        Args:
            table: the table that the rows go to; it follows one source.
            path: the Delta table, a folder or the URL of an object store.
            columns: the columns to take, if the two tables have different ones; the same in each call.
            time: a function from a version's number to its time, such as `lambda version: version`. None: now, which
                `clock="own"` does not allow.
            restart: change the table's contents to the source's rows and go on from there. Use it for a source that was
                created anew or has lost its history. Only the differences are applied.

        Returns:
            What each batch did; an empty list if there is no new version.

        Raises:
            Conflict: the source is not the same as before, or is at an older version.
            StorageError: a version cannot be read (any more), or renames a column. The versions before it stay applied.
            UnknownName, InvalidRow: the source's columns or rows do not fit. The values of changes are checked before
                their first piece; the values of the first rows, and every PRIMARY KEY, piece by piece. The pieces
                before a bad one stay, unseen, and `restart` repairs the table.
        """
        check_process(self._process)
        wanted = None if columns is None else given_names(columns, "a column")
        with self._turns.following:
            with self._lock:
                self._check_open()
                one = follower(writing(self._writer), table, self.apply, self._turns)
            return one.follow(DeltaSource(path, one.table, wanted), time, restart=restart)
