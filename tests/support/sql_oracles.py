"""Oracles that answer SQL about the rows of `tests.support.whole_groups`: DuckDB, and PostgreSQL where installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from halfjoin.engine.scalar.arrow_types import arrow_type
from tests.support.whole_groups import TYPES, Row


class Oracle:
    """Answers SQL about the rows, which are in the table `t`."""

    name = "duckdb"

    def __init__(self) -> None:
        self._duck = duckdb.connect(config={"threads": 1})

    def put(self, rows: Sequence[Row]) -> None:
        columns = {name: pa.array(values, arrow_type(type)) for (name, type), values
                   in zip(TYPES.items(), zip(*rows, strict=True), strict=True)}  # fmt: skip
        self._duck.register("t", pa.table(columns))

    def ask(self, sql: str) -> list[Row]:
        return self._duck.execute(sql).fetchall()


class Postgres(Oracle):
    name = "postgres"

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        listed = ", ".join(f"{name} {type}" for name, type in TYPES.items())
        connection.execute(f"CREATE TABLE t ({listed})")

    def put(self, rows: Sequence[Row]) -> None:
        self._connection.execute("TRUNCATE t")
        with self._connection.cursor().copy("COPY t FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def ask(self, sql: str) -> list[Row]:
        found: list[Row] = self._connection.execute(sql).fetchall()
        return found


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    """An oracle; PostgreSQL where it is installed."""
    yield Oracle() if request.param == "duckdb" else Postgres(request.getfixturevalue("postgres_of_module"))
