"""PostgreSQL's messages, version 3 of the protocol: what the server writes, and how it takes apart what it reads."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Column
from halfjoin.sql.oids import modifier, pg_type
from halfjoin.sql.origins import Told

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
MOST_INT16 = 65535


class BadMessage(UnsupportedSQL):
    """A message that does not follow the protocol. The connection ends, since nobody knows where the next begins."""

    def _sqlstate(self) -> str:
        return "08P01"


def message(letter: bytes, body: bytes = b"") -> bytes:
    """A message: its letter, the length of what follows, what follows."""
    return letter + struct.pack(">i", len(body) + 4) + body


def text(value: str) -> bytes:
    """A string as the protocol has it, ended by 0."""
    return value.encode().replace(b"\0", b"?") + b"\0"


AUTHENTICATED = message(b"R", struct.pack(">i", 0))
PARSED, BOUND, CLOSED = message(b"1"), message(b"2"), message(b"3")
NO_DATA, SUSPENDED, EMPTY = message(b"n"), message(b"s"), message(b"I")
COPY_DONE = message(b"c")


def ready(transaction: str) -> bytes:
    """ReadyForQuery, with the state of the transaction: `idle`, `open` or `failed`."""
    return message(b"Z", {"idle": b"I", "open": b"T", "failed": b"E"}[transaction])


def status(name: str, value: str) -> bytes:
    """ParameterStatus."""
    return message(b"S", text(name) + text(value))


def complete(tag: str) -> bytes:
    """CommandComplete."""
    return message(b"C", text(tag))


def key(process: int, secret: int) -> bytes:
    """BackendKeyData, which a cancel request repeats."""
    return message(b"K", struct.pack(">iI", process, secret))


def notification(process: int, channel: str, said: str) -> bytes:
    """NotificationResponse: what another connection, or this one, has said on a channel."""
    return message(b"A", struct.pack(">i", process) + text(channel) + text(said))


def row_description(columns: Sequence[Column], formats: Sequence[int]) -> bytes:
    """RowDescription."""
    if len(columns) > MOST_INT16 // 2:
        raise UnsupportedSQL("an answer can have at most 32,767 columns", code="54011")
    body = [struct.pack(">h", len(columns))]
    for column, format in zip(columns, formats, strict=True):
        found = pg_type(column.type)
        relation, number = (column.relation, column.number) if isinstance(column, Told) else (0, 0)
        facts = struct.pack(">IhIhih", relation, number, found.oid, found.length, modifier(column.type), format)
        body.append(text(column.name) + facts)
    return message(b"T", b"".join(body))


def parameter_description(oids: Iterable[int]) -> bytes:
    """ParameterDescription."""
    given = list(oids)
    return message(b"t", struct.pack(f">H{len(given)}I", len(given), *given))


def report(letter: bytes, fields: Mapping[str, str]) -> bytes:
    """ErrorResponse (`E`) or NoticeResponse (`N`). Fields: `S` severity, `C` SQLSTATE, `M` message, `H` hint, ..."""
    return message(letter, b"".join(name.encode() + text(value) for name, value in fields.items()) + b"\0")


def copy_response(letter: bytes, columns: int, *, binary: bool) -> bytes:
    """CopyInResponse (`G`) or CopyOutResponse (`H`)."""
    return message(letter, struct.pack(f">bh{columns}h", binary, columns, *[int(binary)] * columns))


class Fields:
    """Reads the fields of a message one after the other.

    Raises:
        BadMessage: the message is too short, too long, or not UTF-8.
    """

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def text(self) -> str:
        """A string."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise BadMessage("invalid string in message")
        found, self._at = self._body[self._at : end], end + 1
        return decoded(found)

    def int16(self) -> int:
        """A number of two bytes, without a sign."""
        return int(self._unpack(">H", 2))

    def int32(self) -> int:
        """A number of four bytes."""
        return int(self._unpack(">i", 4))

    def oid(self) -> int:
        """A number of four bytes, without a sign."""
        return int(self._unpack(">I", 4))

    def data(self, length: int) -> bytes:
        """So many bytes."""
        if length < 0 or self._at + length > len(self._body):
            raise BadMessage("insufficient data left in message")
        found, self._at = self._body[self._at : self._at + length], self._at + length
        return found

    def int16s(self) -> list[int]:
        """Numbers of two bytes, behind their count."""
        return [self.int16() for _ in range(self.int16())]

    def rest(self) -> bytes:
        """All that is left."""
        return self.data(len(self._body) - self._at)

    def end(self) -> None:
        """Check that nothing is left."""
        if self._at != len(self._body):
            raise BadMessage("invalid message format")

    def _unpack(self, format: str, size: int) -> int:
        found: int = struct.unpack(format, self.data(size))[0]
        return found


def decoded(data: bytes) -> str:
    """Bytes of a client as text.

    Raises:
        UnsupportedSQL: they are not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise UnsupportedSQL(f'invalid byte sequence for encoding "UTF8": 0x{data[problem.start]:02x}',
                             remedy="set client_encoding to UTF8, and send UTF-8", code="22021") from None
