"""A source FROM POSTGRES: first the rows that its tables have, then each transaction of the server, exactly once.

The position says where the source is in the server's log, and is stored with the rows. The slot is moved only
afterwards. So after a kill the slot is at the position or before it, and what the source has already is left out by the
places of the commits. Tables of one transaction change in one batch, or in pieces of one time if it is a large one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from time import monotonic, sleep
from typing import Any

import numpy as np

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.postgres import slot
from halfjoin.engine.feeds.postgres.changes import Changes
from halfjoin.engine.feeds.postgres.changes import Part as OfTable
from halfjoin.engine.feeds.postgres.log import Log, Part
from halfjoin.engine.feeds.postgres.place import Place
from halfjoin.engine.feeds.postgres.server import PostgresOptions, Server
from halfjoin.engine.feeds.postgres.shapes import (
    Shape,
    definitions,
    made_anew,
    misfit,
    other,
    refuse_misfit,
    shapes,
)
from halfjoin.engine.feeds.postgres.snapshot import Snapshot, ended, newest
from halfjoin.engine.feeds.postgres.wire import TRUNCATE, Relation, relation, truncated
from halfjoin.engine.feeds.source import POLL_BYTES, POLL_ROWS, Kind, Lag, Opening, Polled
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import Conflict, HalfjoinError

_IDLE_BYTES = 16 << 20  # log of other tables, after which the position moves on without rows
_PAUSE = 0.1  # seconds between two looks at the server


class PostgresReader:
    """Reads one source; see `engine.feeds.source.Reader`."""

    def __init__(self, opening: Opening, rows: int = POLL_ROWS, bytes: int = POLL_BYTES) -> None:
        self._tables: Sequence[Table] = opening.tables
        self._bounds = rows, bytes
        self._server = Server(opening.options)
        self._server.check_publication()
        self._found = self._shapes()
        self._named = {_key(shape): table
                       for table, shape in zip(self._tables, self._found.values(), strict=True)}  # fmt: skip
        self._stored: str | None = None
        self._place: Place | None = None
        self._log = Log(self._server, rows, bytes)
        self._relations: dict[int, Relation] = {}
        self._asked = 0
        self._checked = False
        self._waiting: int | None = None  # the newest transaction that must have ended before the snapshot
        self._snapshot: Snapshot | None = None

    def poll(self, position: str | None, seconds: float) -> Polled | None:
        """What comes after a position; see `engine.feeds.source.Reader.poll`."""
        if position is None:
            self._server.check()
            slot.refuse_taken(self._server)
            return Polled({}, "rows", Place(phase="new").text())
        if position != self._stored or self._place is None:
            self._forget()
            self._stored, self._place = position, Place.model_validate_json(position)
        ends = monotonic() + seconds
        while True:
            found = self._next(self._place)
            left = ends - monotonic()
            if found is None and left <= 0 and self._place.phase == "changes":
                self._server.check_publication()
                self._check_origins(self._place)
            if found is not None or left <= 0:
                return found
            sleep(min(_PAUSE, left))

    def acknowledge(self, position: str) -> None:
        """Let the server forget its log before a position."""
        place = Place.model_validate_json(position)
        if place.phase == "changes":
            slot.advance(self._server, place.at)

    def lag(self) -> Lag:
        """Bytes of the server's log that the source has not passed."""
        return Lag(self._server.lag(), "bytes")

    def close(self) -> None:
        """End the connection, and with it all that is open in it."""
        self._server.close()

    def _forget(self) -> None:
        """Put back what belongs to another position."""
        self._log.again()
        self._checked = False
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None

    def _next(self, place: Place) -> Polled | None:
        return self._changes(place) if place.phase == "changes" else self._rows(place)

    def _gives(self, place: Place, batches: Mapping[str, Any], *, last: bool = True) -> Polled:
        self._place, self._stored = place, place.text()
        return Polled(batches, "rows", self._stored, last=last)

    def _rows(self, place: Place) -> Polled | None:
        """The next rows of the snapshot; None while transactions are open that must end before."""
        server = self._server
        if self._snapshot is None:
            if place.phase == "new" or slot.slot_of(server) is None:
                if self._waiting is None:
                    slot.drop(server)  # of an attempt that ended before it stored that the slot is there
                    slot.made(server)
                    self._waiting = newest(server)
                if not ended(server, self._waiting):
                    return None
                self._waiting = None
                if place.phase == "new":
                    return self._gives(Place(phase="snapshot"), {})
            self._snapshot = Snapshot(server, *self._bounds)
            self._found = self._shapes()
            for table in self._tables:
                refuse_misfit(self._found[table.name], table)
            self._snapshot.begin(self._found)
        batches, last = self._snapshot.piece()
        if not last:
            return self._gives(place, batches, last=False)
        self._snapshot.close()
        seen, self._snapshot = self._snapshot.seen, None
        found = slot.slot_of(server)
        if found is None:
            raise Conflict("the replication slot was dropped while the rows were read", remedy=slot.ANEW,
                           name=server.options.slot)  # fmt: skip
        types = {_key(shape): dict(shape.types) for shape in self._found.values()}
        origins = {_key(shape): shape.origin for shape in self._found.values()}
        return self._gives(Place(phase="changes", at=found.confirmed, seen=seen, types=types, origins=origins), batches)

    def _changes(self, place: Place) -> Polled | None:
        """The next transactions; None if there are none for these tables."""
        stored = Place.model_validate_json(self._stored or "")
        if not self._checked:
            slot.checked(self._server, stored.at)
            slot.advance(self._server, stored.at)
            place = self._place = self._check_origins(place)
            self._checked = True
        while (part := self._log.read(place)) is not None:
            batches, place, last = self._batches(place, part)
            if batches or (last and stored.inside):
                return self._gives(place, batches, last=last)
            self._place = place
            if self._log.stopped:
                break
        if self._log.stopped:  # to read on, the slot must move; also where the cursor had ended with the part before
            return self._gives(place, {}, last=not place.inside)
        at = max(place.at, self._log.passed if not place.inside else 0)
        if at - stored.at < _IDLE_BYTES:
            return None
        return self._gives(place.model_copy(update={"at": at}), {})

    def _check_origins(self, place: Place) -> Place:
        """The place, with what is not known yet of its tables, such as the numbers of columns that came since.

        Raises:
            Conflict: a table is not the one whose rows are here, or the publication does not have it any more.
        """
        origins = dict(place.origins)
        for table, shape in zip(self._tables, self._shapes().values(), strict=True):
            now, before = shape.origin, origins.get(_key(shape))
            if before is not None:
                problem = other(shape, before, table)
                if problem is not None:
                    raise problem
                now = before.model_copy(update={"columns": {**now.columns, **before.columns}})
            origins[_key(shape)] = now
        return place.model_copy(update={"origins": origins})

    def _shapes(self) -> dict[str, Shape]:
        """The server's tables, by the names that they have in the engine."""
        names = [table.name for table in self._tables]
        return dict(zip(names, shapes(self._server, names), strict=True))

    def _batches(self, place: Place, part: Part) -> tuple[dict[str, Changes], Place, bool]:
        """The changes of each table in a part, the place after them, and whether they end with whole transactions."""
        if self._log.asked != self._asked:  # the server describes each table again
            self._relations, self._asked = {}, self._log.asked
        found, data = part.messages, part.messages
        kinds = data.kinds
        emptied: dict[int, int] = {}
        rows = part.which[kinds[part.which] != TRUNCATE]
        for which in part.which[kinds[part.which] == TRUNCATE].tolist():
            emptied.update(dict.fromkeys(truncated(found.one(which)), which))
        described = {which: relation(found.one(which)) for which in part.relations.tolist()}
        origins = dict(place.origins)
        ours = {origin.number: name for name, origin in origins.items()}
        numbers = found.number(rows, 1, 4)
        parts: dict[str, list[OfTable]] = defaultdict(list)
        cleared: dict[str, int] = {}
        types = {name: dict(known) for name, known in place.types.items()}
        for number in sorted({*np.unique(numbers).tolist(), *emptied}):
            here = [(which, one) for which, one in described.items() if one.number == number]
            for one, chosen in self._spans(number, here, rows[numbers == number]):
                named = ours.get(number, _key(one))  # what it was called when its rows were taken
                table = self._named.get(named)
                if table is None or (not len(chosen) and number not in emptied):
                    continue
                problem = None
                if named != _key(one) or number not in ours:
                    problem = made_anew(named, table.name)
                elif len(chosen):
                    problem = misfit(self._server, one, table, types[named])
                if problem is not None:
                    first = chosen[0] if len(chosen) else emptied[number]
                    return self._until(place, part, int(part.commits[first]), problem)
                if len(chosen):
                    types[named] = {column.name: (column.type, column.modifier) for column in one.columns}
                    kept = {name: which for name, which in origins[named].columns.items() if name in types[named]}
                    origins[named] = origins[named].model_copy(update={"columns": kept})
                if number in emptied:
                    cleared[table.name] = emptied[number]
                    chosen = chosen[chosen > emptied[number]]
                parts[table.name].append(OfTable(one, chosen))
        self._relations.update({one.number: one for one in described.values()})
        batches = {name: Changes(data, "messages", parts=some, emptied=name in cleared) for name, some in parts.items()}
        return batches, part.place.model_copy(update={"types": types, "origins": origins}), part.last

    def _spans(
        self, number: int, described: Sequence[tuple[int, Relation]], rows: Ints
    ) -> list[tuple[Relation, Ints]]:
        """The changes of a relation by the description that holds for them: the newest before them."""
        known = self._relations.get(number)
        every = [*([(-1, known)] if known is not None else []), *described]
        spans: list[tuple[Relation, Ints]] = []
        for place, (first, one) in enumerate(every):
            end = every[place + 1][0] if place + 1 < len(every) else np.iinfo(np.int64).max
            chosen = rows[(rows > first) & (rows < end)]
            if spans and spans[-1][0] == one:
                spans[-1] = (one, np.concatenate([spans[-1][1], chosen]))
            else:
                spans.append((one, chosen))
        return spans

    def _until(
        self, place: Place, part: Part, commit: int, problem: HalfjoinError
    ) -> tuple[dict[str, Changes], Place, bool]:
        """The batches of the transactions before one that cannot go on. Without any, the problem is raised."""
        before = part.before(commit)
        if not len(before.which):
            raise problem
        self._log.again()
        return self._batches(place, before)


def _key(table: Shape | Relation) -> str:
    """The server's name of a table, which does not change when ours is renamed."""
    return f"{table.schema}.{table.name}"


def dropped(opening: Opening) -> None:
    """Drop the source's slot on the server.

    Raises:
        HalfjoinError: the slot stays there; says how to drop it.
    """
    options: PostgresOptions = opening.options
    try:
        server = Server(options)
    except HalfjoinError as problem:
        raise slot.kept(options.slot, problem) from None
    try:
        slot.drop(server)
    finally:
        server.close()


POSTGRES = Kind("POSTGRES", PostgresOptions, PostgresReader, tables=definitions, dropped=dropped, times=None)
