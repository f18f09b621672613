"""Applies what the reader of a source gave: its rows, its bad records and its new position, in one transaction.

The position that the reader read from must be the stored one. So of two engines, threads or definitions that read the
same source only one goes on, and a source that was dropped meanwhile gives nothing any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from halfjoin.catalog.models import Source, Table
from halfjoin.engine.batch.progress import Feed, Progress
from halfjoin.engine.batch.writer import Writer
from halfjoin.engine.feeds.batches import batches_of, rows_of
from halfjoin.engine.feeds.kinds import kind_named
from halfjoin.engine.feeds.refused import Sieve, blamed
from halfjoin.engine.feeds.source import MOST_TEXT, BadRecord, Polled
from halfjoin.engine.intake.times import now
from halfjoin.engine.updates.updates import TIME
from halfjoin.errors import Conflict, HalfjoinError, InvalidRow, InvalidTime

ERROR_COLUMNS = {"place": "text", "text": "text", "reason": "text", "time": "timestamp with time zone"}
SEVERAL = 3  # bad records that an error names


class Changed(Conflict):
    """A source was changed, dropped, paused or read on during a poll, whose records therefore do not count."""


@dataclass(frozen=True, slots=True)
class Due:
    """A source that is to be read: its definition, its tables in the order of INTO, and how far it has been read."""

    source: Source
    tables: tuple[Table, ...]
    progress: Progress


def due(writer: Writer, id: str) -> Due | None:
    """The source with that id as it is defined now; None: nobody is to read it. The caller holds the engine's lock."""
    catalog = writer.state.catalog
    source = next((one for one in catalog.sources.values() if one.id == id), None)
    if source is None or source.paused:
        return None
    return Due(source, tuple(catalog.table(name) for name in source.into), writer.store.progress(id))


def deliver(writer: Writer, read: Due, polled: Polled) -> Progress:
    """Apply what was read, and return the source's progress after it. The caller holds the engine's lock.

    Raises:
        Changed: the source or its tables were changed, or somebody else has read it on.
        InvalidRow: a record is bad, and bad records are to stop the source.
        HalfjoinError: the engine does not take the batch. Nothing is kept, and the position stays.
    """
    current = due(writer, read.source.id)
    if current is None or current != read:
        raise Changed(f"the source {read.source.name} was changed, or read on by somebody else, during this poll",
                      name=read.source.name)  # fmt: skip
    bad = list(polled.bad)
    if bad and not read.source.errors:
        raise _stopped(read.source, bad)
    try:
        return _apply(writer, read, polled, rows_of(polled), batches_of(polled), bad)
    except HalfjoinError as problem:
        if not read.source.errors or polled.origin is None or not blamed(problem, polled):
            raise _placed(read.source, polled, problem) from None
    tables = {table.name: table for table in read.tables}
    good, refused = Sieve(polled, tables, writer.check).separated()
    rows = sum(map(len, good.values()))
    return _apply(writer, read, polled, rows, batches_of(polled, good), [*bad, *refused])


def _apply(
    writer: Writer, read: Due, polled: Polled, rows: int, batches: dict[str, Any], bad: Sequence[BadRecord]
) -> Progress:
    before, source, state = read.progress, read.source, writer.state
    time = before.open if before.open is not None and before.open >= state.upper else None
    after = Progress(polled.position, before.rows + rows, before.bad + len(bad), before.batches + 1, now())
    if bad:
        batches[source.errors] = _table_of(bad, state.upper if state.clock == "own" else None)
    # Bad records alone close no time of an own clock: rows of that time may still come.
    close = polled.last and (bool(rows) or state.clock != "own" or time is not None)
    try:
        writer.apply(batches, time, close=close, feed=Feed(source.id, source.name, after, more=not polled.last))
    except InvalidTime as problem:
        if state.clock != "own" or (problem.time, problem.upper) != (None, None):
            raise
        raise problem.with_(
            reason=f"the rows of {source.name} have no times, and this warehouse has its own times (clock='own')",
            remedy=f"{kind_named(source.kind).times}, or read it into a warehouse with clock='wall'",
        ) from None
    return writer.store.progress(source.id)


def _table_of(bad: Sequence[BadRecord], time: int | None) -> pa.Table:
    """Bad records as rows of the table of errors, at a time of their own where there is no present."""
    columns: Mapping[str, Any] = {
        "place": pa.array([_storable(one.place) for one in bad], pa.string()),
        "text": pa.array([_storable(one.text[:MOST_TEXT]) for one in bad], pa.string()),
        "reason": pa.array([_storable(one.reason) for one in bad], pa.string()),
        "time": pa.array([now() * 1000] * len(bad), pa.timestamp("us", "UTC")),
    }
    return pa.table({**columns, **({} if time is None else {TIME: pa.array([time] * len(bad), pa.int64())})})


def _storable(text: str) -> str:
    """The text without what PostgreSQL's text cannot hold, such as bytes of a file's name that are not UTF-8."""
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()


def _stopped(source: Source, bad: Sequence[BadRecord]) -> InvalidRow:
    shown = "; ".join(f"{one.place}: {one.reason}" for one in bad[:SEVERAL])
    more = f"; and {len(bad) - SEVERAL} more" if len(bad) > SEVERAL else ""
    return InvalidRow(f"{len(bad)} records cannot be read: {shown}{more}" if len(bad) > 1 else shown,
                      remedy=f"mend it, or create {source.name} WITH (errors = 'table')")  # fmt: skip


def _placed(source: Source, polled: Polled, problem: HalfjoinError) -> HalfjoinError:
    """The error with the place of the record in the source, instead of the row's number in the batch."""
    known = isinstance(problem, InvalidRow) and problem.row is not None and problem.table in polled.batches
    if not known or polled.origin is None:
        return problem
    assert isinstance(problem, InvalidRow) and problem.table is not None and problem.row is not None
    place, _ = polled.origin(problem.table, problem.row)
    remedy = problem.remedy if source.errors else f"mend it, or create {source.name} WITH (errors = 'table')"
    return replace(problem, row=None, called=place, remedy=remedy)
