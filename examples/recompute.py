"""The alternative to maintaining a view: DuckDB has the same tables and computes the whole view again."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import duckdb
import pyarrow as pa


def settled(sql: str, columns: Iterable[str]) -> str:
    """The query, where LIMIT breaks ties by all its columns in declared order, as a view does."""
    return sql.replace("\nLIMIT", f", {', '.join(columns)}\nLIMIT")


class Recompute:
    """The tables in DuckDB, with the same changes as an engine's. Computes answers from scratch and times them."""

    def __init__(self) -> None:
        self._duck = duckdb.connect()
        self._columns: dict[str, str] = {}

    def load(self, name: str, rows: pa.Table) -> None:
        """Create a table with its first rows."""
        self._columns[name] = ", ".join(rows.column_names)
        self._duck.register("loaded", rows)
        self._run(f"CREATE TABLE {name} AS SELECT * FROM loaded")
        self._duck.unregister("loaded")

    def apply(self, batch: dict[str, pa.Table]) -> None:
        """Apply changed rows with `__diff`, to tables without duplicate rows. Rows without `__diff` are added."""
        for name, rows in batch.items():
            columns = self._columns[name]
            if "__diff" not in rows.column_names:
                rows = rows.append_column("__diff", pa.repeat(pa.scalar(1), rows.num_rows))
            match = " AND ".join(f"t.{c} IS NOT DISTINCT FROM n.{c}" for c in columns.split(", "))
            self._duck.register("changed", rows)
            self._run(
                f"CREATE OR REPLACE TEMP TABLE net AS SELECT {columns}, sum(__diff) AS n FROM changed GROUP BY ALL"
            )
            self._run(f"DELETE FROM {name} AS t USING net AS n WHERE n.n < 0 AND {match}")
            self._run(f"INSERT INTO {name} SELECT {columns} FROM net WHERE n > 0")
            self._duck.unregister("changed")

    def run(self, sql: str) -> tuple[pa.Table, float]:
        """The answer to a query, and the seconds that it took."""
        started = time.perf_counter()
        answer = self._duck.sql(sql).to_arrow_table()
        return answer, time.perf_counter() - started

    def same(self, sql: str, maintained: pa.Table) -> bool:
        """Whether the maintained contents and the answer are equal as multisets."""
        self._duck.register("maintained", maintained)
        self._run(f"CREATE OR REPLACE TEMP TABLE fresh AS {sql}")
        differing = "SELECT count(*) FROM ((FROM {} EXCEPT ALL FROM {}))"
        counts = [
            self._rows(differing.format(*pair))[0][0] for pair in (("fresh", "maintained"), ("maintained", "fresh"))
        ]
        self._duck.unregister("maintained")
        return counts == [0, 0]

    def _run(self, sql: str) -> None:
        self._rows(sql)

    def _rows(self, sql: str) -> list[Any]:
        return self._duck.execute(sql).fetchall()
