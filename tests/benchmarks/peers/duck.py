"""DuckDB, which has the same tables and computes the view again. Only the query is timed, not the changes."""

from __future__ import annotations

import pyarrow as pa

from examples.recompute import Recompute
from examples.tpch import Q3_VIEWS
from tests.benchmarks.peers.integers import Columns, Tables, integers


class Duckdb:
    """Keeps no view."""

    def __init__(self, tables: Tables, view: str) -> None:
        self._base, self._sql = Recompute(), Q3_VIEWS[view]
        for name, rows in tables.items():
            self._base.load(name, rows)
        self._answer: pa.Table = self._base.run(self._sql)[0]

    def prepare(self, batch: Tables) -> None:
        """Change the tables."""
        self._base.apply(batch)

    def apply(self, _: None) -> None:
        """Compute the view."""
        self._answer = self._base.run(self._sql)[0]

    def contents(self) -> Columns:
        """The view's rows."""
        return integers(self._answer)
