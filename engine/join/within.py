"""Finds few of the rows that a query looks up, among which all partners are (`planner.within`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from halfjoin.engine.arrange.index import KeyColumns
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.known import KnownRows, RowsKnownAny, RowsKnownIn, compile_known
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.updates.codes import codes, distinct
from halfjoin.planner.known import SCANNED
from halfjoin.planner.plan import ArrangementKey, HalfJoin
from halfjoin.planner.within import needed


@dataclass(frozen=True, slots=True)
class Within:
    """A compiled `HalfJoin.within`: an arrangement by those of the looked-up keys that are at these `places`. `names`:
    the columns that are read of what it finds."""

    arrangement: ArrangementKey
    columns: KeyColumns
    places: tuple[int, ...]
    names: Sequence[str]

    def __call__(
        self, keys: Sequence[pa.Array], runs: Sequence[Part], closed: int, upper: int, share: float = 1.0
    ) -> Sequence[Part]:
        """The rows that have one of the looked-up `keys`, added up as `KnownRows` does it; all, if that is as good,
        since the rest of the keys, of which these are a `share`, are looked up in what is made of them."""
        asked = [keys[place] for place in self.places]
        found = distinct(codes(asked, len(asked[0])))
        if SCANNED * len(found) > share * sum(map(len, runs)):
            return runs
        rows = KnownRows(self.arrangement, self.columns, asked, found)
        return [Run(part) for part in rows(lambda *_: runs, closed, upper, self.names)]


@dataclass(frozen=True, slots=True)
class WithinKnown:
    """As `Within`, of keys that are known."""

    known: KnownRows | RowsKnownAny
    names: Sequence[str]

    def __call__(
        self, keys: Sequence[pa.Array], runs: Sequence[Part], closed: int, upper: int, share: float = 1.0
    ) -> Sequence[Part]:
        """The rows that have one of the known keys."""
        return [Run(part) for part in self.known(lambda *_: runs, closed, upper, self.names)]


def compile_within(spec: HalfJoin, registry: Registry) -> Within | WithinKnown | None:
    """Make `within` of a half-join executable, if it has one."""
    if spec.within is None:
        return None
    names = sorted(needed(spec.arrangement) | {column for column, _ in spec.fetch})
    if not isinstance(spec.within, ArrangementKey):
        known = compile_known(spec.within, registry)
        assert not isinstance(known, RowsKnownIn)
        return WithinKnown(known, names)
    places = tuple(spec.arrangement.keys.index(key) for key in spec.within.keys)
    return Within(spec.within, key_columns(spec.within, registry), places, names)
