"""A reduce of counts and sums of integers, by one call of a kernel for all that a batch closes at one time.

Reduce law. The groups that the updates touch were what the output keeps of them; what the updates add makes them what
they are; the rows that differ go and come. That is `law.Moments` with one time, `aggregates.aggregated` and
`plain.Plain` at once. What the kernel does not know goes that way: several times, other sums, sums beyond 128 bits, and
groups whose rows do not cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from halfjoin.engine.arrange.index import index_of
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run, Side, make_run
from halfjoin.engine.join.closing import Closing
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.kernels import summing
from halfjoin.engine.reduce.lifted import sums_of
from halfjoin.engine.reduce.plain import KINDS
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import is_exact
from halfjoin.engine.updates.updates import MINIMUM, Updates, constant, empty
from halfjoin.planner.group_functions import Aggregates
from halfjoin.planner.plan import Reduce


@dataclass(frozen=True, slots=True)
class SummedGroups:
    """The kernel's view of a reduce. `kept` looks the groups up in the output. `columns`: the keys and the arguments,
    in the input; `parts`: as in `summing.reduced`. `names`, `types`: of the output."""

    kept: HalfJoinOperator
    columns: tuple[str, ...]
    keys: int
    parts: summing.Parts
    names: tuple[str, ...]
    types: list[pa.DataType]

    def changes(self, updates: Updates, kept: Sequence[Part], closing: Closing) -> Updates | Run | None:
        """The consolidated changes of the output, for updates that close, as a run that has the index by which the next
        batch looks them up, and is opened for it. None: the kernel cannot do it."""
        opened = self.kept.opened(kept, closing.netted, closing.begins)
        if opened is None:
            return None
        columns = [updates.columns[name] for name in self.columns]
        sides = [side for one in opened for side in one.opened]
        made = summing.reduced(columns, self.keys, self.parts, updates.time, updates.diff, sides, self.types,
                               limits.PIECE_ROWS)  # fmt: skip
        if made is None:
            return None
        arrays, diff, (values, rows), found, opened_rows = made
        closing.found.rows += found
        if not len(diff):
            return empty(dict(zip(self.names, self.types, strict=True)))
        output = Updates(dict(zip(self.names, arrays, strict=True)), constant(int(updates.time[0]), len(diff)), diff)
        index = index_of(values, rows, is_exact(arrays[: self.keys]))
        run = make_run(output, closing.after, {self.kept.spec.arrangement: index})
        run.sides[self.kept.opens] = Side([opened_rows], MINIMUM, MINIMUM, index.exact, self.types)
        return run


def summed_groups(plan: Reduce, kept: HalfJoinOperator | None, schema: dict[str, pa.DataType]) -> SummedGroups | None:
    """The kernel's view of a reduce; None if it is not one of plain sums of groups with keys."""
    function, keys = plan.function, [key.name for key in plan.keys]
    if kept is None or not keys or not isinstance(function, Aggregates) or function.ordered:
        return None
    sums = sums_of(function)
    if not all(part.kind in KINDS for part in sums) or [*schema] != [*keys, *(part.column.name for part in sums)]:
        return None
    columns = [*keys]
    for part in sums:
        columns += [arg.name for arg in part.args if arg.name not in columns]
    parts = [(columns.index(part.args[0].name) if part.kind == "integers" else -1,
              tuple(columns.index(arg.name) for arg in part.args)) for part in sums]  # fmt: skip
    return SummedGroups(kept, tuple(columns), len(keys), tuple(parts), tuple(schema), [*schema.values()])
