"""The error for a view that would grow too large: it names the lookup that finds the most rows, and the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.linear.failures import shown
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import DataError
from halfjoin.planner.names import arrangement_name


class _Lookup(NamedTuple):
    """A lookup of one key (empty: of the whole collection), and how many rows it finds."""

    finds: int
    arrangement: str
    key: str


class TooLarge(Exception):
    """The output of a path goes past a bound (`more than 3 rows`). On its way up the exception passes the path's
    lookups, and `consider` records them: nothing has to be recorded before it is raised."""

    def __init__(self, bound: str) -> None:
        super().__init__(bound)
        self.bound = bound
        self._most: _Lookup | None = None

    def consider(self, half_join: HalfJoinOperator, stream: Updates, runs: Sequence[Part]) -> None:
        """Remember the key of the stream that finds most rows, if it finds more than the one remembered."""
        name = arrangement_name(half_join.spec.arrangement)
        if not half_join.probes:
            found = _Lookup(sum(map(len, runs)), name, "")
        else:
            keys, stream = half_join.keys(stream)
            counts = half_join.counts_of(keys, len(stream), runs)
            if not len(counts):
                return
            most = int(counts.argmax())
            found = _Lookup(int(counts[most]), name, ", ".join(shown(key.slice(most, 1))[0].as_py() for key in keys))
        if self._most is None or found.finds > self._most.finds:
            self._most = found

    def told(self, what: str) -> DataError:
        """The error for the user: `what` is too much, and why."""
        match self._most:
            case None:
                return DataError(what, remedy="submit it in smaller parts")
            case _Lookup(count, name, ""):
                why = f"its join has no equality that looks {name} up, so each row meets all {count:,} rows there"
            case _Lookup(count, name, key):
                why = f"in the arrangement {name} the key ({key}) finds {count:,} rows"
        remedy = "give the join another equality, or a condition that keeps fewer rows"
        return DataError(f"{what}: {why}", remedy=remedy)
