"""NumPy fitted to query 3 by hand: sorted arrays of keys with small ones in front, and one path for each input.

It shows what the work itself costs. It checks no keys, keeps no history, and knows no other query. Rows that the view's
filters reject are not stored. Rows have their diff as last column; what adds up to zero stays in the arrays.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from examples.tpch import Ints
from tests.benchmarks.peers.integers import BUILDING, DAY, Columns, Tables, integers

Rows: TypeAlias = tuple[Ints, ...]  # columns; the first is the key, the last the diff
Inputs: TypeAlias = dict[str, Rows]

HEAD = 1024  # rows; a run this small is sorted together with the next batch
LINES = 20  # bits of a line's number, behind those of its order


class Runs:
    """Rows by key in runs, each sorted and more than twice as long as the next."""

    def __init__(self, rows: Rows) -> None:
        self.runs = [_sorted(rows)]

    def add(self, rows: Rows) -> None:
        """Add rows, and merge runs that are too short."""
        while self.runs and len(self.runs[-1][0]) <= max(HEAD, 2 * len(rows[0])):
            rows = _joined([self.runs.pop(), rows])
        self.runs.append(_sorted(rows))

    def find(self, keys: Ints) -> tuple[Ints, Rows]:
        """For each key and each row that has it: the position of the key, and the row."""
        found = []
        for run in self.runs:
            low, high = np.searchsorted(run[0], keys), np.searchsorted(run[0], keys, "right")
            many = high - low
            positions = np.repeat(np.arange(len(keys)), many)
            rows = np.arange(len(positions)) + np.repeat(low - np.cumsum(many) + many, many)
            found.append((positions, *(column[rows] for column in run)))
        positions, *columns = _joined(found)
        return positions, tuple(columns)


class Kernel:
    """Keeps the view as rows by key (`lines`), or as sums by order (`groups`)."""

    def __init__(self, tables: Tables, view: str) -> None:
        rows = self.prepare(tables)
        customer, orders, lineitem = (_wanted(rows[name], name) for name in ("customer", "orders", "lineitem"))
        nothing = tuple(column[:0] for column in customer)
        self._customers = Runs(customer)
        self._orders, self._orders_of = Runs(orders), Runs(_by_customer(orders))
        self._lines = Runs(tuple(column[:0] for column in lineitem))
        self._groups = view == "groups"
        width = 5 if self._groups else 6
        self._kept = Runs(tuple(nothing[0] for _ in range(width)))
        self.apply({"lineitem": rows["lineitem"]})

    def prepare(self, batch: Tables) -> Inputs:
        """The columns as arrays."""
        made = {}
        for name, rows in batch.items():
            columns = integers(rows)
            diff = columns.pop("__diff", np.ones(rows.num_rows, np.int64))
            made[name] = (*columns.values(), diff)
        return made

    def apply(self, batch: Inputs) -> Rows:
        """Change the state. Returns the view's rows that come and go."""
        made = []
        if "customer" in batch:
            changed = _wanted(batch["customer"], "customer")
            made.append(self._from_customers(changed))
            self._customers.add(changed)
        if "orders" in batch:
            changed = _wanted(batch["orders"], "orders")
            made.append(self._from_orders(changed))
            self._orders.add(changed)
            self._orders_of.add(_by_customer(changed))
        if "lineitem" in batch:
            changed = _wanted(batch["lineitem"], "lineitem")
            made.append(self._from_lines(changed))
            self._lines.add(changed)
        rows = _joined(made)
        if self._groups:
            return self._changed_groups(rows)
        rows = _consolidated(rows)
        self._kept.add(rows)
        return rows

    def contents(self) -> Columns:
        """The view's rows."""
        rows = _joined(self._kept.runs)
        if self._groups:
            key, date, priority, revenue, count = _summed(rows)
            there = count > 0
            columns = (key, date // np.maximum(count, 1), priority // np.maximum(count, 1), revenue)
            names = ("l_orderkey", "o_orderdate", "o_shippriority", "revenue")
            return {name: column[there] for name, column in zip(names, columns, strict=True)}
        key, date, priority, revenue, order, _ = _consolidated(rows)
        return {"l_orderkey": order, "o_orderdate": date, "o_shippriority": priority,
                "l_linenumber": key & ((1 << LINES) - 1), "revenue": revenue}  # fmt: skip

    def _from_customers(self, changed: Rows) -> Rows:
        at, (_, order, date, priority, more) = self._orders_of.find(changed[0])
        diff = changed[1][at] * more
        at, (_, number, revenue, more) = self._lines.find(order)
        return _view_rows(order[at], number, date[at], priority[at], revenue, diff[at] * more)

    def _from_orders(self, changed: Rows) -> Rows:
        at, (_, more) = self._customers.find(changed[1])
        order, _, date, priority, diff = (column[at] for column in changed)
        diff = diff * more
        at, (_, number, revenue, more) = self._lines.find(order)
        return _view_rows(order[at], number, date[at], priority[at], revenue, diff[at] * more)

    def _from_lines(self, changed: Rows) -> Rows:
        at, (_, customer, date, priority, more) = self._orders.find(changed[0])
        order, number, revenue, diff = (column[at] for column in changed)
        diff = diff * more
        at, (_, more) = self._customers.find(customer)
        return _view_rows(order[at], number[at], date[at], priority[at], revenue[at], diff[at] * more)

    def _changed_groups(self, rows: Rows) -> Rows:
        _, date, priority, revenue, order, diff = rows
        more = _summed((order, date * diff, priority * diff, revenue * diff, diff))
        at, found = self._kept.find(more[0])
        before = [np.zeros(len(more[0]), np.int64) for _ in more[1:]]
        for total, column in zip(before, found[1:], strict=True):
            np.add.at(total, at, column)
        after = [total + column for total, column in zip(before, more[1:], strict=True)]
        self._kept.add(more)
        sides = []
        for (date, priority, revenue, count), diff in ((before, -1), (after, +1)):
            there = np.flatnonzero(count > 0)
            values = (more[0], date // np.maximum(count, 1), priority // np.maximum(count, 1), revenue)
            sides.append((*(column[there] for column in values), np.full(len(there), diff)))
        return _joined(sides)


def _wanted(rows: Rows, name: str) -> Rows:
    """What the view's filters let through, without the columns that only they read."""
    if name == "customer":
        customer, segment, diff = rows
        return tuple(column[segment == BUILDING] for column in (customer, diff))
    if name == "orders":
        return tuple(column[rows[2] < DAY] for column in rows)
    order, number, price, discount, shipped, diff = rows
    return tuple(column[shipped > DAY] for column in (order, number, price * (100 - discount), diff))


def _by_customer(orders: Rows) -> Rows:
    order, customer, *rest = orders
    return (customer, order, *rest)


def _view_rows(order: Ints, number: Ints, date: Ints, priority: Ints, revenue: Ints, diff: Ints) -> Rows:
    return (order << LINES | number, date, priority, revenue, order, diff)


def _joined(parts: list[Rows]) -> Rows:
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _sorted(rows: Rows) -> Rows:
    order = np.argsort(rows[0], kind="stable")  # merges what is sorted already
    return tuple(column[order] for column in rows)


def _summed(rows: Rows) -> Rows:
    """One row for each key, with the sum of each other column."""
    rows = _sorted(rows)
    starts = np.flatnonzero(np.diff(rows[0], prepend=-1))
    if not len(starts):
        return rows
    return (rows[0][starts], *(np.add.reduceat(column, starts) for column in rows[1:]))


def _consolidated(rows: Rows) -> Rows:
    """Add up the diffs of equal rows, and leave out those that add up to zero. Few keys have several rows."""
    rows = _sorted(rows)
    equal = rows[0][1:] == rows[0][:-1]
    if not equal.any():
        return rows
    several = np.append(equal, False) | np.append(False, equal)
    some = tuple(column[several] for column in rows)
    order = np.lexsort(some[-2::-1])
    some = tuple(column[order] for column in some)
    starts = np.flatnonzero(np.append(True, np.any([column[1:] != column[:-1] for column in some[:-1]], axis=0)))
    diff = np.add.reduceat(some[-1], starts)
    left = starts[diff != 0]
    netted = (*(column[left] for column in some[:-1]), diff[diff != 0])
    return _joined([tuple(column[~several] for column in rows), netted])
