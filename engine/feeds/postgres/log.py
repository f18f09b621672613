"""Reads the server's log through the slot, without moving it: whole transactions, or pieces of a large one.

`pg_logical_slot_peek_binary_changes` gives the messages of transactions in the order of their commits. It is asked for
about as many as one batch takes, and ends with a whole transaction. The server keeps what it found in a cursor, on disk
if that is long, and this process fetches it in parts. A part ends with the last whole transaction in it. If it has
none, it is a piece of one transaction, and the cursor stays open for the next piece.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from halfjoin.engine.feeds.postgres.place import Place
from halfjoin.engine.feeds.postgres.server import Server, number
from halfjoin.engine.feeds.postgres.shapes import quoted
from halfjoin.engine.feeds.postgres.wire import BEGIN, CHANGES, COMMIT, RELATION, Messages, messages
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import StorageError

_FIRST_FETCH = 200  # messages; later fetches follow from their size


@dataclass(frozen=True, slots=True)
class Part:
    """Some messages, and what they bring after a place.

    `relations` are the descriptions of tables among them, `which` the changes that the source does not have yet.
    `commits` has for each message the place of its transaction's commit. `place`: where the source is after the part.
    `last`: whether the part ends with whole transactions.
    """

    messages: Messages
    relations: Ints
    which: Ints
    commits: Ints
    place: Place
    last: bool

    def before(self, commit: int) -> Part:
        """The part without the transactions from one on."""
        which = self.which[self.commits[self.which] < commit]
        place = self.place.model_copy(update={"at": commit, "inside": 0, "done": 0})
        return Part(self.messages, self.relations, which, self.commits, place, True)


@dataclass(slots=True)
class Log:
    """What the slot has after a place. `most_rows` and `most_bytes`: about the most that a part has.

    `passed`: the log up to there had nothing more when it was read last. `asked` counts how often it was read.
    """

    server: Server
    most_rows: int
    most_bytes: int
    passed: int = 0
    asked: int = 0
    _open: bool = False
    _end: int = 0
    _count: int = 0  # messages of the cursor so far
    _at: Place | None = None  # where the rest goes on
    _rest: list[bytes] = field(default_factory=list)
    _gone: int = 0  # changes of the rest's first transaction that were in earlier pieces

    def read(self, place: Place) -> Part | None:
        """The next part after a place, which may have no changes; None: there is nothing more."""
        if place != self._at:
            self.close()
            end = number(self.server.one("SELECT pg_current_wal_flush_lsn()::text"))
            if end == self.passed:
                return None
            self._ask(end)
        given = self._fetched()
        part = self._part(place, given) if given else None
        self._at = part.place if part is not None and (self._open or self._rest) else None
        if not self._open and self._count < self.most_rows:
            self.passed = self._end
        return part

    @property
    def stopped(self) -> bool:
        """Whether all is read that the log was asked for, and there may be more."""
        return not self._open and not self._rest and self._count >= self.most_rows

    def again(self) -> None:
        """Read all that the slot has at the next time."""
        self.close()
        self.passed = 0

    def close(self) -> None:
        """Forget what was fetched, and the cursor."""
        self._rest, self._at, self._gone = [], None, 0
        if self._open:
            self._open = False
            self.server.run("ROLLBACK")

    def _ask(self, end: int) -> None:
        options, sql = self.server.options, self.server.psycopg.sql
        query = sql.SQL(
            "DECLARE halfjoin_changes NO SCROLL CURSOR FOR SELECT data FROM pg_logical_slot_peek_binary_changes("
            "{}, NULL, {}, 'proto_version', '1', 'publication_names', {})"
        ).format(options.slot, self.most_rows, quoted(options.publication))
        self.server.run("BEGIN READ ONLY")
        self._open, self._end, self._count = True, end, 0
        self.asked += 1
        with self.server.speaking():
            self.server.connection.execute(query)

    def _fetched(self) -> list[bytes]:
        """The rest of the last time, and messages from the cursor up to about the bounds of a part."""
        given, self._rest = self._rest, []
        size, count, step = sum(map(len, given)), len(given), _FIRST_FETCH
        with self.server.speaking(), self.server.connection.cursor(binary=True) as cursor:
            while self._open and count < 2 * self.most_rows and size < self.most_bytes:
                step = min(step, 2 * self.most_rows - count)
                some = [row[0] for row in cursor.execute(f"FETCH {step} FROM halfjoin_changes").fetchall()]
                given += some
                held = sum(map(len, some))
                count, size, self._count = count + len(some), size + held, self._count + len(some)
                if len(some) < step:
                    self._open = False
                    cursor.execute("ROLLBACK")
                else:
                    step = max(1, min(self.most_rows, self.most_bytes // 4 // max(1, held // step)))
        return given

    def _part(self, place: Place, given: list[bytes]) -> Part:
        """What the messages bring. What follows the last whole transaction is the rest, unless it is a piece of one."""
        found = messages(given)
        kinds = found.kinds
        begins, ends = (kinds == BEGIN).nonzero()[0], (kinds == COMMIT).nonzero()[0]
        if not len(begins) or kinds[0] != BEGIN or not 0 <= len(begins) - len(ends) <= 1:
            raise StorageError("the server sent changes that are in no transaction")
        commits = found.number(begins, 1, 8)
        wanted = commits >= place.at
        if place.seen is not None:
            wanted &= ~place.seen.contains(found.number(begins, 17, 4), commits)
        of = np.cumsum(kinds == BEGIN) - 1
        changes = np.isin(kinds, CHANGES)
        counted = changes & wanted[of]
        if place.done:
            ours = changes & (commits[of] == place.inside)
            gone = self._gone if commits[0] == place.inside else 0
            counted &= ~(ours & (np.cumsum(ours) + gone <= place.done))
        whole = len(ends)
        piece = len(begins) > whole and not wanted[:whole].any()
        stop = len(kinds) if piece or whole == len(begins) else int(begins[whole])
        which = np.flatnonzero(counted[:stop])
        if len(begins) > whole:  # the last one goes on in the next part
            self._gone = (self._gone if whole == 0 else 0) + int(changes[begins[whole] : stop].sum())
            self._rest = [given[begins[whole]]] if piece else given[stop:]
        else:
            self._gone = 0
        if whole:
            at = max(int(found.number(ends[-1:], 10, 8)[0]), place.at)
            seen = place.seen if place.seen is not None and at < place.seen.until else None
            place = place.model_copy(update={"at": at, "seen": seen})
            if wanted[:whole].any():
                place = place.model_copy(update={"inside": 0, "done": 0})
        if piece and wanted[-1]:
            done = max(place.done if place.inside == commits[-1] else 0, self._gone)
            place = place.model_copy(update={"inside": int(commits[-1]), "done": done})
        return Part(found, (kinds == RELATION).nonzero()[0], which, commits[of], place, not piece)
