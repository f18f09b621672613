"""Computes in DuckDB what Arrow cannot compute, on one private in-memory connection without external access."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Datum, Kernel, on_arrays
from halfjoin.engine.system.machine import machine_memory
from halfjoin.engine.system.process import leak
from halfjoin.sql.types import SqlType

_LOCK = Lock()


@lru_cache(maxsize=1)
def _duckdb() -> Any:
    """The library, imported at first use: most expressions, and so most of Spark's workers, do not need it."""
    import duckdb

    return duckdb


@lru_cache(maxsize=1)
def _connection() -> Any:
    config = {"threads": 1, "memory_limit": f"{machine_memory() // 4}B", "temp_directory": ""}
    connection = _duckdb().connect(":memory:", config=config)
    connection.execute("SET enable_external_access = false; SET TimeZone = 'UTC'; SET lock_configuration = true")
    return connection


def _forked() -> None:
    """Give a forked child its own lock and connection.

    It never closes the parent's connection: that would wait for threads that the child does not have.
    """
    global _LOCK
    _LOCK = Lock()
    if _connection.cache_info().currsize:
        leak(_connection())
    _connection.cache_clear()


os.register_at_fork(after_in_child=_forked)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt if Ctrl-C interrupts DuckDB, which raises its own RuntimeError."""
    try:
        yield
    except RuntimeError as problem:
        if str(problem) != "Query interrupted":
            raise
        raise KeyboardInterrupt from problem


def rows_of(query: str, table: pa.Table) -> pa.Table:
    """The rows of a query over `table`. The query calls it `arguments`. A column of only NULLs may have any type.

    Raises:
        duckdb.Error: an expression fails.
    """
    with _LOCK, interruptible():
        connection = _connection()
        connection.register("arguments", table)
        try:
            return connection.sql(query).to_arrow_table()
        finally:
            connection.unregister("arguments")


def duck_kernel(template: str, type: SqlType) -> Kernel:
    """A kernel from DuckDB SQL in which `$1`, `$2`, ... are the arguments."""
    sql = template
    for i in range(9, 0, -1):
        sql = sql.replace(f"${i}", f"a{i}")
    query = f"SELECT {sql} AS result FROM arguments"
    result_type = arrow_type(type)

    @on_arrays
    def run(*arrays: Any) -> Datum:
        table = pa.table({f"a{i}": array for i, array in enumerate(arrays, 1)})
        try:
            column = rows_of(query, table).column(0)
        except _duckdb().OutOfMemoryException as error:  # no single row is at fault
            raise MemoryError(str(error).split("\n")[0]) from error
        except _duckdb().Error as error:
            raise Failed(str(error).split("\n")[0]) from error
        result = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        return result if result.type == result_type else result.cast(result_type)

    return run
