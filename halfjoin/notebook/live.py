"""A live view: a display of a notebook that a subscription keeps up to date.

A thread of its own waits for changes and draws at most once a period, whatever comes meanwhile. So a flood of batches
costs the notebook no more than one drawing a period, and cells go on while the display changes. The thread reads
through a connection, which sees the last batch and does not wait for the one that runs.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa

from halfjoin.collections.text import name as named
from halfjoin.engine.batch.clock import shown
from halfjoin.engine.batch.subscription import Subscription
from halfjoin.engine.display.changes import counts
from halfjoin.engine.display.html import note, piece, warning
from halfjoin.engine.display.rows import rows_html
from halfjoin.engine.statements.connection import Connection
from halfjoin.engine.statements.stats import Stats
from halfjoin.errors import HalfjoinError
from halfjoin.sql.parse.prepared import prepared


class Watched(Protocol):
    """What a live view needs of the engine."""

    def connect(self) -> Connection:
        """A connection."""

    def subscribe(self, name: str, *, snapshot: bool = True) -> Subscription:
        """The changes of a view."""

    def stats(self) -> Stats:
        """What the engine holds."""


_CURRENT: WeakKeyDictionary[Any, dict[str, Live]] = WeakKeyDictionary()  # of each engine, by view


class Live:
    """The first rows of a materialized view, and the changes of the last moment, in a display that follows the view.

    The display appears where the object is the value of a cell. It ends with `close`, with the engine, with an error of
    the view, or when a newer live view of the same view appears: a cell that is run again does not leave the old one.

    Raises:
        UnsupportedSQL, UnknownName, DataError: the view cannot be subscribed to, or `order_by` is not understood.
    """

    def __init__(self, engine: Watched, name: str, rows: int, order_by: str | None, every: float) -> None:
        self._engine, self._name, self._rows, self._every = engine, name, rows, every
        self._connection = engine.connect()
        columns = self._query(f"SELECT * FROM {named(name)} LIMIT 0").num_columns
        order = order_by or ", ".join(str(number + 1) for number in range(columns)) or "1"
        self._first = f"SELECT * FROM {named(name)} ORDER BY {order} LIMIT {int(rows)}"
        self._query(self._first)
        engine.subscribe(name, snapshot=False).close()  # it is a materialized view that can be read
        self._stopped = Event()
        self._changes: Subscription | None = None
        self._thread: Thread | None = None

    def close(self) -> None:
        """End: the display keeps what it shows."""
        self._stopped.set()
        if self._changes is not None:
            self._changes.close()

    def join(self) -> None:
        """Wait until the display does not change any more, for tests and scripts."""
        if self._thread is not None:
            self._thread.join()

    def follow(self, draw: Callable[[str], object]) -> None:
        """Draw now, and in a thread whenever the view changes. `draw` takes HTML."""
        older = _CURRENT.setdefault(self._engine, {}).get(self._name)
        if older is not None and older is not self:
            older.close()
        _CURRENT[self._engine][self._name] = self
        self._changes = self._engine.subscribe(self._name, snapshot=False)
        draw(self._repr_html_())
        self._thread = Thread(target=self._run, args=(self._changes, draw), name="halfjoin-live", daemon=True)
        self._thread.start()

    def _run(self, changes: Subscription, draw: Callable[[str], object]) -> None:
        try:
            for first in changes:
                came = [first]
                while changes.waiting:
                    came.append(next(changes))
                draw(self._html(note(_words(came))))
                self._stopped.wait(self._every)
            self._poll(draw)
            draw(self._html(note("ended")))
        except HalfjoinError as problem:
            draw(piece(self._name, warning(str(problem))))
        finally:
            if _CURRENT.get(self._engine, {}).get(self._name) is self:
                del _CURRENT[self._engine][self._name]

    def _poll(self, draw: Callable[[str], object]) -> None:
        """Follow what another process writes: a subscription of an engine that only reads has ended at once."""
        upper = -1
        while not self._stopped.wait(self._every):
            try:
                now = self._engine.stats().upper
            except HalfjoinError:  # the engine is closed
                return
            if now != upper:
                upper = now
                draw(self._html())

    def _query(self, sql: str) -> pa.Table:
        return self._connection.run(prepared(sql)).rows

    def _html(self, *more: str) -> str:
        found = self._query(self._first)
        count = self._query(f"SELECT count(*) AS n FROM {named(self._name)}")["n"][0].as_py()
        known = self._engine.stats()
        when = f"as of {shown(known.upper - 1, known.clock)}" if known.upper else "before the first batch"
        said = f"{count:,} row{'' if count == 1 else 's'} {when}"
        return piece(f"{self._name}, live", note(said), rows_html(found, self._rows), *more)

    def _repr_html_(self) -> str:
        """The view as it is now, for notebooks whose displays do not change."""
        return self._html()

    def _ipython_display_(self) -> None:
        """Show a display in Jupyter, and keep it up to date."""
        from IPython.display import HTML, display

        handle = display(HTML(""), display_id=True)
        self.follow(lambda html: handle.update(HTML(html)))

    def __repr__(self) -> str:
        return f"<halfjoin live view {self._name}>"


def _words(changes: list[pa.Table]) -> str:
    """How many rows came and went, in words."""
    every = pa.concat_tables([one.select(["__time", "__diff"]) for one in changes])
    came, went = counts(every)
    return f"last change: {came} rows in, {went} rows out"
