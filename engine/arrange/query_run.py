"""A large run as one query sees it: it has indexes of the rows that the query asks for, and passes over the others.

To sort all rows for a query that asks for a few of them, or reads one block in a hundred, costs more than the query.
What is found for it is forgotten with it; the run's own indexes, and the ends of its blocks, serve all queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange import blocks
from halfjoin.engine.arrange.index import KeyColumns, index_of
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.kernels import indexing
from halfjoin.engine.scalar.ends import Ends, Sieve
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.updates import Ints
from halfjoin.planner.plan import ArrangementKey

_LARGE = 1 << 14  # rows; an index of fewer is there at once
_LEFT = 4 / 3  # rows for each that a sieve leaves, at least
_SHARE = 8  # so much of the work to sort all rows is to find those with some keys
_PASSES = 3  # over all rows cost as much as to sort them
_COMPARED = 1 << 14  # codes
_ASKED = 2  # one key for so many rows is asked for at most, or all of them are sorted


class Asked(NamedTuple):
    """What a query has asked an arrangement that is not there: `work` is how many rows could have been sorted in the
    time. `codes`, `found`: what it asked last, and the run that has an index of these rows."""

    work: int
    codes: Ints
    found: Run | None  # None: nothing was asked


_NEVER = Asked(0, np.zeros(0, np.int64), None)


@dataclass(slots=True)
class QueryRun(Run):
    """A run that counts what a query asks. `asked` knows it by arrangement (None: too much for indexes of some rows);
    `parts` are the stretches that the query has read; `passes` counts how often all rows were grouped by keys."""

    asked: dict[ArrangementKey, Asked | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    parts: dict[tuple[int, int], Run] = field(default_factory=dict, init=False, repr=False, compare=False)
    passes: dict[ArrangementKey, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def apart(self) -> Run:
        """As of a run. Nothing is asked of it for a query."""
        return Run(**_fields(self)).apart()

    def lacks(self, key: ArrangementKey) -> bool:
        """Whether the query would have to make the index of an arrangement."""
        return key not in self.indexes

    def grouped_for(self, key: ArrangementKey) -> bool:
        """Whether the query may pass over all rows in place of an index that is not there. After a few times it is to
        make the index."""
        times = self.passes.get(key, 0)
        self.passes[key] = times + 1
        return key not in self.indexes and times < _PASSES

    def among(self, key: ArrangementKey, columns: KeyColumns, keys: list[pa.Array]) -> Run:
        """The same run, for a lookup of these keys. If a query asks for some of the rows of an arrangement that is not
        there, it has an index of these rows alone: to find them costs less than to sort all rows. A query that asks for
        most of them, or again and again, has the whole index."""
        if key in self.indexes or not keys or len(keys[0]) * _ASKED > len(self):
            return self
        before = self.asked.get(key, _NEVER)
        if before is None:
            return self
        wanted = codes(keys, len(keys[0]))
        if before.found is not None and _are_among(wanted, before.codes):  # as parts that are alike ask
            return before.found
        left = len(self) - before.work  # of the work in which all rows are sorted
        arrays, rows = columns(self.updates) if left > 0 else ([], None)
        most = min(left, len(self) // 2)
        made = indexing.indexed(arrays, len(self), wanted, most) if arrays and rows is None else None
        if made is None:
            self.asked[key] = None
            return self
        found, other = index_of(*made, is_exact(arrays)), self.apart()
        self.asked[key] = Asked(before.work + len(self) // _SHARE + len(found), wanted, other)
        if self.net is not None and self.net.there is not None:
            found, other.gone[key] = found.split(self.net.there)
        other.indexes[key] = found
        return other

    def stretches(self, sieve: Sieve) -> Sequence[tuple[int, int, Run]] | None:
        """Where the rows that may pass begin and end, and a run of these rows. None: they are most of them."""
        if len(self) < blocks.FEW:
            return None
        mask = sieve(self.ends_of)
        if mask is None or np.count_nonzero(mask) * _LEFT > len(mask):
            return None
        return [(start, stop, self._part(start, stop)) for start, stop in blocks.stretches(mask, len(self))]

    def sifted(self, sieve: Sieve) -> Sequence[Run]:
        """The same run without rows that do not pass, if that leaves many out; some that do not are still there."""
        found = self.stretches(sieve)
        return (self,) if found is None else [run for _, _, run in found]

    def _part(self, start: int, stop: int) -> Run:
        """A stretch of the rows. Whoever asks again gets the same, with its indexes."""
        found = self.parts.get((start, stop))
        if found is None:
            net = None if self.net is None else self.net.part(start, stop)
            found = self.parts[start, stop] = QueryRun(self.updates.slice(start, stop), net=net)
        return found

    def ends_of(self, column: str) -> Ends | None:
        """The ends of a column's blocks. They are found once for all queries."""
        if column not in self.ends:
            self.ends[column] = blocks.ends_of(self.updates.columns[column])
        return self.ends[column]


def _are_among(some: Ints, known: Ints) -> bool:
    """Whether all codes are known, as far as it costs less to find that out than to find the rows that have them."""
    if np.array_equal(some, known):
        return True
    return len(some) <= len(known) <= _COMPARED and bool(np.isin(some, known).all())


def of_query(run: Run) -> Run:
    """A run for one query. If an index lacks rows, one that the query builds instead is the query's own."""
    lacking = any(index.partial is not None for index in run.indexes.values())
    if len(run) < _LARGE:
        return run.apart() if lacking else run
    made = QueryRun(**_fields(run.apart() if lacking else run))
    if not lacking:
        made.sides = run.sides
    return made


def _fields(run: Run) -> dict[str, Any]:
    """What a run was made of."""
    return {one.name: getattr(run, one.name) for one in fields(Run) if one.init}
