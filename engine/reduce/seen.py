"""What a reduce sees of its groups: all their rows, or no more than the first rows, or the rows around a place.

Min, max and LIMIT need the first rows of a group, and the output tells which those were. `any_value` with an ORDER BY
needs the first row; the output does not keep the columns that order it, so the first rows are read. A percentile needs
the rows around a place, which is near the value that the output has. So a batch reads about as many rows as it takes of
them, and not the group. The functions of whole groups see the whole groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.order import OrderKey
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.join.closing import Closing
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce.around import Place, around
from halfjoin.engine.reduce.contents import Contents, contents_of
from halfjoin.engine.reduce.front import Front, Known, Wanted, front_of
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.reading import Reader, Reading
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.values import valid
from halfjoin.engine.updates.updates import (
    MINIMUM,
    Ints,
    Mask,
    Updates,
    concat,
    constant,
    gather,
    indices_of,
    where_true,
)
from halfjoin.planner.group_functions import Aggregates, Ordered, Top
from halfjoin.planner.plan import Reduce
from halfjoin.sql.expr import Column, columns_of
from halfjoin.sql.relation import SortKey

MOST_FIRST = 1 << 16  # first rows; of more, all rows are looked up


@dataclass(frozen=True, eq=False, slots=True)
class Seen:
    """The columns `names` of the groups' rows. `reader`: reads the rows that are `wanted`; None: all are. `checked`: as
    in the plan."""

    names: Sequence[str]
    wanted: Wanted | Place | None = None
    reader: Reader | None = None
    checked: bool = False

    def front(
        self, moments: Moments, updates: Updates, known: Known, runs: Sequence[Part], closing: Closing,
        opening: Mask | None = None,
    ) -> Front:  # fmt: skip
        """The first rows of the groups, and which groups must be looked up. `opening`: as in `front_of`."""
        assert isinstance(self.wanted, Wanted)
        readable, group = self._readable(moments, runs, closing), moments.group_of_rows
        updates = updates.select(known.rows.columns)
        found = front_of(
            self.wanted, known, updates, group, readable, closing.before, checked=self.checked, opening=opening)
        return self._keyed(moments, found)

    def front_of_value(
        self, moments: Moments, updates: Updates, values: pa.Array, runs: Sequence[Part], closing: Closing
    ) -> Front:
        """The rows that decide on a value, and which groups must be looked up. `values`: as kept, of each group."""
        if isinstance(self.wanted, Wanted):
            return self.front(moments, updates, self._known(values, updates), runs, closing, moments.opening_rows)
        assert self.wanted is not None  # not all rows are wanted
        readable = self._readable(moments, runs, closing)
        return self._keyed(moments, around(
            self.wanted, values, moments, updates, readable, closing.before, checked=self.checked))

    def _readable(
        self, moments: Moments, runs: Sequence[Part], closing: Closing
    ) -> Callable[[], Reading | None]:
        assert self.reader is not None  # not all rows are wanted
        return partial(self.reader.reading, list(moments.keys.values()), moments.groups, runs, closing.netted)

    def _keyed(self, moments: Moments, found: Front) -> Front:
        """The rows with the keys of their groups."""
        indices = indices_of(found.group)
        keys = {name: gather(array, indices) for name, array in moments.keys.items()}
        rows = Updates({**keys, **found.rows.columns}, found.rows.time, found.rows.diff).select(self.names)
        return Front(rows, found.group, found.plain, found.begun, found.ordered)

    def nothing(self, moments: Moments, updates: Updates) -> Front:
        """No rows: all groups must be looked up."""
        return Front(updates.select(self.names).slice(0, 0), np.zeros(0, np.int64), np.ones(moments.groups, np.bool_))

    def contents(
        self, moments: Moments, front: Front | None, rows: Updates | None, group: Ints, before: int
    ) -> Contents:
        """The contents at the moments: of plain groups, all of their `rows` that count; of others, the first rows.

        `group`: the group of each of `rows`. There are none if no group is plain.
        """
        wanted = self.wanted if isinstance(self.wanted, Wanted) else None
        if rows is None:
            assert front is not None  # otherwise the rows are all there is
            skipped = np.ones(len(front.group), np.bool_) if front.begun else None
            return contents_of(moments, front.rows, front.group, before, skipped=skipped, ordered=front.ordered,
                               wanted=wanted)  # fmt: skip
        mask = np.ones(len(rows), np.bool_) if front is None else front.plain[group]
        if self.wanted is not None and self.wanted.subject is not None:
            mask &= valid(rows.columns[self.wanted.subject])
        rows, group = rows.select(self.names).filter(mask), group[mask]
        if front is None or not len(front.rows):
            return contents_of(moments, rows, group, before, wanted=wanted)
        skipped = np.concatenate([np.full(len(front.group), front.begun), np.zeros(len(group), np.bool_)])
        rows, group = concat([front.rows, rows]), np.concatenate([front.group, group])
        return contents_of(moments, rows, group, before, skipped=skipped, wanted=wanted)

    def _known(self, values: pa.Array, updates: Updates) -> Known:
        """What the kept values tell of groups: the least ones tell the first rows. NULL: the group has no value."""
        assert isinstance(self.wanted, Wanted) and self.wanted.subject is not None and self.reader is not None
        if self.reader.key.columns != (self.wanted.subject,):  # the order has other columns, which are not kept
            nothing = updates.select(self.reader.key.columns).slice(0, 0)
            return Known(nothing, np.zeros(0, np.int64), ~valid(values), counted=True)
        there = where_true(valid(values))
        columns = {self.wanted.subject: values.take(indices_of(there)).cast(updates.columns[self.wanted.subject].type)}
        none = ~valid(values)
        return Known(Updates(columns, constant(MINIMUM, len(there)), constant(1, len(there))), there, none, False)

    def known_rows(self, rows: Updates, group: Ints, groups: int, *, offset: int) -> Known:
        """What the output tells of groups, given its rows. With an OFFSET it does not have the first rows."""
        assert isinstance(self.wanted, Wanted) and self.reader is not None
        copies = np.zeros(groups, np.int64)
        np.add.at(copies, group, rows.diff)
        rows = rows.select(self.reader.key.columns)
        if offset:
            return Known(rows.slice(0, 0), group[:0], np.zeros(groups, np.bool_), counted=True)
        return Known(rows, group, copies < self.wanted.limit, self.wanted.with_ties)


def seen_by(plan: Reduce, names: Sequence[str], registry: Registry) -> tuple[Seen, ...]:
    """What each part of a reduce's function sees: each part of an aggregate that does not add up, or the function.

    `names`: the columns that the function reads. Parts that see the same have one object.
    """
    match plan.function:
        case Aggregates(ordered=ordered) if None not in (found := [_wanted(part) for part in ordered]):
            return tuple(_of_column(plan, wanted, registry) for wanted in found if wanted is not None)
        case Aggregates(ordered=ordered):
            return (Seen(names),) * len(ordered)
        case Top(order, int() as limit, offset, with_ties) if limit + offset <= MOST_FIRST:
            return (_first(plan, names, Wanted(order, limit + offset, with_ties), registry, names),)
        case _:
            return (Seen(names),)


def _wanted(part: Ordered) -> Wanted | Place | None:
    """The rows that decide on the part's value; None: all do."""
    match part:
        case Ordered(function="min" | "max", args=(Column(name) as column, *_)):
            return Wanted((SortKey(column, descending=part.function == "max"),), 1, subject=name)
        case Ordered(function="any_value", args=(Column(name) as column,), condition=None):
            return Wanted((*part.order, SortKey(column)), 1, subject=name)
        case Ordered(function="percentile_cont" | "percentile_disc", order=(SortKey(Column(name) as column, down),)):
            if columns_of(part.args[0]):  # each group has a fraction of its own
                return None
            fraction = compile(part.args[0]).evaluate({}, 1).values[0].as_py()
            if part.condition is None and isinstance(fraction, float) and 0 <= fraction <= 1:
                return Place((SortKey(column, down),), name, part.function, fraction)
    return None


def _of_column(plan: Reduce, wanted: Wanted | Place, registry: Registry) -> Seen:
    assert wanted.subject is not None
    sorting = (key.expr.name for key in wanted.order if isinstance(key.expr, Column))
    read = dict.fromkeys([wanted.subject, *sorting])
    names = dict.fromkeys([*(key.name for key in plan.keys), *read])
    return _first(plan, list(read), wanted, registry, list(names))


def _first(
    plan: Reduce, read: Sequence[str], wanted: Wanted | Place, registry: Registry, names: Sequence[str]
) -> Seen:
    assert plan.groups is not None  # it reads groups
    key = OrderKey(plan.groups, wanted.order, tuple(read))
    return Seen(names, wanted, Reader(key, [key.name for key in plan.keys], registry), plan.checked)
