"""The `Engine`: the object that users hold. It takes the lock and calls the rooms below, which do the work."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from os import PathLike
from threading import Condition, RLock
from types import TracebackType
from typing import Any, NoReturn, Self

import pyarrow as pa

from halfjoin.collections.collection import Collection
from halfjoin.collections.text import name as named
from halfjoin.engine.answering import Answering
from halfjoin.engine.arrange.changes import Changes
from halfjoin.engine.arrange.memory import Memory, to_bytes
from halfjoin.engine.batch.activity import Activity
from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.batch.clock import Clock, check
from halfjoin.engine.batch.commit import Commits
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.store import ReaderStore
from halfjoin.engine.batch.writer import Writer, subscriptions, writing
from halfjoin.engine.display.html import note, piece
from halfjoin.engine.feeds.feeding import Feeding
from halfjoin.engine.feeds.sourcing import Sourcing
from halfjoin.engine.intake.given import given_name, given_names
from halfjoin.engine.intake.schemas import schema_of
from halfjoin.engine.intake.times import Time
from halfjoin.engine.sinks.sinks import Sinks
from halfjoin.engine.spark.runners import Runners, Setting
from halfjoin.engine.statements import evaluating
from halfjoin.engine.statements.connecting import Connecting
from halfjoin.engine.statements.copy_statements import copy_from, copy_lines
from halfjoin.engine.statements.copying import joined
from halfjoin.engine.statements.creating import create_like
from halfjoin.engine.statements.execute import execute
from halfjoin.engine.statements.registering import Registering
from halfjoin.engine.statements.replan import reconsider
from halfjoin.engine.statements.session import Session
from halfjoin.engine.statements.sourcing import create_source, wanted
from halfjoin.engine.statements.stats import SourceStats, Stats, collections_html, readable, source_stats, stats
from halfjoin.engine.storage.filling import fill_missing, unfilled
from halfjoin.engine.storage.reader import Reader
from halfjoin.engine.storage.store import Nowhere, retried
from halfjoin.engine.storage.warehouse import Warehouse
from halfjoin.engine.system.exclusive import exclusive
from halfjoin.engine.system.machine import machine_memory
from halfjoin.engine.system.process import is_this
from halfjoin.engine.system.turns import Turns
from halfjoin.errors import Conflict, HalfjoinError
from halfjoin.notebook.view import View
from halfjoin.sql.definitions import CreateSource
from halfjoin.sql.parse.parameters import Params
from halfjoin.sql.parse.times import duration


class Engine(Answering, Registering, Connecting, Feeding, Sourcing):
    """Keeps SQL views up to date. It is a context manager. Calls from several threads take turns; calls from a forked
    child raise Conflict.

    Args:
        warehouse: where everything is kept: a folder, or the URL of an object store (`s3://...`, with its credentials
            in the environment). It is created if it does not exist. None: the state ends with the engine.
        read_only: only read, beside the engine that writes. Each call sees the warehouse as the last batch left it.
        spark: a Spark session, classic or Connect. None: the engine starts a local one when it first needs one.
        runner: who runs batches and fills new views. `local`: this process. `spark`: Spark jobs. `auto`: Spark for
            bulk and for Spark DataFrames. The answers are the same.
        retain: how much history stays readable, in time units or as text (`30 days`, counted in milliseconds), for
            tables and views that do not set it. None: as the warehouse has it; 1,000,000 for a new one.
        clock: what times mean. `wall`: milliseconds since 1970, now by default. `own`: the user's, without a default.
            None: as the warehouse has it; the first batch of a new one sets it, to `own` if it gives a time.
        memory: the most that rows and indexes may take in memory, in bytes or as text (`4GB`). In a warehouse the rest
            stays on disk, and is looked up there; None is half of the machine's memory. Without a warehouse a batch
            that does not fit is refused; None is no limit.

    Raises:
        Conflict: another engine writes the warehouse, or the warehouse has another clock.
        StorageError: the warehouse cannot be used, or a newer version wrote it.
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
                                remedy="name it: Engine('folder', read_only=True)")
        history = None if retain is None else duration(retain)
        check(clock)
        limit = to_bytes(memory) if memory is not None else None if warehouse is None else machine_memory() // 2
        self._memory = Memory(limit, lambda: (part for one in self._state.collections() for part in one.held))
        self._process = os.getpid()
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._turns = Turns(self._lock, self._changed)
        self._commits = Commits()
        self._torn = False  # whether the last call raised, or is still running
        self._closed: str | None = None  # why calls are refused
        self._released = False
        with ExitStack() as undo:  # also after an interrupt: nobody has this engine yet, so nobody else can close it
            store = undo.enter_context(closing(_store(warehouse, read_only)))
            self._store: ReaderStore = store
            self._state = store.open(history, clock, self._memory)
            self._runners = Runners(runner, spark, store.staging)
            self._sinks = Sinks(store.place, store.staging, store)
            undo.callback(self._sinks.close)
            self._sources = self._make_sources()
            self._writer: Writer | None = None
            if not isinstance(store, Reader):
                self._writer = Writer(self._state, store, self._runners, self._sinks, self._sources, self._commits,
                                      self._changes_frame, partial(reconsider, self._state, self._runners))  # fmt: skip
                self._sinks.open(self._state)
                self._sources.follow(self._state)
                if unfilled(self._state) or store.has_stale_nodes():
                    self._writer.define(lambda: fill_missing(self._state))
            self._session = Session(self._runners, self._sinks, self._writer, (self._lock, self._changed),
                                    self._sources_of)
            undo.pop_all()

    @retried
    @exclusive
    def execute(self, sql: str, params: Params = None) -> pa.Table | None:
        """Run statements in order. Those between BEGIN and COMMIT are one batch, all of it or nothing.

        A transaction may go on over several calls. If a call fails that did not begin it, it waits for ROLLBACK.

        Args:
            sql: one or several statements.
            params: the values of `$1`, `$2`, ... (a list or tuple) or of `:name` (a dict) in queries and changes.

        Returns:
            The rows of the last statement, None if it returns none. INSERT, UPDATE, DELETE and MERGE return their
            `count`, or the rows of RETURNING.

        Raises:
            UnsupportedSQL, UnknownName, Conflict, InvalidRow, InvalidTime, DataError: a statement fails and changes
                nothing. The statements before it stay done.
        """
        self._wait()
        with self._reading() as state:
            return execute(self._session, state, sql, params)

    @exclusive
    def copy_from(self, sql: str, source: Any) -> int:
        """Insert the rows of a stream: `COPY t [(a, b)] FROM STDIN [WITH (FORMAT csv, HEADER, ...)]`.

        Args:
            sql: the statement. Its options are FORMAT (csv or text), HEADER, DELIMITER, NULL and QUOTE.
            source: bytes or text, or a stream with `read`. It is read whole: its rows are one batch.

        Returns:
            The number of rows.

        Raises:
            UnsupportedSQL, UnknownName, InvalidRow, DataError: nothing is inserted.
        """
        read = source.read() if hasattr(source, "read") else source
        if not isinstance(read, str | bytes | bytearray | memoryview):
            raise HalfjoinError(f"COPY reads bytes or text, not {type(read).__name__}",
                                remedy="give these, or a stream with read()")  # fmt: skip
        data = read.encode() if isinstance(read, str) else bytes(read)
        self._wait()
        with self._reading() as state:
            return copy_from(self._session, state, sql, data)

    @retried
    @exclusive
    def copy_to(self, sql: str, target: Any = None) -> bytes | None:
        """The rows of `COPY t [(a, b)] | (query) TO STDOUT [WITH (...)]` as bytes, written as PostgreSQL writes them.

        `target`: a binary stream that gets them instead. Options and errors are those of `copy_from`.
        """
        if target is not None and not hasattr(target, "write"):
            raise HalfjoinError(f"COPY writes to a binary stream, not to {type(target).__name__}",
                                remedy="give a stream with write(), or none to get the bytes")  # fmt: skip
        with self._reading() as state:
            data = joined(copy_lines(self._session, state, sql))
        if target is None:
            return data
        target.write(data)
        return None

    def create_table(self, name: str, like: Any, key: Sequence[str] = ()) -> None:
        """Create a table with the columns of `like`: a pyarrow Schema or Table, or anything else that Arrow reads, such
        as a pandas, polars or Spark DataFrame.

        Args:
            name: the table.
            like: what has the columns; its rows are not inserted.
            key: the columns of the PRIMARY KEY.

        Raises:
            UnsupportedSQL: a column's type has no SQL type.
            UnknownName: `key` names no column.
            Conflict: the name is in use.
        """
        self.execute(create_like(given_name(name, "a table"), schema_of(like), given_names(key, "a column")))

    def create_view(self, name: str, collection: Collection) -> None:
        """Make a materialized view of a collection: `CREATE MATERIALIZED VIEW` with its text.

        Raises:
            UnsupportedSQL, UnknownName, Conflict, DataError: nothing is created.
        """
        if not isinstance(collection, Collection):
            raise HalfjoinError(f"{collection!r} is not a collection",
                                remedy="execute('CREATE MATERIALIZED VIEW ...') takes SQL")  # fmt: skip
        self.execute(f"CREATE MATERIALIZED VIEW {named(name)} AS\n{collection.sql()}")

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
                Columns are matched by name; a named pandas index counts as a column. `__diff` (+1) and `__time`
                (`time`) are optional. No value is rounded or truncated. NaN is a number in a column of floats and NULL
                in others; from pandas, which writes missing values as NaN, it is always NULL.
            time: the time of rows without `__time`. None: now in milliseconds, or `upper` if that is later;
                `clock="own"` has no default.
            batch_id: a second batch with the same id and content gets the first one's answer and changes nothing. The
                order of rows does not matter, except among upserts of one key. Ids `halfjoin/...` belong to feeds.
            close: whether the batch closes all times up to its last.

        Raises:
            UnknownName, InvalidRow: nothing of the batch is kept.
            InvalidTime: a time is closed or missing, or would end all history (`advance` first). Nothing is kept.
            Conflict: the batch id was used with other content.
        """
        return self._writing().apply(batches, time, batch_id, close=close)

    @exclusive
    def advance(self, to: Time | None = None) -> Applied:
        """Close every time below `to` without data, however far away `to` is (None: now in milliseconds).

        Raises:
            InvalidTime: `to` is below `upper`, or None with `clock="own"`.
        """
        return self._writing().advance(to)

    @exclusive
    def _changes_frame(self, changes: Mapping[str, Changes], view: str) -> Any:
        """The Spark DataFrame that `Applied.dataframe` returns."""
        with self._reading() as state:
            return self._runners.spark.changes_frame(state.schema(view), changes[view])

    def view(self, name: str) -> View:
        """A table or view that notebooks show; `engine.view("v").live()` follows a materialized view.

        Raises:
            UnknownName: there is none of that name.
        """
        return View(self, name)

    @property
    @exclusive
    def spark(self) -> Any:
        """The Spark session, classic or Connect; the engine starts a quiet local one if it was opened without one."""
        self._check_open()
        return self._runners.spark.session

    @exclusive
    def stats(self) -> Stats:
        """What the engine holds: collections, arrangements and who shares them, runs, frontiers, bytes."""
        with self._reading() as state:
            return stats(state, self._session.delivering, self._store.foreign(), self._sources_of(state))

    @exclusive
    def activity(self) -> Activity:
        """The last 1,000 batches of this engine: rows in, the rows and seconds of each node. An engine that only reads
        has none."""
        return Activity() if self._writer is None else self._writer.activity.copy()

    @exclusive
    def flush(self) -> None:
        """Do the work now that later batches would do: merge the newest runs, and bring all Delta tables up to date.

        Raises:
            StorageError: a table of the warehouse or of a sink cannot be written. Nothing is lost.
        """
        self._check_open()
        self._state.tidy()
        if self._writer is not None:
            self._writer.flush()
        self._sinks.flush(self._state)

    @exclusive
    def compact(self) -> None:
        """Merge the runs and the files of every collection into one; this removes history below its `since`."""
        self._check_open()
        self._state.compact()
        if self._writer is not None:
            self._writer.compact()

    @exclusive
    def _define_source(self, statement: CreateSource) -> None:
        self._wait()
        with self._reading() as state:
            self._sources.settle()
            source = wanted(state, statement)
            self._session.define(state, lambda state: create_source(state, self._session.means, source))

    def _sources_of(self, state: State) -> list[SourceStats]:
        return source_stats(state, self._sources, self._store.progress)

    def __repr__(self) -> str:
        where = "in memory" if self._store.place is None else repr(str(self._store.place))
        if self._closed is not None:
            return f"<halfjoin.Engine {where}, closed>"
        views = sum(view.materialized for view in self._state.catalog.views.values())
        counts = f"tables={len(self._state.catalog.tables)}, materialized_views={views}"
        return f"<halfjoin.Engine {where}, {counts}, upper={self._state.upper}>"

    def _repr_html_(self) -> str | None:
        """What notebooks show; None where there is only the text."""
        if self._closed is not None or not is_this(self._process):
            return None
        found = self.stats()
        where = "in memory" if self._store.place is None else str(self._store.place)
        return piece(f"halfjoin.Engine {where}", note(readable(found)), collections_html(found))

    def close(self) -> None:
        """End the subscriptions and release everything. A forked child has no engine; there it does nothing."""
        if is_this(self._process):
            self._sources.stop()
            self._close()

    @exclusive
    def _close(self) -> None:
        for subscription in subscriptions(self._state):
            subscription.close()
        if not self._released:
            self._session.close(self._state)
            self._closed = "the engine is closed"  # set first: after an interrupt, another `close` goes on
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
        """The state at one moment. The caller holds the lock."""
        self._check_open()
        with self._store.moment(self._state) as self._state:
            yield self._state
            self._store.do_due_work(self._state)

    def _wait(self) -> None:
        """Wait for the turn to write. Other calls may run meanwhile; repair what they left half done."""
        if self._turns.wait():
            self._recover()
            self._torn = True

    def _writing(self) -> Writer:
        """Wait for this call's turn, and return the writer."""
        self._wait()
        self._check_open()
        return writing(self._writer)

    def _recover(self) -> None:
        """Repair what an interrupted call left half done. The caller holds the lock; no other call is running."""
        if self._closed is None:
            self._turns.recover()
            self._store.recover()
            self._commits.recover()
            self._store.refuse()
            evaluating.recover(self._state)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise HalfjoinError(self._closed, code="08003")


def _store(warehouse: str | PathLike[str] | None, read_only: bool) -> Reader | Warehouse | Nowhere:
    if warehouse is None:
        return Nowhere()
    return Reader(warehouse) if read_only else Warehouse(warehouse)
