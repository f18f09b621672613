"""Kernels of text for SQL: quoted literals and identifiers, and format."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from halfjoin.engine.scalar.bounds import LONG
from halfjoin.engine.scalar.each import Bad, each
from halfjoin.engine.scalar.values import Kernel
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.quoting import QUOTED_WORDS
from halfjoin.sql.types import VALUE_BYTES

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
# A part of an identifier, with the dot behind it. All that is not ASCII counts as a letter.
_PART = re.compile(r'\s*("(?:[^"]|"")*"|[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*)\s*(\.?)')
_SPECIFIER = re.compile(r"%(?:(?P<at>\d+)\$)?(?P<left>-*)(?P<width>\d+|\*(?:(?P<width_at>\d+)\$)?)?(?P<type>.)?",
                        re.DOTALL)  # fmt: skip


def quote_literal(text: str) -> str:
    """A literal; with a backslash it is an `E'...'`."""
    quoted = "'" + text.replace("'", "''").replace("\\", "\\\\") + "'"
    return f"E{quoted}" if "\\" in text else quoted


def quote_ident(text: str) -> str:
    """An identifier, quoted unless it is a plain word in lower case that PostgreSQL has not taken."""
    if _PLAIN.fullmatch(text) and text not in QUOTED_WORDS:
        return text
    return '"' + text.replace('"', '""') + '"'


def parse_ident(text: str, strict: bool = True) -> list[str]:
    """The parts of an identifier; in those that are not quoted A to Z become small."""
    parts: list[str] = []
    end = 0
    while (found := _PART.match(text, end)) is not None and found[1] != '""':
        quoted = found[1].startswith('"')
        parts.append(found[1][1:-1].replace('""', '"') if quoted else found[1].encode().lower().decode())
        end = found.end()
        if not found[2]:
            if strict and end < len(text):
                break
            return parts
    raise Bad(f'string is not a valid identifier: "{text}"')


def format_text(pattern: str | None, *values: str | None) -> str | None:
    """PostgreSQL's format()."""
    if pattern is None:
        return None
    out: list[str] = []
    used, length, position = 0, 0, 0  # the values used so far, by the specifiers without a place of their own

    def value(at: str | None) -> str | None:
        nonlocal used
        if at is not None and int(at) == 0:
            raise Bad("format specifies argument 0, but arguments are numbered from 1")
        used = used + 1 if at is None else int(at)
        if used > len(values):
            raise Bad("too few arguments for format()")
        return values[used - 1]

    for start in (found.start() for found in re.finditer("%", pattern)):
        if start < position:
            continue
        out.append(pattern[position:start])
        if pattern[start + 1 : start + 2] == "%":
            out.append("%")
            position = start + 2
            continue
        found = _SPECIFIER.match(pattern, start)
        assert found is not None
        position = found.end()
        type = found["type"]
        if type is None:
            raise Bad("unterminated format() type specifier")
        left, width = bool(found["left"]), 0
        if found["width"] and found["width"].startswith("*"):
            given = value(found["width_at"])
            width = _width(given)
            left, width = left or width < 0, abs(width)
        elif found["width"]:
            width = int(found["width"])
        if type not in "sIL":
            raise Bad(f'unrecognized format() type specifier "{type}"')
        text = _formatted(type, value(found["at"]))
        length += len(out[-1]) + max(len(text), width)
        if width >= 1 << 31 or length > VALUE_BYTES:
            raise Bad(LONG)
        out.append(text.ljust(width) if left else text.rjust(width))
    return "".join([*out, pattern[position:]])


def _format_elements(pattern: str | None, values: list[str | None] | None) -> str | None:
    return format_text(pattern, *(values or ()))


def _width(text: str | None) -> int:
    try:
        return int(text or "0")
    except ValueError:
        raise Bad(f'invalid input syntax for type integer: "{text}"') from None


def _formatted(type: str, value: str | None) -> str:
    if type == "s":
        return value or ""
    if type == "L":
        return "NULL" if value is None else quote_literal(value)
    if value is None:
        raise Bad("null values cannot be formatted as an SQL identifier")
    return quote_ident(value)


_TEXT = pa.string()

QUOTING: dict[str, Callable[[Call], Kernel]] = {
    "quote_literal": lambda _: each(quote_literal, _TEXT),
    "quote_nullable": lambda _: each(lambda text: "NULL" if text is None else quote_literal(text), _TEXT, nulls=True),
    "quote_ident": lambda _: each(quote_ident, _TEXT),
    "parse_ident": lambda _: each(parse_ident, pa.list_(_TEXT)),
    "format": lambda _: each(format_text, _TEXT, nulls=True),
    "format elements": lambda _: each(_format_elements, _TEXT, nulls=True),
}
