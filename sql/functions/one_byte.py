"""The type "char" of PostgreSQL's catalogs, with the quotes in its name: it holds one byte."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr
from halfjoin.sql.types import INTEGER, STRINGS, TEXT, Kind, SqlType

ONE_BYTE = '"char"'
Caster: TypeAlias = Callable[[Expr, SqlType, bool], Expr]  # `casting.cast`
_OCTAL = re.compile(r"\\[0-3][0-7]{2}")


def first_byte(text: str) -> str:
    """The first byte of a text; one that is no character of ASCII is shown by its octal code.

    >>> first_byte("abc"), first_byte("")
    ('a', '')
    """
    return _shown(_code(text))


def byte_of(code: int) -> str | None:
    """The byte of a code from -128 to 127; None for another."""
    return _shown(code % 256) if -128 <= code < 128 else None


def code_of(text: str) -> int:
    """The code of a byte, from -128 to 127."""
    code = _code(text)
    return code - 256 if code > 127 else code


def _code(text: str) -> int:
    return int(text[1:], 8) if _OCTAL.fullmatch(text) else (text.encode() or b"\0")[0]


def _shown(code: int) -> str:
    return f"\\{code:03o}" if code > 127 else chr(code) if code else ""


def cast_byte(cast: Caster, value: Expr, type: SqlType) -> Expr | None:
    """An explicit cast to "char" or from it; None if it is that of a text.

    Raises:
        UnsupportedSQL: there is no such cast.
    """
    source = value.type
    if type.named == source.named or (source.kind is Kind.UNKNOWN and type.named != ONE_BYTE):
        return None
    if type.named == ONE_BYTE and source.kind in (*STRINGS, Kind.UNKNOWN):
        return Call("one byte", (cast(value, TEXT, True),), type)
    if type.named == ONE_BYTE and source == INTEGER:
        return Call("one byte", (value,), type)
    if source.named == ONE_BYTE and type == INTEGER:
        return Call("code of byte", (value,), INTEGER)
    if source.named == ONE_BYTE and type.kind in STRINGS:
        return None
    raise UnsupportedSQL(f"cannot cast type {source} to {type}", remedy="cast it to integer or text between",
                         code="42846")
