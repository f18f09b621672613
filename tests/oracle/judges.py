"""Oracles that answer a query over the tables' contents at any time: DuckDB and PostgreSQL, over the same updates."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from tests.oracle.histories import DDL, Update
from tests.oracle.nested import TABLES
from tests.oracle.rows import Bag, hashable
from tests.oracle.values import Oracle

Contents = dict[str, Bag]


def contents(updates: Iterable[Update], time: int) -> Contents:
    """What the tables contain at a time."""
    found: Contents = {name: Counter() for name in TABLES}
    for table, row, at, diff in updates:
        if at <= time:
            found[table][row] += diff
    return {name: Counter({row: count for row, count in rows.items() if count}) for name, rows in found.items()}


def normal(rows: Iterable[Sequence[Any]]) -> Bag:
    """The rows, counted. Numbers of any type are compared up to rounding, and intervals by their lengths."""
    return Counter(tuple(map(_normal, hashable(row))) for row in rows)


def _normal(value: Any) -> Any:
    if isinstance(value, pa.MonthDayNano):
        return dt.timedelta(30 * value.months + value.days, microseconds=value.nanoseconds // 1000)
    if isinstance(value, tuple):
        return tuple(map(_normal, value))
    if isinstance(value, Decimal | float):
        return float(f"{value:.9g}") + 0.0 if math.isfinite(value) else str(value)
    return value


class Answers:
    """DuckDB's answers."""

    name: Oracle = "duckdb"

    def __init__(self) -> None:
        self._known: dict[str, Bag | None] = {}
        self._open()

    def _open(self) -> None:
        self._duck = duckdb.connect(config={"threads": 1})
        with suppress(duckdb.CatalogException):  # older versions never fail
            self._run("SET error_on_division_by_zero = false")
        self._run("PRAGMA disable_optimizer")  # whose statistics of tables of a few rows are wrong at times
        for ddl in (*DDL, "CREATE MACRO mz_now() AS getvariable('now')::bigint"):
            self._run(ddl)
        self._held: Contents = {name: Counter() for name in TABLES}

    def at(self, updates: Iterable[Update], time: int) -> None:
        """Hold the tables' contents at a time. No row may be there a negative number of times."""
        self._hold(contents(updates, time))
        self._known = {sql: bag for sql, bag in self._known.items() if "mz_now()" not in sql}
        self._time = time
        self._set(time)

    def _hold(self, now: Contents) -> None:
        for name, rows in now.items():
            if rows != self._held[name]:
                self._known.clear()
                listed = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows.elements())
                self._run(f"DELETE FROM {name}" + (f"; INSERT INTO {name} VALUES {listed}" if rows else ""))
        self._held = now

    def ask(self, sql: str) -> Bag | None:
        """The rows of a query; None if this oracle has no answer."""
        if sql not in self._known:
            rows = self._rows(sql)
            self._known[sql] = None if rows is None else normal(rows)
        return self._known[sql]

    def _run(self, sql: str) -> None:
        self._duck.execute(sql)

    def _set(self, time: int) -> None:
        self._run(f"SET VARIABLE now = {time}")

    def _rows(self, sql: str) -> list[Any] | None:
        try:
            return self._duck.execute(sql).fetchall()
        except (duckdb.NotImplementedException, duckdb.BinderException):  # some subqueries
            return None
        except duckdb.OutOfRangeException:  # it has no numeric, and its integers of 128 bits overflow
            return None
        except duckdb.InternalException:  # a defect of DuckDB's, after which it answers nothing more
            held = self._held
            self._open()
            self._hold(held)
            self._set(self._time)
            return None


class PostgresAnswers(Answers):
    """PostgreSQL's answers."""

    name: Oracle = "postgres"

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._run("CREATE OR REPLACE FUNCTION mz_now() RETURNS bigint STABLE LANGUAGE sql "
                  "AS $$ SELECT current_setting('halfjoin.now')::bigint $$")  # fmt: skip
        for ddl in DDL:
            self._run(ddl)
        self._held = {name: Counter() for name in TABLES}
        self._known = {}

    def _run(self, sql: str) -> None:
        self._connection.execute(sql)

    def _set(self, time: int) -> None:
        self._run(f"SET halfjoin.now = '{time}'")

    def _rows(self, sql: str) -> list[Any] | None:
        return list(self._connection.execute(sql).fetchall())


def _literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else repr(value)
