"""The rows of groups at each of their moments, side by side: what the functions of whole groups see.

A row with a negative count has no meaning for such a function. It is an error of the reduce at each moment at which it
is there, and the function does not see it. A group for which the function fails is an error at its moment, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.linear.failures import NO_ERRORS, of_rows
from halfjoin.engine.reduce.front import Wanted
from halfjoin.engine.reduce.groups import Groups, starts_of
from halfjoin.engine.reduce.lasting import Lasting, lasting
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.thinned import is_worth, thinned
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.consolidate import cancel, consolidate
from halfjoin.engine.updates.radix import argsort, of_integers
from halfjoin.engine.updates.updates import (
    MINIMUM,
    Ints,
    Mask,
    Updates,
    chained,
    concat,
    constant,
    indices_of,
    where_true,
)

_MOMENT = "#moment"  # no SQL column has this name
_NEGATIVE = "a row with a negative count has no place in an order, a window or the rows of a function of groups"
Made = TypeVar("Made")


@dataclass
class Contents:
    """The rows of groups at their moments, in order of the moments; `rows.diff` counts copies. Equal rows may be apart.
    `negative`: the moments of rows with negative counts. `ordered`: as in `Groups`. `lasting`: the moments at which
    each of the `rows` is there, if these are too many for one list; then `moment` is empty.
    """

    moments: Moments
    rows: Updates
    moment: Ints
    negative: Ints
    failed: list[Updates] = field(default_factory=list)
    ordered: bool = False
    lasting: Lasting | None = None

    @property
    def groups(self) -> Groups:
        """The rows as groups, one for each moment; a group may be empty."""
        if self.lasting is not None:
            return self._between(self.lasting, 0, len(self.moments)).groups
        starts = starts_of(self.moment, len(self.moments))
        return Groups(self.rows.columns, self.rows.diff, starts, self.ordered)

    @property
    def sizes(self) -> Ints:
        """The number of rows at each moment."""
        if self.lasting is not None:
            return self.lasting.sizes(len(self.moments))
        return np.bincount(self.moment, minlength=len(self.moments))

    def pieces(self) -> Iterator[tuple[Contents, bool]]:
        """The contents, a piece of bounded size at a time. A piece that goes on with a group begins with the moment
        before (True), so that it has all changes at its other moments."""
        if self.lasting is None:
            yield self, False
            return
        for first, after in self.lasting.pieces(self.moments):
            goes_on = not self.moments.was[first]
            one = self._between(self.lasting, first - goes_on, after)
            yield one, goes_on
            self.failed += one.failed

    def _between(self, lasting: Lasting, first: int, after: int) -> Contents:
        """The contents from one moment on, before another."""
        which, moment, count = lasting.at(self.moments, first, after)
        rows = self.rows.take(which)
        return Contents(self.moments.part(first, after), Updates(rows.columns, rows.time, count), moment - first,
                        moment[:0], ordered=self.ordered)  # fmt: skip

    def values(self, function: Callable[[Groups], pa.Array]) -> pa.Array:
        """The values of a function at the moments, as `evaluated`.

        Raises:
            DataError: they do not fit into one array.
        """
        if self.lasting is None:
            return self.evaluated(function)
        return chained(one.evaluated(function)[int(goes_on) :] for one, goes_on in self.pieces())

    def evaluated(self, function: Callable[[Groups], Made]) -> Made:
        """A function of the groups. Groups for which it fails become errors, and empty."""
        groups = self.groups
        while True:
            try:
                return function(groups)
            except Failed as problem:
                failures = problem.failures(len(groups)).only(np.diff(groups.starts) > 0)
                if failures is None:
                    raise
                self.report(failures.rows, failures.messages)
                failing = np.zeros(len(groups), np.bool_)
                failing[failures.rows] = True
                groups = groups.where(~failing[groups.numbers])

    def report(self, moment: Ints, messages: NDArray[Any], names: Mapping[str, str] | None = None) -> None:
        """Note an error of the groups at these moments. `names`: of keys that have other names for people."""
        self.failed.append(of_groups(self.moments, moment, messages, names))

    def errors(self) -> Updates:
        """The updates of all errors, consolidated."""
        return consolidate(concat(self.failed)) if self.failed else NO_ERRORS


def of_groups(
    moments: Moments, moment: Ints, messages: str | NDArray[Any], names: Mapping[str, str] | None = None
) -> Updates:
    """The updates of errors of the groups at these moments. An error names the keys of the group."""
    names, group = names or {}, indices_of(moments.group[moment])
    keys = {names.get(name, name): array.take(group) for name, array in moments.keys.items()}
    failing = Updates(keys or {"group": pa.array(["all rows"] * len(moment))}, moment, constant(1, len(moment)))
    told = of_rows(failing, messages)
    return moments.changes(told.columns, moment, told.diff)


def contents_of(
    moments: Moments, rows: Updates, group: Ints, before: int, *, skipped: Mask | None = None, ordered: bool = False,
    wanted: Wanted | None = None,
) -> Contents:  # fmt: skip
    """The contents of groups at their moments, given all rows of the groups at closed times, and each row's group.

    Times below `before` were closed before these moments. `skipped`: the rows that do not show at the first moment of
    their group, which is what the group was. `ordered`: the rows of each group are in the function's order. `wanted`:
    the first rows are enough.
    """
    opens, which = where_true(moments.was), None
    ends = np.empty_like(opens)
    ends[:-1], ends[-1:] = opens[1:], len(moments)
    none_was = before == MINIMUM if skipped is None else bool(skipped.all())
    if none_was and len(moments) == 2 * len(opens) + moments.begins:
        moment = (ends - 1)[group]  # each group has one moment with updates, its last one
    else:
        first = opens[group] if skipped is None else opens[group] + skipped
        counts = ends[group] - first
        if is_worth(counts):
            starts = _starts(moments, opens, rows, group, before, skipped)
            shows = starts < ends[group]  # of others, all copies cancel
            given = rows.filter(shows), group[shows], starts[shows]
            if wanted is None:
                long = lasting(moments, *given)
                if long is not None:
                    none = starts[:0]
                    return Contents(moments, given[0], none, none, ordered=ordered, lasting=long)
            else:
                few = thinned(wanted, moments, *given)
                if few is not None:
                    found = given[0].take(few.which)
                    found = Updates(found.columns, found.time, few.count)
                    return Contents(moments, found, few.moment, few.moment[:0])
        which = np.arange(len(rows)).repeat(counts)
        moment = np.arange(len(which)) + (first - (counts.cumsum() - counts)).repeat(counts)
        time = rows.time[which]
        there = np.where(moments.was[moment], time < before, time <= moments.time[moment])
        which, moment = which[there], moment[there]
    if bool((moment[1:] < moment[:-1]).any()):
        by_moment = argsort([of_integers(moment)], len(moment))
        which, moment = by_moment if which is None else which[by_moment], moment[by_moment]
    found = rows if which is None else rows.take(which)
    if bool((found.diff > 0).all()):
        return Contents(moments, found, moment, moment[:0], ordered=ordered)
    if bool((found.diff < 0).any()):
        found = cancel(found.with_columns({_MOMENT: pa.array(moment)}), by_time=False)  # the order stays
        moment = found.columns[_MOMENT].to_numpy()
        found = found.select(rows.columns)
    positive = where_true(found.diff > 0)
    negative = where_true(found.diff < 0)
    contents = Contents(moments, found.take(positive), moment[positive], moment[negative], ordered=ordered)
    if len(negative):
        told = of_rows(found.take(negative), _NEGATIVE)
        contents.failed.append(moments.changes(told.columns, moment[negative], -told.diff))
    return contents


def _starts(moments: Moments, opens: Ints, rows: Updates, group: Ints, before: int, skipped: Mask | None) -> Ints:
    """The moment from which on each row shows."""
    times = np.unique(moments.time)
    shown = moments.group * len(times) + times.searchsorted(moments.time)  # ascending
    found = shown.searchsorted(group * len(times) + times.searchsorted(rows.time))
    late = rows.time >= before
    earliest = opens[group] + (late if skipped is None else late | skipped)
    return np.where(late, np.maximum(found, earliest), earliest)
