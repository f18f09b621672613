"""Parses text to a constant by PostgreSQL's input syntax of every type, for literals and casts of literals."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.functions.json_text import parse_json, parse_jsonb
from halfjoin.sql.functions.nested_arrays import lengths
from halfjoin.sql.functions.rounding import decimal_of, fit, integer_of, real_of
from halfjoin.sql.functions.row_text import members_of_text
from halfjoin.sql.functions.text_input_dates import date_of, time_of, timestamp_of, timestamptz_of
from halfjoin.sql.functions.text_input_intervals import interval_of
from halfjoin.sql.types import STRINGS, Kind, SqlType

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?\d+)?", re.ASCII)
_NOT_HEXADECIMAL = re.compile(r"[^0-9a-fA-F\s]")
_SPACE = " \t\n\r\v\f"


def parse(text: str, type: SqlType) -> object:
    """The Python value (as in `Literal`) of `text` in `type`; UnsupportedSQL if the text is not a value of the type."""
    try:
        value = _array(text, type) if type.kind is Kind.ARRAY else _PARSERS[type.kind](text, type)
    except UnsupportedSQL as error:
        raise error.with_(constant=text) from None
    except (ValueError, ArithmeticError):
        value = None
    if value is None:
        raise UnsupportedSQL(f'invalid input syntax for type {type}: "{text}"', constant=text)
    return value


def _row(text: str, type: SqlType) -> tuple[object, ...]:
    """The members of a row."""
    texts = members_of_text(text, len(type.fields))
    return tuple(None if one is None else _member(one, field)
                 for one, (_, field) in zip(texts, type.fields, strict=True))  # fmt: skip


def _member(text: str, type: SqlType) -> object:
    """A member of a row, of which an input cuts nothing but blanks."""
    return fit(text, type, truncate=False) if type.kind in STRINGS else parse(text, type)


def _boolean(text: str, _: SqlType) -> bool | None:
    word = text.strip(_SPACE).lower()
    for value, names in ((True, ("true", "yes", "on", "1")), (False, ("false", "no", "off", "0"))):
        if word and word != "o" and any(name.startswith(word) for name in names):
            return value
    return None


def _integer(text: str, type: SqlType) -> int | None:
    body = text.strip(_SPACE)
    return integer_of(int(body), type) if _INTEGER.fullmatch(body) else None


def _float(text: str, type: SqlType) -> float | None:
    body = text.strip(_SPACE).lower()
    names = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
    bare = body.lstrip("+-") if len(body) - len(body.lstrip("+-")) <= 1 else body
    if bare in names:
        return -names[bare] if body.startswith("-") else names[bare]
    if _HEXADECIMAL.fullmatch(body):
        body = str(_hexadecimal(body))
    if not _NUMBER.fullmatch(body):
        return None
    value: float | None = float(body)
    if value and math.isfinite(value) and type.kind is Kind.REAL:
        value = real_of(Fraction(body))  # from the text itself: going through a double would round twice
    if value is None or math.isinf(value) or (value == 0 and Decimal(body) != 0):
        raise UnsupportedSQL(f'"{text}" is out of range for type {type}', code="22003")
    return value


def _hexadecimal(text: str) -> Decimal:
    """The number of a text such as 0x1.8p3, exactly."""
    digits, _, power = text.lower().partition("p")
    sign, digits = ("-" if digits.startswith("-") else "", digits.lstrip("+-").removeprefix("0x"))
    whole, _, rest = digits.partition(".")
    exponent = max(min(int(power or 0), 5000), -5000) - 4 * len(rest)
    return Context(prec=20_000).multiply(Decimal(f"{sign}{int(whole + rest, 16)}"), _two_to(exponent))


def _two_to(exponent: int) -> Decimal:
    power = Decimal(2 ** abs(exponent))
    return power if exponent >= 0 else Context(prec=20_000).divide(Decimal(1), power)


def _numeric(text: str, type: SqlType) -> Decimal | None:
    body = text.strip(_SPACE)
    if body.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise UnsupportedSQL(f"numeric has no {body}", remedy="use double precision")
    return decimal_of(Decimal(body), type) if _NUMBER.fullmatch(body) else None


def _string(text: str, type: SqlType) -> str:
    return fit(text, type)


def _bytea(text: str, _: SqlType) -> bytes | None:
    if text.startswith("\\x"):
        if wrong := _NOT_HEXADECIMAL.search(text, 2):
            raise UnsupportedSQL(f'invalid hexadecimal digit: "{wrong[0]}"')
        return bytes.fromhex(text[2:])
    out = bytearray()
    for part in re.finditer(r"\\\\|\\([0-3][0-7]{2})|(\\)|[^\\]+", text):
        if part[2]:
            return None
        out += b"\\" if part[0] == "\\\\" else bytes([int(part[1], 8)]) if part[1] else part[0].encode()
    return bytes(out)


def _uuid(text: str, _: SqlType) -> str | None:
    body = text.strip("{}") if text.startswith("{") == text.endswith("}") else ""
    if not re.fullmatch(r"[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7}", body):
        return None
    return str(uuid.UUID(body.replace("-", "")))


def _label(text: str, type: SqlType) -> str:
    if text not in type.labels:
        raise UnsupportedSQL(f'invalid input value for enum {type}: "{text}"', code="22P02")
    return text


def _array(text: str, type: SqlType) -> list[object]:
    """Parse an array, such as `{a, "b c", NULL}` or `{{1,2},{3,4}}`."""
    body = text.strip(_SPACE)
    bounds = _BOUNDS.match(body)
    if bounds is not None:
        if any(int(first) != 1 for first, _ in _BOUND.findall(bounds[0])):
            raise UnsupportedSQL("an array that does not begin at 1 is not supported", remedy="leave out its bounds",
                                 code="0A000")  # fmt: skip
        body = body[bounds.end() :]
    found, end = _items(text, body, 0, type)
    if body[end:].strip(_SPACE):
        raise _malformed(text)
    return found


def _items(text: str, body: str, at: int, type: SqlType) -> tuple[list[object], int]:
    """The elements of the braces at a place, and the place after them."""
    start = _OPEN.match(body, at)
    if start is None or type.element is None:
        raise _malformed(text)
    at, items = start.end(), list[object]()
    if (end := _CLOSE.match(body, at)) is not None:
        return items, end.end()
    while True:
        inner = _OPEN.match(body, at) is not None
        if inner != (type.element.kind is Kind.ARRAY):
            raise UnsupportedSQL(f'"{text}" has other dimensions than {type}', code="0A000",
                                 remedy="write [] for each dimension: ::integer[][]")  # fmt: skip
        if inner:
            part, at = _items(text, body, at, type.element)
            if not part or (items and lengths(part) != lengths(items[0])):
                raise _malformed(text)
            items.append(part)
        else:
            item = _ITEM.match(body, at)
            if item is None:
                raise _malformed(text)
            quoted, bare, at = item[1], item[2], item.end()
            if quoted is None and bare.upper() == "NULL":
                items.append(None)
            else:
                items.append(parse(re.sub(r"(?s)\\(.)", r"\1", bare if quoted is None else quoted), type.element))
        if (end := _CLOSE.match(body, at)) is not None:
            return items, end.end()
        if (comma := _COMMA.match(body, at)) is None:
            raise _malformed(text)
        at = comma.end()


def _malformed(text: str) -> UnsupportedSQL:
    return UnsupportedSQL(f'malformed array literal: "{text}"', remedy="write it as ARRAY[...]")


_BOUNDS, _BOUND = re.compile(r"(?:\[[+-]?\d+:[+-]?\d+\])+\s*=\s*", re.ASCII), re.compile(r"\[([+-]?\d+):([+-]?\d+)\]")
_OPEN, _CLOSE, _COMMA = re.compile(r"\s*\{"), re.compile(r"\s*\}"), re.compile(r"\s*,")
_ITEM = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^",{}\\]|\\.)+?))\s*(?=[,}])', re.DOTALL)
_PARSERS: dict[Kind, Callable[[str, SqlType], object]] = {
    Kind.BOOLEAN: _boolean,
    Kind.SMALLINT: _integer,
    Kind.INTEGER: _integer,
    Kind.BIGINT: _integer,
    Kind.REAL: _float,
    Kind.DOUBLE: _float,
    Kind.NUMERIC: _numeric,
    Kind.TEXT: _string,
    Kind.VARCHAR: _string,
    Kind.CHAR: _string,
    Kind.BYTEA: _bytea,
    Kind.UUID: _uuid,
    Kind.RECORD: _row,
    Kind.JSON: lambda text, _: parse_json(text),
    Kind.JSONB: lambda text, _: parse_jsonb(text),
    Kind.ENUM: _label,
    Kind.DATE: lambda text, _: date_of(text),
    Kind.TIME: lambda text, _: time_of(text),
    Kind.TIMESTAMP: lambda text, _: timestamp_of(text),
    Kind.TIMESTAMPTZ: lambda text, _: timestamptz_of(text),
    Kind.INTERVAL: lambda text, _: interval_of(text),
}
