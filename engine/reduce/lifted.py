"""What updates add to the sums of groups: one entry for each row, or for each group and time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from halfjoin.engine.reduce.law import moments_of
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Updates, concat, constant
from halfjoin.planner.plan import Aggregates, Sums


@dataclass(frozen=True, slots=True)
class Lifted:
    """`rows`: the keys and times of the entries. `totals`: what the entries add, for each of `sums_of` the function."""

    rows: Updates
    totals: tuple[Totals, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def summed(self) -> Lifted:
        """One entry for each group and time."""
        moments = moments_of(self.rows, list(self.rows.columns))
        firsts = moments.rows[moments.starts]
        totals = tuple(one.take(moments.rows).added(moments.starts) for one in self.totals)
        return Lifted(self.rows.take(firsts), totals)


def sums_of(function: Aggregates) -> tuple[Sums, ...]:
    """What adds up in an aggregate: the number of rows, then its sums."""
    return (Sums(function.count, "count", ()), *function.sums)


def lift(function: Aggregates, keys: Sequence[str], updates: Updates) -> Lifted:
    """What each update adds."""
    totals = tuple(
        Totals.lifted(part.kind, [updates.columns[arg.name] for arg in part.args], updates.diff)
        for part in sums_of(function)
    )
    columns: dict[str, pa.Array] = {name: updates.columns[name] for name in keys}
    return Lifted(Updates(columns, updates.time, constant(1, len(updates))), totals)


def lift_all(function: Aggregates, keys: Sequence[str], pieces: Iterable[Updates]) -> Lifted | None:
    """What all updates of a history add, by group and time; None if there are none. Only one piece is in memory."""
    found, due = list[Lifted](), limits.PIECE_ROWS
    for piece in pieces:
        for start in range(0, len(piece), limits.MORSEL_ROWS):
            found.append(lift(function, keys, piece.slice(start, min(start + limits.MORSEL_ROWS, len(piece)))).summed())
            if sum(map(len, found)) > due:
                found = [_together(found)]
                due = 2 * len(found[0]) + limits.PIECE_ROWS
    return _together(found) if found else None


def _together(parts: Sequence[Lifted]) -> Lifted:
    if len(parts) == 1:
        return parts[0]
    totals = tuple(Totals.concat(of_part) for of_part in zip(*(part.totals for part in parts), strict=True))
    return Lifted(concat([part.rows for part in parts]), totals).summed()
