"""The `Engine`: what users hold. It keeps the lock, and says what is done; the rooms below do it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from threading import Condition, RLock
from types import TracebackType
from typing import Any, NoReturn, Self

import pyarrow as pa

from halfjoin.engine.arrange.changes import Changes
from halfjoin.engine.arrange.expand import expand
from halfjoin.engine.arrange.memory import Memory, to_bytes
from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.batch.clock import Clock, check
from halfjoin.engine.batch.commit import Commits
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.store import ReaderStore
from halfjoin.engine.batch.subscription import Subscription
from halfjoin.engine.batch.writer import Writer, subscriptions, writing
from halfjoin.engine.feeds.delta_source import DeltaSource
from halfjoin.engine.feeds.follow import follower
from halfjoin.engine.feeds.sink import Format as SinkFormat
from halfjoin.engine.feeds.sink import Sink
from halfjoin.engine.intake.times import Time, to_time
from halfjoin.engine.sinks.sinks import Sinks
from halfjoin.engine.spark.runners import Runners, Setting
from halfjoin.engine.statements import reading
from halfjoin.engine.statements.execute import execute, query
from halfjoin.engine.statements.explaining import Format, explain
from halfjoin.engine.statements.register import register_table_function
from halfjoin.engine.statements.replan import reconsider
from halfjoin.engine.statements.session import Session
from halfjoin.engine.statements.stats import Stats, stats
from halfjoin.engine.statements.subscribing import subscribe
from halfjoin.engine.storage.filling import fill_missing, unfilled
from halfjoin.engine.storage.reader import Reader
from halfjoin.engine.storage.store import Nowhere, retried
from halfjoin.engine.storage.warehouse import Warehouse
from halfjoin.engine.system.exclusive import exclusive
from halfjoin.engine.system.machine import machine_memory
from halfjoin.engine.system.process import check_process, is_this
from halfjoin.engine.system.turns import Turns
from halfjoin.errors import Conflict, HalfjoinError
from halfjoin.sql.parse.times import duration


class Engine:
    """SQL views, kept up to date. A context manager; calls from several threads take turns, and those from a forked
    child raise Conflict.

    Args:
        warehouse: where to keep everything, made if it is not there: a folder, or the URL of an object store
            (`s3://...`; what it takes to get there is in the environment). None: state is gone with the engine.
        read_only: read beside the engine that writes: each call sees the warehouse as the last batch left it.
        spark: a Spark session, classic or Connect; None: a local one is started when first needed.
        runner: who carries out batches and first fills: `local` this process, `spark` Spark jobs, `auto` Spark for
            bulk and for rows that are Spark DataFrames. The answers are the same.
        retain: history kept readable, in time units or as text (`30 days`, which counts in milliseconds), where a table
            or view does not say it for itself. None: what the warehouse has, 1,000,000 for a new one.
        clock: what the times are. `wall`: milliseconds since 1970, which default to now. `own`: the user's, never
            defaulted. None: what the warehouse has; of a new one the first batch settles it, `own` if it says a time.
        memory: the most that rows and indexes may hold, in bytes or as text (`4GB`). In a warehouse what does not fit
            stays on disk, and is looked up there; None is half of the machine's memory. Without a warehouse a batch
            past it is refused; None is no limit.

    Raises:
        Conflict: another engine writes the warehouse, or it has another clock.
        StorageError: the warehouse cannot be used, or was made by a newer version.
    """

    def __init__(
        self,
        warehouse: str | PathLike[str] | None = None,
        *,
        read_only: bool = False,
        spark: Any = None,
        runner: Setting = "auto",
        retain: int | str | None = None,
        clock: Clock | None = None,
        memory: int | str | None = None,
    ) -> None:
        if runner not in ("auto", "local", "spark"):
            raise HalfjoinError(f"unknown runner {runner!r}", remedy="runners: auto, local, spark")
        if spark is not None and not hasattr(spark, "createDataFrame"):
            raise HalfjoinError(f"spark={spark!r} is not a Spark session", remedy="leave it out for a local one")
        if read_only and warehouse is None:
            raise HalfjoinError("read_only=True reads a warehouse",
                                remedy="say which: Engine('folder', read_only=True)")
        history = None if retain is None else duration(retain)
        check(clock)
        limit = to_bytes(memory) if memory is not None else None if warehouse is None else machine_memory() // 2
        self._memory = Memory(limit, lambda: (part for one in self._state.collections() for part in one.held))
        self._process = os.getpid()
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._turns = Turns(self._lock, self._changed)
        self._commits = Commits()
        self._torn = False  # whether the last call ended by an exception, or is under way
        self._closed: str | None = None  # why no more calls are taken
        self._released = False
        store = _store(warehouse, read_only)
        self._store: ReaderStore = store
        try:
            self._state = store.open(history, clock, self._memory)
        except BaseException:
            store.close()
            raise
        self._runners, self._sinks = Runners(runner, spark, store.staging), Sinks(store.place, store.staging)
        self._writer: Writer | None = None
        if not isinstance(store, Reader):
            self._writer = Writer(self._state, store, self._runners, self._sinks, self._commits, self._changes_frame,
                                  partial(reconsider, self._state, self._runners))  # fmt: skip
            self._sinks.open(self._state)
            if unfilled(self._state) or store.has_stale_nodes():
                self._writer.define(lambda: fill_missing(self._state))
        self._session = Session(self._runners, self._sinks, self._writer, (self._lock, self._changed))

    @retried
    @exclusive
    def execute(self, sql: str) -> pa.Table | None:
        """Run one or several statements, in order; those between BEGIN and COMMIT as one batch, or not at all.

        Returns:
            The rows of the last statement, None if it has none. INSERT, UPDATE and DELETE have one: their `count`.

        Raises:
            UnsupportedSQL, UnknownName, Conflict, InvalidRow, InvalidTime, DataError: the statements before the
            failing one stay done, of that one nothing is.
        """
        self._wait()
        with self._reading() as state:
            return execute(self._session, state, sql)

    @exclusive
    def apply(
        self,
        batches: Mapping[str, Any],
        time: Time | None = None,
        batch_id: str | None = None,
        *,
        close: bool = True,
    ) -> Applied:
        """Submit changed rows of any tables, as one atomic batch.

        Args:
            batches: rows by table name, as a pyarrow Table or RecordBatchReader, anything with `__arrow_c_stream__`,
                a Spark DataFrame, a list of dicts, or a dict of columns; or `inserts`, `deletes`, `upserts` of those.
                Columns go by name, and so does an index of pandas that has one; `__diff` (+1) and `__time` (`time`) are
                optional. No value is rounded or cut. NaN is a number for columns of floats, and NULL for all others;
                from pandas, which writes missing values so, it is NULL.
            time: of rows without their own. None is the present in milliseconds, or `upper` if that is later; with
                `clock="own"` there is no such default.
            batch_id: a second batch with the same id and content is answered as the first was and changes nothing. The
                order of rows does not count, save that of upserts of one key. `halfjoin/...` is for feeds.
            close: whether all times up to the batch's last are closed by it.

        Raises:
            UnknownName, InvalidRow: nothing of the batch is kept.
            InvalidTime: nor of one whose times are closed or missing, or end all history (`advance` first).
            Conflict: the batch id came with other content before.
        """
        return self._writing().apply(batches, time, batch_id, close=close)

    @exclusive
    def advance(self, to: Time | None = None) -> Applied:
        """Close every time below `to` without data, however far it is (None: the present in milliseconds).

        Raises:
            InvalidTime: `to` is below `upper`, or None with `clock="own"`.
        """
        return self._writing().advance(to)

    @exclusive
    def _changes_frame(self, changes: Mapping[str, Changes], view: str) -> Any:
        """For `Applied.dataframe`."""
        with self._reading() as state:
            return self._runners.spark.changes_frame(state.schema(view), changes[view])

    @retried
    @exclusive
    def read(self, name: str, as_of: Time | None = None, *, multiplicity: bool = False) -> pa.Table:
        """Contents of a table or view, a row as often as it is contained, in no particular order.

        Args:
            name: of a table, a materialized or a plain view.
            as_of: a time in `[since, upper)`; None is `upper - 1`.
            multiplicity: one row per distinct row instead, with its count (which may be negative) in `__diff`.

        Raises:
            UnknownName, InvalidTime; DataError: an expression of the view fails for a row at that time.
        """
        with self._reading() as state:
            found = reading.contents(state, name, _optional(as_of), distinct=multiplicity)
            if multiplicity:
                return found.table(changes=True).drop_columns(["__time"])
            return expand(found, name).table(changes=False)

    @retried
    @exclusive
    def dataframe(self, name: str, as_of: Time | None = None) -> Any:
        """The same contents as `read` gives, as a Spark DataFrame: lazy, and not collected by this process.

        It reads files that stay until the engine is closed. An expression that fails for a row of a plain view, and
        a negative count, raise when the frame is evaluated. A time of day is text, for want of a type in Spark.

        Raises:
            UnknownName, InvalidTime; DataError as for `read`.
        """
        with self._reading() as state:
            return reading.frame(state, self._runners, name, _optional(as_of))

    @retried
    @exclusive
    def query(self, sql: str, as_of: Time | None = None) -> pa.Table:
        """Any SELECT over tables and views as of a time.

        Raises:
            UnsupportedSQL, UnknownName, InvalidTime, DataError.
        """
        with self._reading() as state:
            return query(state, sql, _optional(as_of))

    @retried
    @exclusive
    def subscribe(
        self, name: str, as_of: Time | None = None, up_to: Time | None = None, *, snapshot: bool = True
    ) -> Subscription:
        """The changes of a materialized view as they close, as an iterator of tables: columns, `__time`, `__diff`.

        Args:
            name: of the view.
            as_of: where to begin; None is `upper - 1`.
            up_to: where to end: changes at that time and later are not given.
            snapshot: begin with the contents as of `as_of` (at that `__time`); the changes after it follow.

        With `read_only` it ends with the changes that are closed now; subscribe again from its last time for more.

        Raises:
            UnknownName, UnsupportedSQL, InvalidTime; DataError: the view cannot be read as of `as_of`. The iterator
                raises it, and ends, where it comes to the first time at which the view cannot be read.
        """
        with self._reading() as state:
            start, end = _optional(as_of), _optional(up_to)
            return subscribe(self._session, state, name, start, end, snapshot=snapshot)

    @exclusive
    def explain(self, view_or_sql: str, format: Format = "text") -> str:
        """The dataflow of a view, or of a query, for people (`text`, `mermaid`, `html`) or programs (`json`)."""
        with self._reading() as state:
            return explain(state, self._runners, view_or_sql, format)

    @property
    @exclusive
    def spark(self) -> Any:
        """The Spark session, classic or Connect; a quiet local one is started if the engine was given none."""
        self._check_open()
        return self._runners.spark.session

    @exclusive
    def stats(self) -> Stats:
        """What is held: collections, arrangements and who shares them, runs, frontiers, bytes."""
        with self._reading() as state:
            return stats(state, self._session.delivering, self._store.foreign())

    @exclusive
    def sink(
        self, table: str, *, name: str | None = None, format: SinkFormat = "rows",
        time: str | Callable[[int], Time] | None = None,
        close: bool = True,
    ) -> Sink:  # fmt: skip
        """A function for Structured Streaming's `foreachBatch` that applies each micro-batch to a table, exactly once.

        Args:
            table: where the rows go.
            name: of the sink, which with the query's epochs makes batch ids; None is the table's name. Two queries into
                one table need two names.
            format: what the rows mean: `rows` as for `apply` (with columns `__diff` and `__time`, if there are such),
                `deletes`, `upserts`, or `debezium` for messages as `hj.debezium` reads them; or a function from the
                micro-batch to rows as `apply` takes them.
            time: the column with the rows' times, or a function from an epoch's number to its time, always the same;
                they must not be closed. None: the present, which with `clock="own"` there is not.
            close: whether an epoch closes its times, as for `apply`.

        Raises:
            UnknownName: there is no such table. What `apply` raises ends the query.
        """
        with self._reading() as state:
            columns = [column.name for column in state.catalog.table(table).columns]
        return Sink(self.apply, table, table if name is None else name, format, time, close, tuple(columns))

    def follow(
        self, table: str, path: str | PathLike[str], *, columns: Sequence[str] | None = None,
        time: Callable[[int], Time] | None = None, restart: bool = False,
    ) -> list[Applied]:  # fmt: skip
        """Apply what a Delta table has changed since the last call, exactly once: a batch for each of its versions.

        The first call applies its rows, later ones each version's changes, at a time of its own: from the files of a
        version that only added rows, and else from the Change Data Feed. Where it stopped is kept with the rows.

        What is many comes in several batches at one time, which the last of them closes: until then nobody sees any of
        it, and batches of other threads wait. If the process ends before, the next call goes on with the rest; a batch
        that closes the times before that call shows the part that is there.

        Args:
            table: what the rows go to; it follows one source.
            path: of the Delta table, a folder or the URL of an object store.
            columns: those to take, where the two tables do not have the same.
            time: a function from a version's number to its time, say `lambda version: version`. None: the present,
                which with `clock="own"` there is not.
            restart: make the source's rows the table's, by what differs, and go on from there: for a source that was
                made anew, or whose history is gone.

        Returns:
            What each batch did; nothing where there is no new version.

        Raises:
            Conflict: the source is another one than before, or at an older version.
            StorageError: a version cannot be read (any more), or deletes rows without a feed. Those before it stay.
            UnknownName, InvalidRow: the source's columns or rows do not fit. Of changes in pieces the values are
                checked before the first piece; of the first rows they are, and always the PRIMARY KEY, with each: those
                before stay, unseen, and `restart` mends it.
        """
        check_process(self._process)
        with self._turns.following:
            with self._lock:
                self._check_open()
                one = follower(writing(self._writer), table, self.apply, self._turns)
            return one.follow(DeltaSource(path, one.table, columns), time, restart=restart)

    @exclusive
    def register_table_function(
        self, name: str, function: Callable[[pa.RecordBatch], pa.RecordBatch], returns: Mapping[str, str]
    ) -> None:
        """Make a function usable in FROM: the general linear operator.

        Args:
            name: as it is written in SQL, in lower case.
            function: takes a RecordBatch of its arguments (columns `0`, `1`, ...) and returns one with the columns of
                `returns`, `__row` (the argument row that a result belongs to) and optionally `__time` (the earliest
                time of the result, int64) and `__diff` (its weight, int64). It must be deterministic.
            returns: SQL types by column.
        """
        self._check_open()
        register_table_function(self._state, self._writer, name, function, returns)

    @exclusive
    def flush(self) -> None:
        """Do now what is otherwise left to later batches: merge the newest runs, bring all Delta tables up to date.

        Raises:
            StorageError: a table of the warehouse, or of a sink, cannot be written; nothing is lost.
        """
        self._check_open()
        self._state.tidy()
        if self._writer is not None:
            self._writer.flush()
        self._sinks.flush(self._state)

    @exclusive
    def compact(self) -> None:
        """Merge the runs, and the files, of every collection into one; history below its since goes."""
        self._check_open()
        self._state.compact()
        if self._writer is not None:
            self._writer.compact()

    def __repr__(self) -> str:
        where = "in memory" if self._store.place is None else repr(str(self._store.place))
        if self._closed is not None:
            return f"<halfjoin.Engine {where}, closed>"
        views = sum(view.materialized for view in self._state.catalog.views.values())
        counts = f"tables={len(self._state.catalog.tables)}, materialized_views={views}"
        return f"<halfjoin.Engine {where}, {counts}, upper={self._state.upper}>"

    def close(self) -> None:
        """End the subscriptions and let go of everything; without effect in a forked child, which has nothing."""
        if is_this(self._process):
            self._close()

    @exclusive
    def _close(self) -> None:
        for subscription in subscriptions(self._state):
            subscription.close()
        if not self._released:
            self._sinks.close()
            self._closed = "the engine is closed"  # also if it is interrupted now: then `close` goes on
            self._store.close()
            self._runners.close()
        self._released = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise Conflict("an engine belongs to the process that opened it, and cannot be sent to another one")

    @contextmanager
    def _reading(self) -> Iterator[State]:
        """The state at one moment; the lock is held."""
        self._check_open()
        with self._store.moment(self._state) as self._state:
            yield self._state
            self._store.do_due_work(self._state)

    def _wait(self) -> None:
        """For the turn to write, while others may call; what they have left is put right as before any call."""
        if self._turns.wait():
            self._recover()
            self._torn = True

    def _writing(self) -> Writer:
        """The writer, when it is this call's turn."""
        self._wait()
        self._check_open()
        return writing(self._writer)

    def _recover(self) -> None:
        """Put right what a call has left that was interrupted; the lock is held, and no other call is under way."""
        if self._closed is None:
            self._turns.recover()
            self._store.recover()
            self._commits.finish()
            reading.recover(self._state)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise HalfjoinError(self._closed)


def _store(warehouse: str | PathLike[str] | None, read_only: bool) -> Reader | Warehouse | Nowhere:
    if warehouse is None:
        return Nowhere()
    return Reader(warehouse) if read_only else Warehouse(warehouse)


def _optional(time: Time | None) -> int | None:
    return None if time is None else to_time(time)
