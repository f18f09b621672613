"""The part of `Engine` that answers: the contents of tables and views, queries, changes and plans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from halfjoin.collections.collection import Collection
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.subscription import Subscription
from halfjoin.engine.display.plan import Plan
from halfjoin.engine.intake.given import given_count, given_name
from halfjoin.engine.intake.times import Time, to_time
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements import reading
from halfjoin.engine.statements.execute import query
from halfjoin.engine.statements.explaining import Format, explain
from halfjoin.engine.statements.failing_rows import failing_rows
from halfjoin.engine.statements.session import Session
from halfjoin.engine.statements.subscribing import subscribe
from halfjoin.engine.storage.store import retried
from halfjoin.engine.system.exclusive import exclusive
from halfjoin.sql.parse.parameters import Params


class Answering(ABC):
    """Reads tables and views as of a time, which is the newest closed one by default."""

    _session: Session
    _runners: Runners

    @abstractmethod
    def _reading(self) -> AbstractContextManager[State]:
        """The state at one moment."""

    @retried
    @exclusive
    def read(self, name: str, as_of: Time | None = None, *, multiplicity: bool = False) -> pa.Table:
        """The contents of a table or view, in no particular order. A row with count n comes n times.

        Args:
            name: a table, a materialized view or a plain view.
            as_of: a time in `[since, upper)`; None is `upper - 1`.
            multiplicity: return each distinct row once, with its count (which may be negative) in `__diff`.

        Raises:
            UnknownName, InvalidTime; DataError: an expression of the view fails for a row at that time.
        """
        with self._reading() as state:
            state, name = self._session.temporary.found(state, name)
            if not multiplicity:
                return reading.rows_of(state, name, _optional(as_of))
            found = reading.contents(state, name, _optional(as_of), distinct=True)
            return found.table(changes=True).drop_columns(["__time"])

    @retried
    @exclusive
    def errors(self, name: str, as_of: Time | None = None, *, limit: int = 100) -> pa.Table:
        """The rows because of which a table or materialized view cannot be read; none if it can be.

        Args:
            name: a table or a materialized view.
            as_of: a time in `[since, upper)`; None is `upper - 1`.
            limit: the most lines.

        Returns:
            Columns `view` (the view, or one that it reads, or the part of views that fails), `error` (what is wrong,
            and the expression), `row` (the values that the expression reads, as `t.x = 0, t.y = NULL`; NULL if no row
            is at fault) and `count`: how many distinct rows look like that.

        Raises:
            UnknownName, InvalidTime; UnsupportedSQL: it is a plain view.
        """
        with self._reading() as state:
            state, name = self._session.temporary.found(state, given_name(name, "a table or view"))
            return failing_rows(state, name, _optional(as_of), given_count(limit, "lines"))

    @retried
    @exclusive
    def dataframe(self, name: str, as_of: Time | None = None) -> Any:
        """The contents as `read` returns them, as a lazy Spark DataFrame; this process does not collect the rows.

        It reads files that stay until the engine is closed. A negative count, or an expression that fails for a row of
        a plain view, raises when Spark evaluates the frame. A time of day is text, since Spark has no type for it.

        Raises:
            UnknownName, InvalidTime, DataError: as `read`.
        """
        with self._reading() as state:
            return reading.frame(*self._session.temporary.found(state, name), self._runners, _optional(as_of))

    @retried
    @exclusive
    def query(self, sql: str | Collection, params: Params = None, as_of: Time | None = None) -> pa.Table:
        """Run any SELECT over tables and views as of a time. A `Collection` is one. `params`: as for `execute`.

        Raises:
            UnsupportedSQL, UnknownName, InvalidTime, DataError: the query, or a view that it reads, has no answer then.
        """
        with self._reading() as state:
            return query(self._session, state, _text(sql), _optional(as_of), params)

    @retried
    @exclusive
    def subscribe(
        self, name: str, as_of: Time | None = None, up_to: Time | None = None, *, snapshot: bool = True
    ) -> Subscription:
        """The changes of a materialized view as they close, as an iterator of tables: columns, `__time`, `__diff`.

        Args:
            name: the view.
            as_of: the time to start from; None is `upper - 1`.
            up_to: the time to end before: changes at that time or later are left out.
            snapshot: start with the contents as of `as_of` (at that `__time`); the changes after it follow.

        With `read_only` it ends after the changes that are closed now; subscribe again from its last time for more.

        Raises:
            UnknownName, UnsupportedSQL, InvalidTime; DataError: the view cannot be read as of `as_of`. The iterator
                raises it, and ends, at the first time at which the view cannot be read.
        """
        with self._reading() as state:
            start, end = _optional(as_of), _optional(up_to)
            return subscribe(self._session, state, name, start, end, snapshot=snapshot)

    @exclusive
    def explain(self, view_or_sql: str | Collection, format: Format = "text") -> str:
        """The dataflow of a view or query, for people (`text`, `mermaid`, `html`) or programs (`json`)."""
        with self._reading() as state:
            return Plan(explain(self._session.known(state), self._runners, _text(view_or_sql), format))


def _text(query: str | Collection) -> str:
    return query.sql() if isinstance(query, Collection) else query


def _optional(time: Time | None) -> int | None:
    return None if time is None else to_time(time)
