"""LISTEN, NOTIFY and UNLISTEN: texts that clients tell each other on channels when their transactions commit.

What a transaction says waits for its end. A text that is said twice on a channel in a transaction is told once. Who
listens is told between his transactions: at the end of his statement, or at once while he sends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from itertools import chain

from sqlglot.tokenizer_core import TokenType

from halfjoin.errors import UnsupportedSQL
from halfjoin.server import messages as m
from halfjoin.server.cursors import name_at
from halfjoin.server.splitting import Piece
from halfjoin.server.wire import Message, Wire
from halfjoin.sql.transactions import Savepoint

_LONGEST_CHANNEL, _LONGEST_TEXT = 63, 7999  # bytes, as PostgreSQL has them
_KEPT = 256  # bytes that it takes to keep a channel or a savepoint, besides its name; about
_TEXTS = (TokenType.STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING)


class Channels:
    """Who listens on which channel of a server. Used in the event loop's thread alone."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Mail]] = {}

    def listen(self, mail: Mail, channel: str) -> None:
        """Let a connection be told what is said on a channel."""
        self._listeners.setdefault(channel, set()).add(mail)
        if channel not in mail.channels:
            mail.channels.add(channel)
            mail.listened += _room(channel)

    def unlisten(self, mail: Mail, channel: str) -> None:
        """Let it be told no more."""
        if channel in mail.channels:
            mail.channels.remove(channel)
            mail.listened -= _room(channel)
        there = self._listeners.get(channel, set())
        there.discard(mail)
        if not there:
            self._listeners.pop(channel, None)

    def tell(self, process: int, channel: str, said: str) -> None:
        """Tell everyone who listens."""
        message = m.notification(process, channel, said)
        for mail in self._listeners.get(channel, ()):
            mail.put(message)


class Mail:
    """The channels of one connection: those that it listens on, what its transaction says, and what it is to be told.

    `most`: the bytes that may wait in each direction. What the transaction asks takes room as what it says does, and so
    do the channels that it would listen on with those that the connection has.
    """

    def __init__(self, channels: Channels, process: int, most: int) -> None:
        self.channels = set[str]()
        self.listened = 0  # bytes that they take
        self.arrived = asyncio.Event()
        self._all, self._process, self._most = channels, process, most
        # The last wish about each channel, LISTEN (True) or UNLISTEN: of the transaction, and of it since each of its
        # savepoints. The channel "", which comes first, is all of them.
        self._asked: list[dict[str, bool]] = [{}]
        self._said: dict[tuple[str, str], None] = {}
        self._size = 0  # bytes of what is asked and said, and of the savepoints
        self._savepoints: list[tuple[str, int, int]] = []  # their names, how much was said, and the size
        self._come: list[bytes] = []
        self._waiting = 0  # bytes of what has come
        self.lost = False  # whether more has come than may wait

    def ask(self, piece: Piece) -> None:
        """LISTEN, UNLISTEN or NOTIFY; it holds once the transaction commits.

        Raises:
            UnsupportedSQL: a syntax error, or too long; or the transaction asks too much.
        """
        if piece.words == ("UNLISTEN", "*"):
            self._size -= sum(map(_room, self._asked[-1]))
            self._asked[-1].clear()
            self._wish("", listens=False)
            return
        channel, said = _written(piece)
        if piece.words[0] == "NOTIFY":
            self.say(channel, said or "")
        else:
            self._wish(_channel(channel), listens=piece.words[0] == "LISTEN")

    def _wish(self, channel: str, *, listens: bool) -> None:
        asked = self._asked[-1]
        if channel not in asked:
            self._size += _room(channel)
        asked[channel] = listens
        if self._size + (self.listened if listens else 0) > self._most:  # UNLISTEN works with as many as there may be
            raise UnsupportedSQL("too many channels", code="54000",
                                 remedy="UNLISTEN some, or listen on one channel and tell in the text what it is about")

    def say(self, channel: str, said: str) -> None:
        """Tell a text on a channel once the transaction commits.

        Raises:
            UnsupportedSQL: it is too long, or the transaction says too much.
        """
        if len(said.encode()) > _LONGEST_TEXT:
            raise UnsupportedSQL("payload string too long", code="22023",
                                 remedy=f"{_LONGEST_TEXT:,} bytes are the most")
        if (_channel(channel), said) not in self._said:  # a savepoint cuts them off where it was set
            self._said[channel, said] = None
            self._size += len(channel.encode()) + len(said.encode())
        if self._size > self._most:
            raise UnsupportedSQL("too many notifications in one transaction", code="54000",
                                 remedy="tell that something has changed, and let clients ask what")

    def savepoint(self, statement: Savepoint) -> None:
        """Set a savepoint, release it, or forget what was asked and said since.

        Raises:
            UnsupportedSQL: there are too many. The last one is set all the same, as it is in the engine.
        """
        if statement.word == "savepoint":
            self._size += _room(statement.name)
            self._savepoints.append((statement.name, len(self._said), self._size))
            self._asked.append({})
            if self._size > self._most:
                raise UnsupportedSQL("too many savepoints", remedy="RELEASE those that are not needed", code="54000")
            return
        place = max(n for n, (name, *_) in enumerate(self._savepoints) if name == statement.name)
        if statement.word == "rollback":
            _, said, self._size = self._savepoints[place]
            while len(self._said) > said:
                self._said.popitem()
            del self._asked[place + 1 :], self._savepoints[place + 1 :]
            self._asked.append({})
            return
        for later in self._asked[place + 1 :]:
            moot = self._asked[place] if "" in later else self._asked[place].keys() & later.keys()
            self._size -= sum(map(_room, moot))
            self._asked[place] = later if "" in later else self._asked[place] | later
        self._size -= sum(_room(name) for name, *_ in self._savepoints[place:])
        del self._asked[place + 1 :], self._savepoints[place:]

    def end_transaction(self, *, keep: bool) -> None:
        """Carry out what the transaction has asked and said; `keep`: else forget it."""
        asked, said = self._asked, self._said
        if self._size:  # of anything at all
            self._asked, self._said, self._savepoints, self._size = [{}], {}, [], 0
        if keep:
            for channel, listens in chain.from_iterable(wishes.items() for wishes in asked):
                if listens:
                    self._all.listen(self, channel)
                else:
                    self.unlisten([channel] if channel else self.channels)
            for channel, text in said:
                self._all.tell(self._process, channel, text)

    def unlisten(self, channels: Collection[str]) -> None:
        """Listen no more on these channels."""
        for channel in list(channels):
            self._all.unlisten(self, channel)

    def put(self, message: bytes) -> None:
        """Take what the connection is to be told. More than may wait is lost, and the connection ends."""
        self._waiting += len(message)
        if self._waiting > self._most:
            self.lost = True
            self._come.clear()
        if not self.lost:
            self._come.append(message)
        self.arrived.set()

    def take(self) -> list[bytes]:
        """What has come, once."""
        come, self._come, self._waiting = self._come, [], 0
        return come


