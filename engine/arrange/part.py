"""A part of a collection: what all of them can do, whether their rows are in memory (`Run`) or stay in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, cast

import pyarrow as pa

from halfjoin.engine.arrange.index import Footprint, KeyColumns
from halfjoin.engine.arrange.netting import together
from halfjoin.engine.arrange.partial import RowFilter
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.scalar.ends import Sieve
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Ints, Updates, concat, fitting, some_below_zero
from halfjoin.planner.plan import ArrangementKey
from halfjoin.planner.wants import ALL, Wants

_FEW = 1 << 12  # updates; so few are read at once
_MANY = 8  # if more than one update in so many has gone, it is left out also for those who add up


class Part(Protocol):
    """An immutable piece of a collection: a `Run` in memory, or a part whose rows stay in files.

    Callers use these methods and never check the class.
    """

    @property
    def in_memory(self) -> bool:
        """Whether it is a `Run`: its rows are in memory."""

    def __len__(self) -> int: ...

    def pieces(
        self, low: int = MINIMUM, high: int = MAXIMUM, names: Iterable[str] | None = None
    ) -> Iterator[Updates]:
        """The updates with times in `[low, high)`, in parts that fit in memory, with at least `names` (None: all)."""

    def present(
        self, closed: int, names: Iterable[str] | None = None, choose: Callable[[Run], Ints] | None = None
    ) -> Iterator[Updates]:
        """All updates, as `pieces`; those with times below `closed` may be added up. `choose`: of rows in memory only
        these, in ascending order."""

    def alone(self) -> Part:
        """The same part without what is known of others that cancel its updates."""

    @property
    def hidden(self) -> int:
        """How many updates are known to cancel others, in memory."""

    def narrowed(
        self, key: ArrangementKey, columns: KeyColumns, keys: Sequence[pa.Array], names: Iterable[str]
    ) -> Iterable[Run]:
        """Runs in memory that together have at least the updates with one of these keys in an arrangement.

        Updates in files come in several runs, each small enough for memory. `columns` computes the arrangement's keys;
        `keys` has a column for each of them; `names` are the collection's columns that the result must have, besides
        those that `columns` reads.
        """

    def loaded(self, upper: int) -> Sequence[Run]:
        """The same updates as runs in memory. Times below `upper` are closed."""

    @property
    def decoded(self) -> int:
        """The rows that lookups have read from files so far."""

    def build(
        self, key: ArrangementKey, columns: KeyColumns, wants: Wants = ALL, begins: int = MINIMUM
    ) -> None:
        """Build an arrangement's index now, so that no lookup of these rows waits for it. Files have no index to build.
        """

    def drop(self, key: ArrangementKey) -> None:
        """Drop the index of an arrangement that nobody shares any longer."""

    def serve(self, filters: Mapping[ArrangementKey, RowFilter]) -> None:
        """Build large indexes from now on for the rows that these filters leave."""

    def lacks(self, key: ArrangementKey) -> bool:
        """Whether a query would have to make the index of an arrangement in memory."""

    def among(self, key: ArrangementKey, columns: KeyColumns, keys: list[pa.Array]) -> Part:
        """The same part, for one lookup of these keys."""

    def sifted(self, sieve: Sieve) -> Sequence[Part]:
        """The same part of a query without rows that do not pass a sieve. Some that do not are still there: whoever
        reads the rows tests each of them."""

    def apart(self) -> Part:
        """The same part with its own list of indexes: neither sees what the other builds or drops."""

    def footprint(self, key: ArrangementKey) -> Footprint:
        """The size of an arrangement in this part; zero before the first lookup."""

    def closing(self, low: int, high: int) -> Updates:
        """The updates with times in `[low, high)`; `low` is at or above `upper` as it was when the part was made."""

    def closes(self, low: int, high: int) -> bool:
        """Whether `closing` may give updates."""

    def closed(self, upper: int) -> Part:
        """This part after times below `upper` have closed."""

    @property
    def earliest(self) -> int:
        """A lower bound of the times: the first one, or `MINIMUM` if that is not known."""

    @property
    def latest(self) -> int:
        """The last of the times; `MINIMUM` if there are no updates."""

    @property
    def row_bytes(self) -> int:
        """Memory held by the rows, times and diffs, in bytes."""

    @property
    def loaded_bytes(self) -> int:
        """About how many bytes the rows take, or would take, in memory."""

    @property
    def index_bytes(self) -> int:
        """Memory held by the indexes, in bytes."""

    @property
    def stored(self) -> tuple[int, int]:
        """The number of files with the rows and their arrangements, and the bytes of these files."""


def as_runs(parts: Sequence[Part]) -> Sequence[Run] | None:
    """The same parts, whose rows are in memory; None: some stay in files."""
    return cast("Sequence[Run]", parts) if all(part.in_memory for part in parts) else None


def present(
    parts: Sequence[Part], closed: int, names: Iterable[str] | None = None,
    choose: Callable[[Run], Ints] | None = None, *, apart: bool = False,
) -> Iterator[Updates]:  # fmt: skip
    """All updates of a collection, with at least `names` (None: all columns). Updates in memory with times below
    `closed` may be added up. `choose`: as in `Part.present`; of equal rows it must choose all or none. `apart`: the
    caller adds up what it makes of them, so those of different runs are left as they are."""
    names, held = None if names is None else list(names), []
    for part in uncopied(parts) if apart else parts:
        for updates in part.present(closed, names, choose):
            if part.in_memory and closed > MINIMUM and not apart:
                held.append(updates)
            elif len(updates):
                yield updates
    if len(held) < 2 or not any(some_below_zero(one.diff) for one in held):
        held = [one for one in held if len(one)]
        yield from held if len(held) < 2 or sum(map(len, held)) > _FEW else map(concat, fitting(held))
        return
    for group in fitting(held):
        found = concat(group)
        sums = together(found, closed)
        if sums is None:
            yield from (one for one in group if len(one))
        elif len(sums[0]):
            rest = found.take(sums[0])
            yield Updates(rest.columns, rest.time, sums[1])


def uncopied(parts: Sequence[Part]) -> Sequence[Part]:
    """The parts as those read them who add up what they make of them: unless much has gone, no columns are copied."""
    few = sum(part.hidden for part in parts) * _MANY < sum(map(len, parts))
    return [part.alone() for part in parts] if few else parts
