"""A reduce inside a loop: at each round it looks again at the groups that may differ there.

Loop law. A time is `(batch time, round, ...)`, with one round for each loop around. A group touched at `a` that has
history at `b` is looked at again at `max(a, b)`, coordinate by coordinate. At each such time: `output diff = f(input at
or below) - output at or below`.

A round takes all batch times together. What was made of a group in rounds before is in the output, so what the function
gives now is compared with the sum of the output's rows. Sums are linear: what the output's rows keep, each as often as
it counts, adds up to what all updates before have added. So for sums the input need not be kept.

A group that fails is an error in its round. The error stays for later rounds, whatever becomes of the group there: its
code has the round, so what later rounds take away is another error. `failures` has the law.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from halfjoin.engine.join.closing import RunsOf
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.loop.first import FirstRow
from halfjoin.engine.reduce.aggregates import aggregated
from halfjoin.engine.reduce.contents import Contents, contents_of
from halfjoin.engine.reduce.flow import columns_read
from halfjoin.engine.reduce.law import Moments, moments_of
from halfjoin.engine.reduce.lifted import Lifted, lift, sums_of
from halfjoin.engine.reduce.lookup import GROUP, group_of, lookup_of, stream_of
from halfjoin.engine.reduce.own import answers
from halfjoin.engine.reduce.shown import of_top, of_windows
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.lattice import below, ints, looked_at
from halfjoin.engine.updates.updates import MINIMUM, Ints, Mask, Updates, concat, constant, empty, indices_of
from halfjoin.planner.group_functions import Aggregates, Own, Top, Windows
from halfjoin.planner.plan import Reduce, Version, round_names
from halfjoin.sql.types import BIGINT

Round: TypeAlias = tuple[int, ...]  # of each loop around, the outermost first


class RoundReduce:
    """An executable reduce of a loop."""

    def __init__(self, plan: Reduce, registry: Registry, name: str) -> None:
        self.plan, self.registry, self.name = plan, registry, name
        self.loop = plan.loop
        self.schema = {column.name: arrow_type(column.type) for column in plan.columns}
        self.reads = self.asked = frozenset(plan.collections)
        self._keys = [key.name for key in plan.keys]
        self.always = not plan.keys and isinstance(plan.function, Aggregates)
        assert plan.state is not None  # inside a loop it always asks
        self._kept = lookup_of(plan.state, plan.keys, self.schema, Version.AFTER, registry)
        self.rounds = round_names(len(plan.loops))
        own = columns_read(replace(plan, columns=plan.columns[: -len(self.rounds)]))
        self._types = {column.name: arrow_type(column.type) for column in (*plan.keys, *own)}
        self.types = {**self._types, **dict.fromkeys(self.rounds, pa.int64())}
        self._rows = None if plan.groups is None else lookup_of(
            plan.groups, plan.keys, [*self.types], Version.AFTER, registry)  # fmt: skip
        self._first = FirstRow.of(plan, registry) if len(self.rounds) == 1 else None

    def round(
        self, updates: Updates, again: Updates, lookup: RunsOf, round: Round, before: int, *, failing: bool
    ) -> tuple[Updates, Updates, Updates]:  # fmt: skip
        """The output and the errors of a round, given the input's updates in it and the groups to look at again, with
        their times; and the groups to look at again in later rounds, with their times and rounds.

        Times below `before` are closed, and not told apart. `failing`: whether some group has failed before.
        """
        keys = concat([Updates({n: updates.columns[n] for n in self._keys}, updates.time, updates.diff),
                       again.select(self._keys)])  # fmt: skip
        touched = moments_of(keys, self._keys)
        if not failing and (together := self._together(touched, lookup, round, before)) is not None:
            return together
        every, rows = self._history(touched, lookup, before)
        groups, times, rounds = self._looked_at(touched, every, rows, round, before)
        now = below(rounds, _one(round))  # none of them is before it
        here = _moments(touched, groups[now], times[now])
        due = _moments(touched, groups[~now], times[~now])
        due = due.with_columns({n: pa.array(one[~now]) for n, one in zip(self.rounds, rounds, strict=True)})
        was = every.filter(self._reached(every, round))
        placed = Updates(was.columns, _placed(was, groups[now], times[now]), was.diff)
        made, failed = self._made(updates, here, groups[now], placed, rows, round)
        if failing or len(failed):
            failed = self._failures(updates, here, groups[now], every, rows, round)
        out = [name for name in self.schema if name not in self.rounds]
        old = Updates({name: placed.columns[name] for name in out}, placed.time, -placed.diff)
        changed = consolidate(concat([made.select(out), old]))
        own = {name: pa.array(constant(one, len(changed))) for name, one in zip(self.rounds, round, strict=True)}
        return changed.with_columns(own), failed, due

    def _together(
        self, touched: Moments, lookup: RunsOf, round: Round, before: int
    ) -> tuple[Updates, Updates, Updates] | None:
        """The same for first rows, in all rounds at once; None if that does not suit."""
        if self._first is None:
            return None
        output, input = (lookup(name, Version.AFTER) for name in (self.plan.output, self.plan.input))
        found = self._first.round(touched, output, input, round[0], before)
        return None if found is None else (found[0], empty(ERROR_SCHEMA), found[1])

    def _history(self, touched: Moments, lookup: RunsOf, before: int) -> tuple[Updates, Updates | None]:
        """The rows of the touched groups in the output, and in the input; None: there are none, or none are needed."""
        stream = stream_of(touched)
        none = empty({**self.schema, GROUP: pa.int64()})
        was = concat([none, *self._kept(stream, lookup(self.plan.output, Version.AFTER), before)])
        if self._rows is None:
            return was, None
        found = list(self._rows(stream, lookup(self.plan.input, Version.AFTER), before))
        return was, concat(found) if found else None

    def _looked_at(
        self, touched: Moments, was: Updates, rows: Updates | None, round: Round, before: int
    ) -> tuple[Ints, Ints, list[Ints]]:
        """The groups to look at, with their times and rounds."""
        history = [part for part in (was, rows) if part is not None and len(part)]
        real = ~touched.was
        groups, (times, *rounds) = looked_at(
            (touched.group[real], [touched.time[real], *(constant(one, int(real.sum())) for one in round)]),
            (_joined([group_of(part) for part in history]),
             [_joined([_since(part.time, before) for part in history]),
              *(_joined([ints(part, name) for part in history]) for name in self.rounds)]),
        )  # fmt: skip
        return groups, times, rounds

    def _failures(
        self, updates: Updates, here: Updates, groups: Ints, was: Updates, rows: Updates | None, round: Round
    ) -> Updates:
        """The errors of groups that are looked at in a round.

        Let `E` be the errors of the groups with what is at or below a time. What the round adds is the difference of
        `E` in all coordinates. In batch times it begins with what was there before the groups were looked at.
        """
        opens = np.append(True, groups[1:] != groups[:-1])
        first = here.time[opens]  # of each group
        earlier = Updates({n: a.filter(pa.array(opens)) for n, a in here.columns.items()},
                          np.maximum(first, MINIMUM + 1) - 1, here.diff[opens])  # fmt: skip
        both = concat([earlier, here])
        order = np.lexsort((both.time, np.concatenate([np.arange(len(first)), groups])))
        both, each = both.take(order), np.concatenate([np.arange(len(first)), groups])[order]
        found, nothing = list[Updates](), updates.slice(0, 0)
        for last, sign in _corners(round):
            new = updates if last == round else nothing
            old = was.filter(self._reached(was, last))
            placed = Updates(old.columns, _placed(old, each, both.time), old.diff)
            found.append(_weighed(self._made(new, both, each, placed, rows, last)[1], sign))
            before, known = old.filter(old.time < first[group_of(old)]), rows
            if rows is not None:
                known = rows.filter(rows.time < first[group_of(rows)])
            placed = Updates(before.columns, earlier.time[group_of(before)], before.diff)
            found.append(_weighed(self._made(nothing, earlier, np.arange(len(first)), placed, known, last)[1], -sign))
        failed = consolidate(concat(found))
        rounds = [pa.array(constant(one, len(failed))) for one in round]
        code = codes([failed.columns["code"], *rounds], len(failed))
        return failed.with_columns({"code": pa.array(code)})

    def nothing(self) -> Updates:
        """No updates of the input."""
        return empty(self.types)

    def _reached(self, rows: Updates, round: Round) -> Mask:
        """The rows of this round and of those below it."""
        return below([ints(rows, name) for name in self.rounds], _one(round))

    def _made(
        self, updates: Updates, here: Updates, groups: Ints, was: Updates, rows: Updates | None, round: Round
    ) -> tuple[Updates, Updates]:
        """What the function makes of the groups at these times, and their errors, as if nothing had been there.

        `groups`: of `here`, by the numbers that `was` and `rows` have. The moments number the groups anew, and not in
        the same order: keys that are texts or NULL have no order but that in which they come.
        """
        function = self.plan.function
        if isinstance(function, Aggregates):
            lifted = self._lifted(function, updates, here, was)
            moments = moments_of(lifted.rows, self._keys)
        else:
            lifted, moments = None, moments_of(here, self._keys)
        contents: Contents | None = None
        if self.plan.groups is not None:
            found = self.nothing() if rows is None else rows
            seen = np.ones(len(found), np.bool_) if rows is None else self._reached(found, round)
            numbers = np.empty(moments.groups, np.int64)
            numbers[groups] = moments.group_of_rows[: len(here)]
            group = np.zeros(0, np.int64) if rows is None else numbers[group_of(found)[seen]]
            contents = contents_of(moments, found.select(self._types).filter(seen), group, MINIMUM)
        match function:
            case Aggregates():
                each = [contents] * len(function.ordered) if contents is not None else []
                made, failed = aggregated(function, lifted, moments, None, each, self.registry)
            case Windows():
                assert contents is not None
                made, failed = of_windows(function, contents, self.registry, whole=False), empty(ERROR_SCHEMA)
            case Top():
                assert contents is not None
                made, failed = of_top(function, contents), empty(ERROR_SCHEMA)
            case Own():
                assert contents is not None
                given = answers(function, contents, None, self.registry)
                made, failed = moments.changes(given.columns, given.time, given.diff), empty(ERROR_SCHEMA)
        return made, failed if contents is None else consolidate(concat([failed, contents.errors()]))

    def _lifted(self, function: Aggregates, updates: Updates, here: Updates, was: Updates) -> Lifted:
        """What the sums are made of: nothing at each time, what is there, and what the round adds."""
        own = lift(function, self._keys, updates)
        totals = []
        for number, part in enumerate(sums_of(function)):
            kept = was.columns[part.column.name]
            type = pa.int64() if part.column.type == BIGINT else pa.binary()
            totals.append(Totals.concat([
                Totals.read(part.kind, pa.nulls(len(here), type)),
                Totals.read(part.kind, kept).weighted(was.diff),
                own.totals[number],
            ]))  # fmt: skip
        rows = concat([here.select(self._keys), was.select(self._keys), own.rows])
        return Lifted(Updates(rows.columns, rows.time, constant(1, len(rows))), tuple(totals))


def _corners(round: Round) -> Iterator[tuple[Round, int]]:
    """The rounds that a difference in all coordinates adds up, and with which signs.

    >>> list(_corners((5, 2)))
    [((5, 2), 1), ((5, 1), -1), ((4, 2), -1), ((4, 1), 1)]
    """
    for back in product((0, 1), repeat=len(round)):
        yield tuple(one - less for one, less in zip(round, back, strict=True)), (-1) ** sum(back)


def _weighed(updates: Updates, sign: int) -> Updates:
    return Updates(updates.columns, updates.time, updates.diff * sign)


def _moments(touched: Moments, groups: Ints, times: Ints) -> Updates:
    """The keys of groups at times."""
    columns = {name: array.take(indices_of(groups)) for name, array in touched.keys.items()}
    return Updates(columns, times, constant(1, len(groups)))


def _one(round: Round) -> list[Ints]:
    return [constant(one, 1) for one in round]


def _since(time: Ints, before: int) -> Ints:
    return time if before == MINIMUM else np.maximum(time, before - 1)


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _placed(rows: Updates, groups: Ints, times: Ints) -> Ints:
    """For each row the first time, of those at which its group is looked at, that is not before the row's."""
    if not len(rows):
        return rows.time
    known = np.unique(np.concatenate([times, rows.time]))
    places = groups * len(known) + known.searchsorted(times)
    own = group_of(rows) * len(known) + known.searchsorted(rows.time)
    return times[places.searchsorted(own)]
