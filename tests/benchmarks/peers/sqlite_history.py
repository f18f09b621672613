"""SQLite as in `sqlite.py`, with what the engine gives beside the newest contents: it keeps the history of the tables
and of the view, and tells which rows of the view a batch has changed.

Changed rows are logged with their time, those of the view by triggers. The sum of a log up to a time is what was there
then. The logs have no index: to read the past would take a scan.
"""

from __future__ import annotations

from examples.tpch import Q3_COLUMNS
from tests.benchmarks.peers.integers import Tables
from tests.benchmarks.peers.sqlite import Changed, Rows, Sqlite

SHOWN = {  # the view's columns, and which rows of `kept` are rows of the view
    "lines": ("l_orderkey, o_orderdate, o_shippriority, l_linenumber, revenue", "true"),
    "groups": ("l_orderkey, o_orderdate, o_shippriority, revenue", "{row}.n > 0"),
}
EVENTS = {"INSERT": {"new": 1}, "DELETE": {"old": -1}, "UPDATE": {"old": -1, "new": 1}}


class SqliteHistory(Sqlite):
    """Keeps the view in the table `kept`, and logs of all changes."""

    _time = _told = 0  # the batches, 0 while the tables are filled; the last row that was told

    def __init__(self, tables: Tables, view: str) -> None:
        super().__init__(tables, view)
        columns, there = SHOWN[view]
        self._base.executescript(f"CREATE TABLE told (time, {columns}, diff); CREATE TABLE now (time);"
                                 "INSERT INTO now VALUES (0)")  # fmt: skip
        for event, rows in EVENTS.items():
            tell = (f"INSERT INTO told SELECT time, {_of(row, columns)}, {diff} FROM now WHERE {there.format(row=row)};"
                    for row, diff in rows.items())  # fmt: skip
            self._base.execute(f"CREATE TRIGGER tell_{event} AFTER {event} ON kept BEGIN {' '.join(tell)} END")
        self._logs = {}
        for name, logged in Q3_COLUMNS.items():
            self._base.execute(f"CREATE TABLE log_{name} (time, {', '.join(logged)}, diff)")
            self._logs[name] = f"INSERT INTO log_{name} VALUES (?, {'?, ' * len(logged)}?)"
        self._changes = (f"SELECT {columns}, sum(diff) FROM told WHERE rowid > ? GROUP BY {columns} "
                         "HAVING sum(diff) <> 0")  # fmt: skip

    def apply(self, batch: Changed) -> Rows:
        """The changed rows of the view, each with its diff at the end."""
        self._time += 1
        self._base.execute("BEGIN")
        self._base.execute("UPDATE now SET time = ?", (self._time,))
        self._carry_out(batch)
        changes = self._base.execute(self._changes, (self._told,)).fetchall()
        (self._told,) = self._base.execute("SELECT coalesce(max(rowid), 0) FROM told").fetchone()
        self._base.execute("COMMIT")
        return changes

    def _change(self, name: str, gone: Rows, come: Rows) -> None:
        super()._change(name, gone, come)
        if self._time:
            logged = [(self._time, *row, -1) for row in gone] + [(self._time, *row, 1) for row in come]
            self._base.executemany(self._logs[name], logged)


def _of(row: str, columns: str) -> str:
    return ", ".join(f"{row}.{name}" for name in columns.split(", "))
