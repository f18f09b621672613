"""The executable reduce: it takes a batch's closing updates, or a whole history, to updates of its output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.run import Part, present
from halfjoin.engine.join.dataflow import Closing, RunsOf
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce import top, windows
from halfjoin.engine.reduce.aggregates import aggregated
from halfjoin.engine.reduce.contents import Contents, contents_of
from halfjoin.engine.reduce.law import Moments, moments_of
from halfjoin.engine.reduce.lifted import Lifted, lift, lift_all
from halfjoin.engine.reduce.lookup import group_of, lookup_of, stream_of
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import MINIMUM, Updates, concat, empty
from halfjoin.planner.plan import Aggregates, Reduce, Top, Version, Windows
from halfjoin.sql.expr import Column


class ReduceFlow:
    """An executable reduce. It keeps nothing between batches: what it keeps is its output and its input.

    The interface is that of `join.dataflow.Dataflow`.
    """

    def __init__(self, plan: Reduce, registry: Registry, name: str) -> None:
        self.plan, self.registry, self.name = plan, registry, name
        self.schema = {column.name: arrow_type(column.type) for column in plan.columns}
        self.reads = self.asked = frozenset(plan.collections)
        self._keys = [key.name for key in plan.keys]
        self._names = list(dict.fromkeys([*self._keys, *_columns_read(plan)]))
        self._kept = None if plan.state is None else lookup_of(
            plan.state, plan.keys, self.schema, Version.BEFORE, registry)  # fmt: skip
        self._rows = None if plan.groups is None else lookup_of(
            plan.groups, plan.keys, self._names, Version.AFTER, registry)  # fmt: skip

    def changes(self, staged: Mapping[str, Part], lookup: RunsOf, closing: Closing) -> tuple[Updates, Updates]:
        """The output and error updates at the times that a batch closes, both consolidated."""
        updates = closing.updates(self.plan.input)
        if not len(updates):
            return empty(self.schema), empty(ERROR_SCHEMA)
        moments = moments_of(updates, self._keys)
        stream, kept, contents = stream_of(moments), None, None
        if self._kept is not None:
            found = list(self._kept(stream, lookup(self.plan.output, Version.BEFORE), closing.netted))
            kept = _by_group(found, moments, self.schema)
        if self._rows is not None:
            rows = concat(list(self._rows(stream, lookup(self.plan.input, Version.AFTER), closing.netted)))
            rows = rows.filter(rows.time < closing.after)
            contents = contents_of(moments, rows.select(self._names), group_of(rows), closing.before)
        return self._made(self._lifted(updates), moments, kept, contents)

    def fill(
        self, lookup: RunsOf, upper: int, closed: int = MINIMUM, *, gathered: bool = False
    ) -> Iterator[tuple[Updates, Updates]]:
        """The output and error updates of the whole history below `upper`, in one part. Updates below `closed` may be
        added up; then their times are not told apart. `gathered`: the caller adds up equal updates."""
        always = not self._keys and isinstance(self.plan.function, Aggregates)
        lifted, contents = None, None
        pieces = self._history(lookup, upper, closed)
        if self._rows is None and isinstance(self.plan.function, Aggregates):
            lifted = lift_all(self.plan.function, self._keys, pieces)
            updates = empty(dict.fromkeys(self._keys, pa.null())) if lifted is None else lifted.rows
            moments = moments_of(updates, self._keys, always=always)
        else:
            updates = concat(list(pieces) or [empty(dict.fromkeys(self._names, pa.null()))])
            moments = moments_of(updates, self._keys, always=always)
            lifted = self._lifted(updates)
            contents = contents_of(moments, updates, moments.group_of_rows(len(updates)), MINIMUM)
        if len(moments):
            yield self._made(lifted, moments, None, contents, gathered=gathered)
        else:
            yield empty(self.schema), empty(ERROR_SCHEMA)

    def _history(self, lookup: RunsOf, upper: int, closed: int) -> Iterator[Updates]:
        """The input's updates below `upper`, one piece at a time."""
        for piece in present(lookup(self.plan.input, Version.AFTER), closed, self._names):
            part = piece.select(self._names).filter(piece.time < upper)
            if len(part):
                yield part.not_before(closed - 1) if closed > MINIMUM else part

    def _lifted(self, updates: Updates) -> Lifted | None:
        """What updates add to sums, if this reduce keeps sums."""
        function = self.plan.function
        return lift(function, self._keys, updates) if isinstance(function, Aggregates) and len(updates) else None

    def _made(
        self, lifted: Lifted | None, moments: Moments, kept: Mapping[str, pa.Array] | None, contents: Contents | None,
        *, gathered: bool = False,
    ) -> tuple[Updates, Updates]:
        """The output and error updates of groups at their moments."""
        if isinstance(self.plan.function, Aggregates):
            made = aggregated(self.plan.function, lifted, moments, kept, contents)
            errors = empty(ERROR_SCHEMA) if contents is None else contents.errors()
            return made.select(self.schema), errors
        assert contents is not None  # windows and top-k need the rows of groups
        match self.plan.function:
            case Windows() as function:
                found = contents.evaluated(partial(windows.evaluate, function))
                columns, moment, count = found.columns, found.numbers, found.count
            case Top() as function:
                positions, count = top.evaluate(function, contents.groups)
                columns, moment = contents.rows.take(positions).columns, contents.moment[positions]
        made = moments.changes(columns, moment, count, distinct=gathered)
        return made.select(self.schema), contents.errors()


def _columns_read(plan: Reduce) -> list[str]:
    """The columns of the input that the function reads, in the order that breaks ties."""
    match plan.function:
        case Aggregates(_, sums, ordered):
            args = [*(arg for part in sums for arg in part.args), *(arg for part in ordered for arg in part.args)]
            keys = [key.expr for part in ordered for key in part.order]
            conditions = [part.condition for part in ordered if part.condition is not None]
            return [column.name for column in (*args, *keys, *conditions) if isinstance(column, Column)]
        case Windows(_, calls):
            return [column.name for column in plan.columns[: len(plan.columns) - len(calls)]]
        case Top():
            return [column.name for column in plan.columns]


def _by_group(found: Sequence[Updates], moments: Moments, schema: Mapping[str, pa.DataType]) -> dict[str, pa.Array]:
    """The columns kept for each group, NULL where nothing is kept."""
    if not found:
        return {name: pa.nulls(moments.groups, type) for name, type in schema.items()}
    rows = consolidate(concat(found), by_time=False)
    places = np.full(moments.groups, -1)
    places[group_of(rows)] = np.arange(len(rows))
    indices = pa.array(places, mask=places < 0)
    return {name: rows.columns[name].take(indices) for name in schema}
