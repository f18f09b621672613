"""The beginning of a connection: TLS, the startup message, the password."""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from halfjoin.errors import UnsupportedSQL
from halfjoin.server import messages as m
from halfjoin.server.access import Access
from halfjoin.server.scram import MECHANISM, Exchange, malformed, refused
from halfjoin.server.wire import Gone, Wire
from halfjoin.sql.system import DATABASE

_MAJOR = 3
_NOT_SETTINGS = ("user", "database", "options", "replication")


@dataclass(frozen=True)
class Login:
    """Who has connected, with which settings, and what it calls the database; or, of a cancel request, the number and
    the secret of a connection."""

    user: str = ""
    database: str = DATABASE
    settings: Mapping[str, str] = field(default_factory=dict)
    cancels: tuple[int, int] | None = None


async def log_in(wire: Wire, access: Access) -> Login:
    """The login of a client.

    Raises:
        Gone: it left. BadMessage: it does not follow the protocol. UnsupportedSQL: it may not connect.
    """
    encrypted = False
    for _ in range(4):  # it may ask for GSS, then for TLS, before it starts
        body = await _first(wire)
        fields = m.Fields(body)
        code = fields.int32()
        if code == m.CANCEL_REQUEST:
            return Login(cancels=(fields.int32(), fields.oid()))
        if code == m.GSS_REQUEST or (code == m.SSL_REQUEST and (access.tls is None or encrypted)):
            wire.put(b"N")
            await wire.flush()
        elif code == m.SSL_REQUEST:
            await _encrypt(wire, access)
            encrypted = True
        else:
            return await _started(wire, access, code, fields, encrypted)
    raise m.BadMessage("expected a startup message")


async def _first(wire: Wire) -> bytes:
    """The body of a message that has no letter."""
    try:
        (length,) = struct.unpack(">i", await wire.reader.readexactly(4))
        if not 8 <= length <= 10_000:
            raise m.BadMessage("invalid length of startup packet")
        return await wire.reader.readexactly(length - 4)
    except (asyncio.IncompleteReadError, OSError):
        raise Gone from None


async def _encrypt(wire: Wire, access: Access) -> None:
    """Begin TLS. Bytes that came before it are refused: somebody between may have added them."""
    assert access.tls is not None
    if wire.reader._buffer:  # type: ignore[attr-defined]
        raise m.BadMessage("received unencrypted data after SSL request")
    wire.put(b"S")
    await wire.flush()
    try:
        await wire.writer.start_tls(access.tls)
    except (OSError, EOFError):
        raise Gone from None


async def _started(wire: Wire, access: Access, code: int, fields: m.Fields, encrypted: bool) -> Login:
    major, minor = code >> 16, code & 0xFFFF
    if major != _MAJOR:
        raise UnsupportedSQL(f"unsupported frontend protocol {major}.{minor}: server supports 3.0", code="0A000")
    given: dict[str, str] = {}
    while (name := fields.text()) != "":
        given[name] = fields.text()
    fields.end()
    unknown = [name for name in given if name.startswith("_pq_.")]
    if minor or unknown:
        names = b"".join(map(m.text, unknown))
        wire.put(m.message(b"v", struct.pack(">ii", 0, len(unknown)) + names))
    user = given.get("user", "")
    if not user:
        raise UnsupportedSQL("no PostgreSQL user name specified in startup packet", code="28000")
    if given.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise UnsupportedSQL("replication is not supported", remedy="SUBSCRIBE tells the changes of a view")
    if access.tls is not None and not encrypted and not _near(wire):
        raise UnsupportedSQL("connections from other machines are encrypted", remedy="connect with sslmode=require",
                             code="28000")  # fmt: skip
    if access.users is not None:
        await _authenticate(wire, access, user)
    settings = {name: value for name, value in given.items() if name not in (*_NOT_SETTINGS, *unknown)}
    return Login(user, given.get("database") or user, settings | _options(given.get("options", "")))


def _near(wire: Wire) -> bool:
    """Whether the client is on this machine."""
    peer = wire.writer.get_extra_info("peername")
    return peer is not None and ipaddress.ip_address(str(peer[0]).partition("%")[0]).is_loopback


async def _authenticate(wire: Wire, access: Access, user: str) -> None:
    """Let the client prove that it knows the password, with SCRAM-SHA-256."""
    wire.put(m.message(b"R", struct.pack(">i", 10) + m.text(MECHANISM) + b"\0"))
    await wire.flush()
    fields = m.Fields(await _password(wire))
    if fields.text() != MECHANISM:
        raise m.BadMessage("client selected an invalid SASL authentication mechanism")
    exchange = Exchange(access.verifier(user))
    length = fields.int32()
    answer = exchange.first(fields.data(length) if length >= 0 else b"")
    wire.put(m.message(b"R", struct.pack(">i", 11) + answer))
    await wire.flush()
    proof = await _password(wire)
    try:
        answer = exchange.last(proof)
    except UnsupportedSQL as problem:
        raise (malformed() if problem.code == "08P01" else refused(user)) from None
    wire.put(m.message(b"R", struct.pack(">i", 12) + answer))


async def _password(wire: Wire) -> bytes:
    message = await wire.take()
    if message.letter != "p":
        raise m.BadMessage(f"expected SASL response, got message type {message.letter}")
    return message.body


def _options(text: str) -> dict[str, str]:
    """The settings of `-c name=value` and `--name=value`, where a backslash keeps a blank."""
    words = [word.replace("\0", " ") for word in text.replace("\\ ", "\0").split()]
    found = {}
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word = f"--{words.pop(0)}"
        elif word.startswith("-c"):
            word = f"--{word[2:]}"
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and equals:
            found[name.replace("-", "_")] = value
    return found
