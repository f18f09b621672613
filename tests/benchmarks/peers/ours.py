"""halfjoin. Its batch checks the primary keys, keeps history, and tells the caller which rows of the view changed."""

from __future__ import annotations

from examples.tpch import Q3_VIEWS
from tests.benchmarks.alone import loaded
from tests.benchmarks.peers.integers import Columns, Tables, integers


class Halfjoin:
    """Keeps the view in an engine in memory."""

    def __init__(self, tables: Tables, view: str, retain: int | None = None) -> None:
        self.engine, _ = loaded(tables, retain=retain)
        self.engine.execute(f"CREATE MATERIALIZED VIEW q3 AS {Q3_VIEWS[view]}")
        self._at = len(tables)

    def prepare(self, batch: Tables) -> Tables:
        """Arrow tables are what the engine takes."""
        return batch

    def apply(self, batch: Tables) -> None:
        """One call."""
        self._at += 1
        self.engine.apply(batch, time=self._at)

    def contents(self) -> Columns:
        """The view's rows."""
        return integers(self.engine.read("q3"))
