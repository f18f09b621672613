"""Bind: the values of parameters, in text or binary, become texts with types."""

from __future__ import annotations

from halfjoin.errors import UnsupportedSQL
from halfjoin.server.binary_input import text_of
from halfjoin.server.commands import Commands
from halfjoin.server.messages import Fields, decoded
from halfjoin.server.portals import Parsed, Portal
from halfjoin.sql.oids import pg_type
from halfjoin.sql.types import Kind, SqlType


async def bound(one: Parsed, fields: Fields, commands: Commands) -> Portal:
    """The portal that a Bind message makes.

    Raises:
        UnsupportedSQL: the values do not fit the statement.
    """
    formats = fields.int16s()
    values: list[bytes | None] = []
    for _ in range(fields.int16()):
        length = fields.int32()
        values.append(None if length == -1 else fields.data(length))
    shown = fields.int16s()
    fields.end()
    if len(formats) not in (0, 1, len(values)):
        raise _wrong(f"bind message has {len(formats)} parameter formats but {len(values)} parameters")
    if any(format not in (0, 1) for format in (*formats, *shown)):
        raise _wrong("unsupported format code")
    wanted = max(len(one.oids), max(one.prepared.parameters, default=0) if one.prepared is not None else 0)
    if len(values) != wanted:
        raise _wrong(f'bind message supplies {len(values)} parameters, but prepared statement "" requires {wanted}')
    formats = formats * len(values) if len(formats) == 1 else formats or [0] * len(values)
    types = await _types(one, any(formats), len(values), commands)
    texts = [None if value is None else decoded(value) if not format else text_of(value, oid, type)
             for value, format, (oid, type) in zip(values, formats, types, strict=True)]  # fmt: skip
    for text in texts:
        if text is not None and "\0" in text:
            raise UnsupportedSQL('invalid byte sequence for encoding "UTF8": 0x00', code="22021")
    return Portal(one, texts, [type for _, type in types], shown)


async def _types(one: Parsed, binary: bool, count: int, commands: Commands) -> list[tuple[int, SqlType | None]]:
    """The number and the type of each parameter. What the client has not given is inferred if it is needed: to read
    binary values, or if a client has been told."""
    oids = [*one.oids, *[0] * (count - len(one.oids))]
    given = await commands.types(oids)
    if (binary and 0 in oids) or one.described is not None:
        found = (await commands.describe(one)).parameters
        given = [type or (found[n] if oids[n] == 0 else None) for n, type in enumerate(given)]
    return [(oid or (0 if type is None else pg_type(type).oid), _exact(type))
            for oid, type in zip(oids, given, strict=True)]  # fmt: skip


def _exact(type: SqlType | None) -> SqlType | None:
    """The type of the value's cast; None for texts of any length, whose place gives the type."""
    return None if type is not None and type.kind in (Kind.CHAR, Kind.UNKNOWN) else type


def _wrong(reason: str) -> UnsupportedSQL:
    return UnsupportedSQL(reason, code="08P01")
