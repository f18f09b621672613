"""The oracle: it keeps every update of every table, and evaluates a view from scratch in DuckDB, as of any time.

Each name exists twice there: in the schema `weighted` a table's row comes once with its count in `__w`; in the schema
`plain` it comes as often as it is contained, so that any SQL can be asked as it stands.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import count
from typing import Any
from weakref import finalize

import duckdb
import pyarrow as pa
from hypothesis import reject

from tests.oracle.rows import Bag, hashable
from tests.oracle.schema import Table

MACROS = """
    CREATE MACRO main.mz_now() AS getvariable('now')::bigint;
    CREATE MACRO main.ms(t) AS epoch_us(t::timestamp) / 1000.0;
"""


_NUMBERS = count()


@cache
def _process() -> duckdb.DuckDBPyConnection:
    """The DuckDB of this process: to open one takes longer than most oracles live. A random query may need more memory
    than the machine has."""
    return duckdb.connect(config={"threads": 1, "memory_limit": "4GB", "max_temp_directory_size": "0GB"})


def _forget(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    cursor.close()
    _process().execute(f"DETACH {name}")


class Oracle:
    """The tables' histories, and answers computed from nothing else.

    An answer is a function of the updates up to its time: it is computed once, and again after updates that it counts.
    """

    def __init__(self) -> None:
        self._duck, name = _process().cursor(), f"oracle{next(_NUMBERS)}"
        self._duck.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
        self._duck.execute("CREATE SCHEMA history; CREATE SCHEMA weighted; CREATE SCHEMA plain;" + MACROS)
        finalize(self, _forget, self._duck, name)
        self._known: dict[tuple[str, int], Bag] = {}  # by query and time
        self._times: list[int] = []  # at which a table changes
        self._clock = False  # whether a view's text reads the clock

    def create_table(self, table: Table) -> None:
        """An empty table."""
        columns = ", ".join(f"{column.name} {column.sql}" for column in table.columns)
        self.create(table.name, columns, tuple(column.name for column in table.columns))

    def create(self, name: str, columns: str, names: Iterable[str]) -> None:
        """An empty table of these columns, given as DDL and as names."""
        listed = ", ".join(names)
        self._duck.execute(f"""
            CREATE TABLE history.{name} ({columns}, __time bigint, __diff bigint);
            CREATE VIEW weighted.{name} AS SELECT {listed}, sum(__diff)::bigint AS __w FROM history.{name}
                WHERE __time <= mz_now() GROUP BY ALL HAVING sum(__diff) <> 0;
            CREATE VIEW plain.{name} AS
                SELECT {listed} FROM (SELECT {listed}, unnest(range(__w)) FROM weighted.{name});
        """)

    def create_view(self, name: str, sql: str, weighted: str | None = None) -> None:
        """A view by its SQL, and by its text with weights where it is asked with them."""
        self._known.clear()
        self._clock |= "mz_now" in f"{sql} {weighted}"
        self._duck.execute(f"SET search_path = 'plain'; CREATE OR REPLACE VIEW plain.{name} AS {sql}"
                           if weighted is None else
                           f"SET search_path = 'weighted'; CREATE OR REPLACE VIEW weighted.{name} AS {weighted}")

    def drop_view(self, name: str) -> None:
        """Forget the view."""
        self._known.clear()
        self._duck.execute(f"DROP VIEW IF EXISTS weighted.{name}; DROP VIEW IF EXISTS plain.{name}")

    def apply(self, table: str, updates: pa.Table) -> None:
        """Take updates with `__time` and `__diff`."""
        self._duck.register("__updates", updates)
        self._duck.execute(f"INSERT INTO history.{table} BY NAME SELECT * FROM __updates")
        self._duck.unregister("__updates")
        given = set(updates.column("__time").to_pylist())
        for time in given.difference(self._times):
            insort(self._times, time)
        first = min(given, default=math.inf)
        self._known = {(sql, time): bag for (sql, time), bag in self._known.items() if time < first}

    def contents(self, view: str, columns: Iterable[str], time: int) -> Bag:
        """Rows with their counts, from the weighted text."""
        listed = ", ".join(columns)
        sql = f"SELECT {listed}, sum(__w)::bigint FROM weighted.{view} GROUP BY ALL HAVING sum(__w) <> 0"
        return self._answer("weighted", sql, time, lambda rows: Counter({hashable(row[:-1]): row[-1] for row in rows}))

    def ask(self, sql: str, time: int) -> Bag:
        """The answer of any SELECT over tables and views that contain no row a negative number of times."""
        return self._answer("plain", sql, time, lambda rows: Counter(map(hashable, rows)))

    def _answer(self, schema: str, sql: str, time: int, counted: Callable[[list[tuple[Any, ...]]], Bag]) -> Bag:
        if self._clock or "mz_now" in sql:
            moment = time
        else:  # the tables are as they were when one of them last changed
            place = bisect_right(self._times, time)
            moment = self._times[place - 1] if place else -1
        if (sql, moment) not in self._known:
            self._duck.execute(f"SET VARIABLE now = {time}; SET search_path = '{schema}'")
            try:
                self._known[sql, moment] = counted(self._duck.execute(sql).fetchall())
            except duckdb.OutOfMemoryException:
                reject()
        return self._known[sql, moment].copy()
