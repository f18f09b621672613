"""Tests the rows with which a path fills before their other columns are copied.

Where batches have changed a table, a query copies the rows that are left of its runs. Of a condition that few rows meet
it then copies few: it reads the condition's columns as they are, of rows that have gone, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.chain import entrance_of
from halfjoin.engine.join.path import CompiledPath
from halfjoin.engine.linear.needed import needed_after
from halfjoin.engine.linear.operators import LinearOperator, compile_linear
from halfjoin.engine.linear.tables import NO_FUNCTIONS, Registry
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Ints
from halfjoin.planner.linear import Filter, Keep, Linear
from halfjoin.sql.expr import columns_of
from halfjoin.sql.functions import fallible
from halfjoin.sql.functions.chance import draws

_ROW = "=row"  # the number of a row; no column has such a name


@dataclass(frozen=True, slots=True)
class Tested:
    """The conditions with which a path begins, of which none can fail, and the `path` of rows that meet them."""

    _meets: LinearOperator
    _fetch: tuple[tuple[str, str], ...]
    path: CompiledPath

    def serves(self, parts: Sequence[Part]) -> bool:
        """Whether rows would be copied before they are tested."""
        return all(part.in_memory for part in parts) and any(part.hidden for part in parts)

    def choose(self, run: Run) -> Ints:
        """The rows of a run that meet the conditions."""
        updates, found = run.updates, [np.zeros(0, np.int64)]
        for start in range(0, len(run), limits.MORSEL_ROWS):
            morsel = updates.slice(start, min(start + limits.MORSEL_ROWS, len(run))).renamed(self._fetch)
            numbers = pa.array(np.arange(start, start + len(morsel)))
            left = self._meets(morsel.with_columns({_ROW: numbers}), [])
            if len(left):
                found.append(left.columns[_ROW].to_numpy())
        return np.concatenate(found)


def tested_of(path: CompiledPath, registry: Registry) -> Tested | None:
    """The conditions of a path; None: it begins with none that can be tested alone."""
    steps, fetch = path.spec.source.steps, path.spec.fetch
    if path.then is not None or not steps or not isinstance(steps[0], Filter):
        return None
    certain = tuple(one for one in steps[0].predicates if not (fallible(one) or draws(one)))
    if not certain:
        return None
    rest = tuple(one for one in steps[0].predicates if one not in certain)
    source = replace(path.spec.source, steps=((Filter(rest),) if rest else ()) + steps[1:])
    every = (Filter(certain), *source.steps, *(() if path.spec.stages else path.spec.final.steps))
    needed = needed_after(every, path.spec.source.reports)[0]
    left = tuple(pair for pair in fetch if needed is None or pair[1] in needed)
    spec = replace(path.spec, source=source, fetch=left)
    read = frozenset[str]().union(*map(columns_of, certain))
    return Tested(
        compile_linear(Linear((Filter(certain), Keep((_ROW,)))), NO_FUNCTIONS),
        tuple(pair for pair in fetch if pair[1] in read),
        replace(path, spec=spec, reads=tuple(column for column, _ in left),
                source=compile_linear(source, registry),
                entrance=None if path.entrance is None else entrance_of(spec, path.stages[0].chain)),
    )  # fmt: skip
