"""Single values in PostgreSQL's binary format, as the text that its input functions read. For few values."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from uuid import UUID

from halfjoin.errors import UnsupportedSQL
from halfjoin.server.messages import decoded
from halfjoin.sql.types import Kind, SqlType, innermost

_SIGNS = {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}
_NEGATIVE = 0x4000
_START = datetime(2000, 1, 1)
_CYCLE = 146_097  # days of 400 years
_INT64 = (-(2**63), 2**63 - 1)  # -infinity and infinity of moments
_INT32 = (-(2**31), 2**31 - 1)
_OID = 26
_TEXTS = (18, 19, 114, 142, 705, 1042)  # types of texts that say nothing of the place where they go


def text_of(value: bytes, oid: int, type: SqlType | None) -> str:
    """The text of a binary value.

    Raises:
        UnsupportedSQL: it is not one of the type, or nobody knows the type.
    """
    try:
        if oid == _OID:
            return str(_number(">I")(value))
        if oid in _TEXTS:
            return decoded(value)
        if type is None:
            raise UnsupportedSQL(f"no binary input function available for type {oid}", code="42883")
        if type.kind is Kind.RECORD:
            return _record(value, type)
        return _READ.get(type.kind, decoded)(value) if type.kind is not Kind.ARRAY else _array(value, type)
    except (struct.error, ValueError, OverflowError, IndexError):
        raise UnsupportedSQL("incorrect binary data format in bind parameter", code="22P03") from None


def _number(format: str) -> Callable[[bytes], int]:
    def read(value: bytes) -> int:
        found: int = struct.unpack(format, value)[0]
        return found

    return read


def _printed(format: str) -> Callable[[bytes], str]:
    return lambda value: str(struct.unpack(format, value)[0])


def _float(format: str) -> Callable[[bytes], str]:
    def read(value: bytes) -> str:
        text = repr(struct.unpack(format, value)[0])
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text, text)

    return read


def _bool(value: bytes) -> str:
    return "true" if struct.unpack(">b", value)[0] else "false"


def numeric_text(value: bytes) -> str:
    """A numeric: digits to the base 10,000; see `binary_numeric`."""
    count, weight, sign, scale = struct.unpack_from(">HhHH", value)
    if sign in _SIGNS:
        return _SIGNS[sign]
    if sign not in (0, _NEGATIVE) or len(value) != 8 + 2 * count:
        raise ValueError
    digits = struct.unpack_from(f">{count}H", value, 8)
    if any(digit > 9999 for digit in digits):
        raise ValueError
    whole = "".join(f"{digits[n] if n < count else 0:04}" for n in range(weight + 1)).lstrip("0") or "0"
    after = range(weight + 1, weight + 1 + -(-scale // 4))
    decimals = "".join(f"{digits[n] if 0 <= n < count else 0:04}" for n in after)[:scale]
    return ("-" if sign else "") + whole + (f".{decimals}" if scale else "")


def _moment(suffix: str) -> Callable[[bytes], str]:
    def read(value: bytes) -> str:
        micros = _number(">q")(value)
        if micros in _INT64:
            return "infinity" if micros > 0 else "-infinity"
        try:
            return (_START + timedelta(microseconds=micros)).isoformat(" ") + suffix
        except OverflowError:
            days, rest = divmod(micros, 86_400_000_000)
            return f"{_far(days)} {_clock(rest)}{suffix}"

    return read


def _date(value: bytes) -> str:
    days = _number(">i")(value)
    if days in _INT32:
        return "infinity" if days > 0 else "-infinity"
    try:
        return (date(2000, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return _far(days)


def _far(days: int) -> str:
    """A date that Python's cannot be; the calendar begins anew after 400 years."""
    cycles, rest = divmod(days, _CYCLE)
    near = date(2000, 1, 1) + timedelta(days=rest)
    year = near.year + 400 * cycles
    return f"{year:04}-{near:%m-%d}" if year > 0 else f"{1 - year:04}-{near:%m-%d} BC"


def _clock(micros: int) -> str:
    seconds, rest = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:06}"


def _interval(value: bytes) -> str:
    micros, days, months = struct.unpack(">qii", value)
    return f"{months} months {days} days {micros} microseconds"


def _jsonb(value: bytes) -> str:
    if value[:1] != b"\x01":
        raise ValueError
    return decoded(value[1:])


def _array(value: bytes, type: SqlType) -> str:
    element = innermost(type)
    dimensions, _, oid = struct.unpack_from(">iiI", value)
    at = 12 + 8 * dimensions
    sizes = [struct.unpack_from(">ii", value, 12 + 8 * n)[0] for n in range(dimensions)]
    if not 0 <= dimensions <= 6 or any(size < 0 for size in sizes):
        raise ValueError

    def items(depth: int) -> str:
        nonlocal at
        parts = []
        for _ in range(sizes[depth]):
            if depth + 1 < dimensions:
                parts.append(items(depth + 1))
                continue
            (length,) = struct.unpack_from(">i", value, at)
            at += 4
            if length < -1 or at + max(length, 0) > len(value):
                raise ValueError
            parts.append("NULL" if length == -1 else _quoted(text_of(value[at : at + length], oid, element)))
            at += max(length, 0)
        return "{" + ",".join(parts) + "}"

    made = items(0) if dimensions else "{}"
    if at != len(value):
        raise ValueError
    return made


def _record(value: bytes, type: SqlType) -> str:
    """A row: how many members it has, and for each the number of its type, its length and its value."""
    at, parts = 4, list[str]()
    if _number(">i")(value[:4]) != len(type.fields):
        raise ValueError
    for _, member in type.fields:
        oid, length = struct.unpack_from(">Ii", value, at)
        at += 8
        if length < -1 or at + max(length, 0) > len(value):
            raise ValueError
        parts.append("" if length == -1 else _quoted(text_of(value[at : at + length], oid, member)))
        at += max(length, 0)
    if at != len(value):
        raise ValueError
    return f"({','.join(parts)})"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_READ: dict[Kind, Callable[[bytes], str]] = {
    Kind.BOOLEAN: _bool, Kind.SMALLINT: _printed(">h"), Kind.INTEGER: _printed(">i"), Kind.BIGINT: _printed(">q"),
    Kind.MZ_TIMESTAMP: _printed(">q"), Kind.REAL: _float(">f"), Kind.DOUBLE: _float(">d"), Kind.NUMERIC: numeric_text,
    Kind.DATE: _date, Kind.TIME: lambda value: _clock(_number(">q")(value)), Kind.TIMESTAMP: _moment(""),
    Kind.TIMESTAMPTZ: _moment("+00"), Kind.INTERVAL: _interval, Kind.UUID: lambda value: str(UUID(bytes=value)),
    Kind.JSONB: _jsonb, Kind.BYTEA: lambda value: "\\x" + value.hex(),
}  # fmt: skip
