"""Pathway, with the query in its Table API. Rows go in one at a time, which is how its Python connector takes them.

All tables come through one connector, so that a batch is one commit and has one time. A row of the table `ticks` goes
with each batch, so that Pathway tells the end of its time also where the view does not change. Then the batch is done.
Pathway's engine in Rust runs one worker; the connector and the callbacks have threads of their own. Pathway is no
dependency of the project, and needs an older pyarrow: this file is run by a Python that has `pathway`, `tpchgen-cli`
and not halfjoin.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections import Counter
from typing import Any, TypeAlias

import numpy as np
import pathway as pw  # type: ignore[import-not-found,unused-ignore]

from tests.benchmarks.peers.integers import BUILDING, DAY, Columns, Tables, integers

Row: TypeAlias = dict[str, int]
Changed: TypeAlias = list[tuple[int, Row]]  # diffs and rows

TICKS, *TABLES = ("ticks", "customer", "orders", "lineitem")
COLUMNS = ("key", "number", "price", "discount", "shipped")  # what a line has; the others use the first of these
PATIENCE = 3600  # seconds for one batch, of which the first has all rows


class Pathway:
    """Keeps the view in Pathway's engine, which runs beside."""

    def __init__(self, tables: Tables, view: str) -> None:
        self._batches: queue.Queue[Changed | None] = queue.Queue()
        self._ended: queue.Queue[int] = queue.Queue()
        self._view, self._numbers = view, itertools.count()
        self._kept: Counter[tuple[int, ...]] = Counter()
        self._names = _build(view, self._batches, self._changed, self._ended.put)
        silent = {"monitoring_level": pw.MonitoringLevel.NONE, "default_logging": False}
        threading.Thread(target=pw.run, kwargs=silent, daemon=True).start()
        self.apply(self.prepare(tables))

    def prepare(self, batch: Tables) -> Changed:
        """Each row as a dict, which the connector takes, and the tick."""
        changed = [(1, _row(TICKS, (next(self._numbers),)))]
        for name, rows in batch.items():
            columns = integers(rows)
            diffs = columns.pop("__diff", np.ones(rows.num_rows, np.int64)).tolist()
            values = zip(*(column.tolist() for column in columns.values()), strict=True)
            changed += [(diff, _row(name, row)) for diff, row in zip(diffs, values, strict=True)]
        return changed

    def apply(self, batch: Changed) -> None:
        """Send the batch, and wait for the end of its time."""
        self._batches.put(batch)
        self._ended.get(timeout=PATIENCE)

    def contents(self) -> Columns:
        """The view's rows."""
        rows = np.array([row for row, count in self._kept.items() if count], np.int64)
        self._batches.put(None)
        return dict(zip(self._names, rows.reshape(-1, len(self._names)).T, strict=True))

    def _changed(self, row: Row, is_addition: bool, **_: Any) -> None:
        if not row["tick"]:
            self._kept[tuple(row[name] for name in self._names)] += 1 if is_addition else -1


def _build(view: str, batches: queue.Queue[Changed | None], changed: Any, ended: Any) -> list[str]:
    """Make the dataflow. Returns the view's columns."""

    class Subject(pw.io.python.ConnectorSubject):  # type: ignore[misc,unused-ignore]
        def run(self) -> None:
            while (batch := batches.get()) is not None:
                for diff, row in batch:
                    if diff > 0:
                        self.next(**row)
                    else:
                        self.delete(**row)  # named here, so that the connector expects deletions
                self.commit()

    keys = {name: pw.column_definition(primary_key=True, dtype=int) for name in ("kind", "key", "number")}
    values = {name: pw.column_definition(dtype=int) for name in COLUMNS[2:]}
    rows = pw.io.python.read(Subject(), schema=pw.schema_builder(keys | values), autocommit_duration_ms=None)
    ticks, customers, orders, lines = (rows.filter(rows.kind == kind) for kind in range(4))
    customers = customers.filter(pw.this.number == BUILDING)
    orders = orders.filter(pw.this.price < DAY)
    lines = lines.filter(pw.this.shipped > DAY)
    wanted = orders.join(customers, orders.number == customers.key).select(
        key=orders.key, date=orders.price, priority=orders.discount
    )
    found = lines.join(wanted, lines.key == wanted.key).select(
        l_orderkey=lines.key, o_orderdate=wanted.date, o_shippriority=wanted.priority, l_linenumber=lines.number,
        revenue=lines.price * (100 - lines.discount),
    )  # fmt: skip
    if view == "groups":
        found = found.groupby(found.l_orderkey, found.o_orderdate, found.o_shippriority).reduce(
            found.l_orderkey, found.o_orderdate, found.o_shippriority, revenue=pw.reducers.sum(found.revenue)
        )
    names = list(found.column_names())
    told = found.with_columns(tick=0).concat_reindex(ticks.select(**dict.fromkeys(names, 0), tick=1))
    pw.io.subscribe(told, on_change=changed, on_time_end=ended)
    return names


def _row(table: str, values: tuple[int, ...]) -> Row:
    """A row of any table as a row of the connector's."""
    kind = 0 if table == TICKS else 1 + TABLES.index(table)
    return {"kind": kind, **dict.fromkeys(COLUMNS, 0), **dict(zip(COLUMNS, values, strict=False))}
