"""`engine.view("v")`: a view as a thing that a notebook shows, and from which live views are made."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from halfjoin.collections.text import name as named
from halfjoin.engine.display.html import code, folded, note, piece
from halfjoin.engine.display.rows import ROWS, rows_html
from halfjoin.notebook.live import Live, Watched


class Engine(Watched, Protocol):
    """What a view needs of the engine."""

    def execute(self, sql: str) -> pa.Table | None:
        """Run a statement."""

    def read(self, name: str, as_of: Any = None) -> pa.Table:
        """Contents as of a time."""

    def explain(self, view_or_sql: str) -> str:
        """A plan."""


class View:
    """A table or a view by its name. It holds nothing: each use asks the engine.

    Args:
        engine: where it is.
        name: a table, a materialized view or a plain view.

    Raises:
        UnknownName: there is none of that name.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self.name = engine, name
        self._shown = f"SELECT * FROM {named(name)}"
        engine.execute(f"{self._shown} LIMIT 0")

    @property
    def sql(self) -> str:
        """The CREATE statement."""
        found = self._engine.execute(f"SHOW CREATE {named(self.name)}")
        assert found is not None
        return str(found.columns[-1][0].as_py())

    def read(self, as_of: Any = None) -> pa.Table:
        """The contents, as `Engine.read`."""
        return self._engine.read(self.name, as_of)

    def explain(self) -> str:
        """The plan, as `Engine.explain`."""
        return self._engine.explain(self.name)

    def live(self, rows: int = ROWS, order_by: str | None = None, every: float = 1.0) -> Live:
        """A display of the first rows that follows the view until it is closed; see `Live`.

        Args:
            rows: how many rows are shown.
            order_by: SQL such as `amount DESC`; None: all columns in their order.
            every: seconds between two updates of the display, at least.

        Raises:
            UnsupportedSQL, UnknownName: it is not a materialized view, or `order_by` cannot be understood.
        """
        return Live(self._engine, self.name, rows, order_by, every)

    def __repr__(self) -> str:
        return f"<halfjoin view {self.name}>"

    def _repr_html_(self) -> str:
        """The number of rows, the first of them, and the SQL."""
        counted = self._engine.execute(f"SELECT count(*) AS n FROM {named(self.name)}")
        first = self._engine.execute(f"{self._shown} LIMIT {ROWS}")
        assert counted is not None and first is not None
        count = counted["n"][0].as_py()
        return piece(self.name, note(f"{count:,} row{'' if count == 1 else 's'}"), rows_html(first),
                     folded("SQL", code(self.sql)))  # fmt: skip