async def next_message(wire: Wire, mail: Mail, most: float, *, inside: bool) -> Message:
    """The next message of a client that listens. It is told what comes meanwhile, if it is not `inside` a transaction.

    Raises:
        TimeoutError: for so many seconds it has sent nothing, and was told nothing. BadMessage: it was to be told too
        much. And as `Wire.take`.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + most
    while True:
        mail.arrived.clear()
        if mail.lost:
            raise m.BadMessage("terminating connection: too many notifications wait for it", code="54000")
        if not inside and (come := mail.take()):
            wire.put(*come)
            await wire.flush()
            until = loop.time() + most
            continue
        coming, arrived = wire.peek(), asyncio.ensure_future(mail.arrived.wait())
        try:
            await asyncio.wait([coming, arrived], timeout=until - loop.time(), return_when=asyncio.FIRST_COMPLETED)
        finally:
            arrived.cancel()
        if coming.done():
            return await wire.take()
        if loop.time() >= until:
            raise TimeoutError


def _written(piece: Piece) -> tuple[str, str | None]:
    """The channel that a statement names, and the text of a NOTIFY that has one.

    Raises:
        UnsupportedSQL: a syntax error.
    """
    types = [token.token_type for token in piece.tokens]
    named = len(types) > 1 and types[1] not in (*_TEXTS, TokenType.NUMBER)
    text = piece.words[0] == "NOTIFY" and len(types) == 4 and types[2] is TokenType.COMMA and types[3] in _TEXTS
    if not named or (len(types) != 2 and not text):
        form = ", 'text'" if piece.words[0] == "NOTIFY" else ""
        raise UnsupportedSQL(f"syntax error in {piece.words[0]}", code="42601",
                             remedy=f"write {piece.words[0]} channel{form}")
    return name_at(piece, 1), piece.tokens[3].text if text else None


def _room(name: str) -> int:
    """The bytes that a channel or a savepoint takes."""
    return len(name.encode()) + _KEPT


def _channel(name: str) -> str:
    """The name of a channel.

    Raises:
        UnsupportedSQL: it is empty or too long.
    """
    if not name:
        raise UnsupportedSQL("channel name cannot be empty", code="22023")
    if len(name.encode()) > _LONGEST_CHANNEL:
        raise UnsupportedSQL("channel name too long", remedy=f"{_LONGEST_CHANNEL} bytes are the most", code="22023")
    return name
