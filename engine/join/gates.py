"""Tells whether a batch concerns a join at all, from the values of its changed rows (`planner.guards`).

Codes are compared: equal values have equal codes, and the codes of integers, dates and moments are in their order. A
view that is not concerned costs a few comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.join.known import cells_of
from halfjoin.engine.system.value import value
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.updates import Ints, ends
from halfjoin.planner.guards import Among, Guard, guards
from halfjoin.planner.plan import Branch

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_EACH = 256  # rows; the values of a larger change are bounded, but not told one by one


@value
class Span:
    """The codes of a column of the changed rows: bounds, and all of them if they are few."""

    low: int
    high: int
    each: Ints | None


class Changed:
    """What a batch changes, as gates ask for it. Each answer is found once."""

    def __init__(self, runs: Mapping[str, Part]) -> None:
        self._runs, self._spans = runs, dict[tuple[str, str], Span | None]()

    def span(self, collection: str, column: str) -> Span | None:
        """The codes of a column; None if the rows are in files, which are not read for this."""
        asked = collection, column
        if asked not in self._spans:
            run = self._runs.get(collection)  # None: what a passing node passes on
            pieces = [*run.pieces(names=[column])] if run is not None and run.in_memory else []
            self._spans[asked] = _span(pieces[0].columns[column]) if len(pieces) == 1 else None
        return self._spans[asked]


def _span(column: pa.Array) -> Span | None:
    found = codes([column], len(column))
    if not len(found):
        return None
    return Span(*ends(found), found if len(found) <= _EACH else None)


@dataclass(frozen=True, slots=True)
class Gate:
    """A column of a row that passes has one of these codes (None: any of them) between two bounds."""

    column: str
    low: int
    high: int
    codes: frozenset[int] | None = None

    def lets(self, span: Span | None) -> bool:
        """Whether a row may pass."""
        if span is None:
            return True
        if span.high < self.low or self.high < span.low:
            return False
        return self.codes is None or span.each is None or not self.codes.isdisjoint(span.each.tolist())


_OPEN: Sequence[Sequence[Gate]] = ((),)  # one path without a gate


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of a join's paths. A path without one is always open."""

    paths: Mapping[str, Sequence[Sequence[Gate]]] = field(default_factory=dict)  # of each collection all paths, or none

    def open(self, collections: Iterable[str], changed: Changed) -> bool:
        """Whether a row of these collections' changes may pass the first filters of some path."""
        for collection in collections:  # each batch comes here for each view, so there are few calls
            for path in self.paths.get(collection, _OPEN):
                for gate in path:
                    if not gate.lets(changed.span(collection, gate.column)):
                        break
                else:
                    return True
        return False


def gates_of(branches: Sequence[Branch]) -> Gates:
    """The gates of a join."""
    found: dict[str, list[list[Gate]]] = {}
    for path in (path for branch in branches for path in branch.paths):
        found.setdefault(path.collection, []).append(list(map(_gate, guards(path))))
    return Gates({name: paths for name, paths in found.items() if all(paths)})


def _gate(guard: Guard) -> Gate:
    column = guard.column
    if isinstance(guard, Among):
        cells = cells_of(guard.values, column.type)
        allowed = frozenset(codes([cells], len(cells)).tolist())
        return Gate(column.name, min(allowed, default=1), max(allowed, default=0), allowed)
    cells = cells_of([guard.value], column.type)
    (code,) = codes([cells], len(cells)).tolist()
    return Gate(column.name, code, _MOST, None) if guard.low else Gate(column.name, _LEAST, code, None)
