"""Finds the records of a source's batch that their tables refuse, so that the others can be applied without them.

A record is bad if the batch is accepted without it and not with it. First each row is checked by itself against its
columns (types, NOT NULL), a part of the batch at a time. Then constraints, which look at the whole batch and at the
table: the rows are added in halves to those that are accepted so far. A row that was refused because a row after it was
missing is tried once more in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.batches import batches_of, length
from halfjoin.engine.feeds.source import MOST_TEXT, BadRecord, Polled
from halfjoin.engine.intake.rows import submitted
from halfjoin.engine.updates.updates import TIME, Ints
from halfjoin.errors import DataError, HalfjoinError, InvalidRow, InvalidTime

PART = 1024  # rows that are checked at a time, so that a bad one costs no more than these
MOST_TRIES = 10_000  # tries to find rows that break constraints. Beyond it the batch is refused as a whole

Rows = Mapping[str, Ints]  # numbers of rows, by table


@dataclass(slots=True)
class Sieve:
    """Separates the records of a batch. `check` raises if the engine refuses a batch; `tables` are those it is for."""

    polled: Polled
    tables: Mapping[str, Table]
    check: Callable[[Mapping[str, Any]], None]
    tries: int = 0

    def separated(self) -> tuple[Rows, list[BadRecord]]:
        """The rows that are accepted together, and the others as bad records.

        Raises:
            HalfjoinError: what is wrong is not one record, or nobody can tell which.
        """
        bad: dict[tuple[str, int], str] = {}
        good: Rows = {name: self._fitting(name, bad) for name in self.polled.batches}
        if self._problem(good) is not None:
            good = self._accepted(good, bad)
        return good, [self._record(*place, reason) for place, reason in sorted(bad.items())]

    def _record(self, table: str, row: int, reason: str) -> BadRecord:
        assert self.polled.origin is not None
        place, text = self.polled.origin(table, row)
        return BadRecord(place, text[:MOST_TEXT], reason)

    def _fitting(self, name: str, bad: dict[tuple[str, int], str]) -> Ints:
        """The rows of a table whose values fit its columns."""
        rows, fitting = length(self.polled.batches[name]), list[Ints]()
        for start in range(0, rows, PART):
            fitting += self._fit(name, np.arange(start, min(start + PART, rows)), bad)
        return np.concatenate(fitting) if fitting else np.arange(0)

    def _fit(self, name: str, part: Ints, bad: dict[tuple[str, int], str]) -> list[Ints]:
        """The rows of a part that fit. An error about a time does not say the row, so the part is tried in halves."""
        while len(part):
            try:
                submitted(self.tables[name], batches_of(self._only(name), {name: part})[name])
                return [part]
            except InvalidRow as problem:
                if problem.row is None:
                    raise
                bad[name, int(part[problem.row])] = _reason(problem)
                part = np.delete(part, problem.row)
            except InvalidTime as problem:
                if not _times(self.polled.batches[name]):
                    raise
                if len(part) == 1:
                    bad[name, int(part[0])] = _reason(problem)
                    return []
                half = len(part) // 2
                return [*self._fit(name, part[:half], bad), *self._fit(name, part[half:], bad)]
        return []

    def _only(self, name: str) -> Polled:
        one, polled = {name: self.polled.batches[name]}, self.polled
        return Polled(one, polled.mode, polled.position, unnamed=polled.unnamed)

    def _accepted(self, candidates: Rows, bad: dict[tuple[str, int], str]) -> Rows:
        """The most rows that the engine accepts together, in halves."""
        names = list(candidates)
        lengths = [len(candidates[name]) for name in names]
        table = np.repeat(np.arange(len(names)), lengths)
        row = np.concatenate([candidates[name] for name in names])
        taken = np.zeros(len(row), np.bool_)
        refused: dict[int, str] = {}

        def chosen() -> Rows:
            return {name: row[taken & (table == number)] for number, name in enumerate(names)}

        def add(low: int, high: int) -> None:
            taken[low:high] = True
            problem = self._problem(chosen())
            if problem is None:
                return
            taken[low:high] = False
            if high - low == 1:
                refused[low] = _reason(problem)
                return
            add(low, (low + high) // 2)
            add((low + high) // 2, high)

        add(0, len(row))
        for place in list(refused):  # once more: a row after it may have been what it lacked
            del refused[place]
            add(place, place + 1)
        bad.update({(names[table[place]], int(row[place])): reason for place, reason in refused.items()})
        return chosen()

    def _problem(self, rows: Rows) -> HalfjoinError | None:
        """Why the engine refuses rows because of a record; None: it accepts them.

        Raises:
            HalfjoinError: the engine refuses them for another reason.
        """
        self.tries += 1
        try:
            self.check(batches_of(self.polled, rows))
        except HalfjoinError as problem:
            if self.tries > MOST_TRIES or not blamed(problem, self.polled):
                raise
            return problem
        return None


def blamed(problem: HalfjoinError, polled: Polled) -> bool:
    """Whether a record may be why the engine refuses a batch: its values, or the time that it brought itself."""
    if isinstance(problem, InvalidTime):
        return any(TIME in getattr(rows, "column_names", ()) for rows in polled.batches.values())
    return isinstance(problem, InvalidRow | DataError)


def _times(rows: Any) -> bool:
    """Whether the times that a batch brings are of a type for times, so that one value must be what is wrong."""
    kind = rows.schema.field(TIME).type if isinstance(rows, pa.Table) and TIME in rows.column_names else pa.null()
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _reason(problem: HalfjoinError) -> str:
    """What is wrong, without the number that the row had among those that were tried."""
    return str(problem.with_(row=None) if isinstance(problem, InvalidRow) else problem)
