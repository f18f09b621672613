"""What updates add to the sums of groups: one entry for each row, or for each group and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from halfjoin.engine.kernels import native
from halfjoin.engine.reduce.at_once import at_once
from halfjoin.engine.reduce.few import FEW, Few
from halfjoin.engine.reduce.law import Moments, moments_of
from halfjoin.engine.reduce.plain import KINDS, Plain
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Updates, concat, constant
from halfjoin.planner.group_functions import Aggregates, Sums


@dataclass(frozen=True, slots=True)
class Lifted:
    """`rows`: the keys and times of the entries. `totals`: what the entries add, for each of `sums_of` the function.

    `parts`: the same for the updates of a batch; then there are no `totals`.
    """

    rows: Updates
    totals: tuple[Totals, ...]
    parts: tuple[Few | Plain, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def total(self, number: int) -> Totals:
        """What the entries add to one of the sums."""
        return self.parts[number].totals() if self.parts else self.totals[number]

    def added(self, number: int, moments: Moments) -> Totals:
        """What the entries of each moment add to one of the sums, for the moments that have entries."""
        part = self.parts[number] if self.parts else None
        if isinstance(part, Plain):
            return part.added(moments)
        return self.total(number).take(moments.rows).added(moments.starts)

    def summed(self) -> Lifted:
        """One entry for each group and time."""
        moments = moments_of(self.rows, list(self.rows.columns))
        firsts = moments.rows[moments.starts]
        totals = tuple(one.take(moments.rows).added(moments.starts) for one in self.totals)
        return Lifted(self.rows.take(firsts), totals)

    def kept(self, function: Aggregates) -> Updates:
        """The entries as rows with the columns in which the function keeps its sums.

        Raises:
            DataError: a count is out of the range of bigint.
        """
        sums = {part.column.name: one.kept() for part, one in zip(sums_of(function), self.totals, strict=True)}
        return self.rows.with_columns(sums)

    @classmethod
    def read(cls, function: Aggregates, keys: Sequence[str], rows: Updates) -> Lifted:
        """The entries that `kept` gave."""
        totals = tuple(Totals.read(part.kind, rows.columns[part.column.name]) for part in sums_of(function))
        return cls(rows.select(keys), totals)


def sums_of(function: Aggregates) -> tuple[Sums, ...]:
    """What adds up in an aggregate: the number of rows, then its sums."""
    return (Sums(function.count, "count", ()), *function.sums)


def lift(function: Aggregates, keys: Sequence[str], updates: Updates) -> Lifted:
    """What each update adds."""
    rows = _entries(keys, updates)
    totals = tuple(_lifted_part(part, updates) for part in sums_of(function))
    return Lifted(rows, totals)


def _lifted_part(part: Sums, updates: Updates) -> Totals:
    """What each update adds to one of the sums."""
    arrays = [updates.columns[arg.name] for arg in part.args]
    return Totals.read(part.kind, arrays[0]).weighted(updates.diff) if part.kept else Totals.lifted(
        part.kind, arrays, updates.diff)  # fmt: skip


def lift_change(function: Aggregates, keys: Sequence[str], updates: Updates) -> Lifted:
    """As `lift`, as `parts`: in Python's integers if the updates are few, and else with nothing made yet."""
    few, parts = len(updates) <= FEW, list[Few | Plain]()
    for part in sums_of(function):
        arrays = [updates.columns[arg.name] for arg in part.args]
        made = Few.lifted(part.kind, arrays, updates.diff) if few and not (native.on and part.kind in KINDS) else None
        parts.append(Plain(part.kind, arrays, updates.diff) if made is None else made)
    return Lifted(_entries(keys, updates), (), tuple(parts))


def _entries(keys: Sequence[str], updates: Updates) -> Updates:
    columns: dict[str, pa.Array] = {name: updates.columns[name] for name in keys}
    return Updates(columns, updates.time, constant(1, len(updates)))


def lift_all(
    function: Aggregates, keys: Sequence[str], pieces: Iterable[Updates], *, together: bool = False
) -> Lifted | None:
    """What all updates of a history add, by group and time; None if there are none. Only one piece is in memory, and
    perhaps the next ones, if they are small. `together`: all may be, as they are in memory anyway; so the groups of
    several pieces are found once."""
    some = filter(None, [list(pieces)]) if together else _with_small(pieces)
    return add_up(part for one in some for part in _lifted(function, keys, one))


def _with_small(pieces: Iterable[Updates]) -> Iterator[list[Updates]]:
    """The pieces, each with the small ones after it."""
    held = list[Updates]()
    for piece in pieces:
        if held and sum(map(len, held[1:]), len(piece)) > limits.MORSEL_ROWS:
            yield held
            held = []
        held.append(piece)
    if held:
        yield held


def _lifted(function: Aggregates, keys: Sequence[str], pieces: list[Updates]) -> Iterator[Lifted]:
    """What pieces add, by group and time: at once if that is possible, else one by one, or a morsel at a time."""
    whole = at_once(sums_of(function), keys, pieces)
    if whole is not None:
        yield Lifted(*whole)
    elif len(pieces) > 1:
        for piece in pieces:
            yield from _lifted(function, keys, [piece])
    else:
        for start in range(0, len(pieces[0]), limits.MORSEL_ROWS):
            part = pieces[0].slice(start, min(start + limits.MORSEL_ROWS, len(pieces[0])))
            yield lift(function, keys, part).summed()


def add_up(parts: Iterable[Lifted]) -> Lifted | None:
    """One entry for each group and time of all parts, each of which is summed; None if there are no parts. Only one is
    in memory."""
    found, due = list[Lifted](), limits.PIECE_ROWS
    for part in parts:
        found.append(part)
        if sum(map(len, found)) > due:
            found = [_together(found)]
            due = 2 * len(found[0]) + limits.PIECE_ROWS
    return _together(found) if found else None


def _together(parts: Sequence[Lifted]) -> Lifted:
    if len(parts) == 1:
        return parts[0]
    totals = tuple(Totals.concat(of_part) for of_part in zip(*(part.totals for part in parts), strict=True))
    return Lifted(concat([part.rows for part in parts]), totals).summed()
