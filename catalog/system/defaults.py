"""A DEFAULT as PostgreSQL writes it, if it is a constant: with its type. Clients read the value out of it (Rails)."""

from __future__ import annotations

import re
from decimal import Decimal

from halfjoin.errors import HalfjoinError
from halfjoin.sql.functions.render import plain
from halfjoin.sql.functions.text_input import parse
from halfjoin.sql.types import FLOATS, STRINGS, Kind, SqlType

_AS_WRITTEN = (*STRINGS, Kind.JSON, Kind.JSONB, Kind.ARRAY, Kind.ENUM, Kind.RECORD)  # kinds of values
_TEXT = re.compile(r"'((?:[^']|'')*)'")
_FRACTION = re.compile(r"\d+\.\d+")  # a numeric that needs no quotes
_NEGATIVE = re.compile(r"-\d{1,9}|-\d*(\.)\d+")
_UPPER = ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp",
          "current_user", "session_user", "current_role", "user", "current_catalog", "current_schema")  # fmt: skip


def default_text(written: str, type: SqlType, title: str) -> str | None:
    """The text of a DEFAULT; None for NULL, which is none. `title`: what format_type says of the type."""
    word = written.lower()
    if word in ("true", "false"):
        return word
    if word in _UPPER:
        return word.upper()
    if (found := _TEXT.fullmatch(written)) is None:
        if (negative := _NEGATIVE.fullmatch(written)) is not None:
            return f"'{written}'::{'numeric' if negative[1] else 'integer'}"
        return None if word == "null" else written
    value = found[1].replace("''", "'")
    if type.kind not in _AS_WRITTEN:
        try:
            value = _number(value) if type.kind is Kind.NUMERIC else plain(parse(value, type), type)
        except (HalfjoinError, ArithmeticError):  # the row says so that needs it
            return written
    if type.kind is Kind.BOOLEAN:
        return value.lower()
    if type.kind in FLOATS:
        value = value.removesuffix(".0")
    if (type.kind is Kind.INTEGER and value.isdecimal()) or (type.kind is Kind.NUMERIC and _FRACTION.fullmatch(value)):
        return value
    quoted = value.replace("'", "''")
    return f"'{quoted}'::{'bpchar' if title == 'character' else title}"


def _number(text: str) -> str:
    """A numeric with the digits that it was written with: a column's scale is no part of its DEFAULT."""
    return format(Decimal(text.strip()), "f")
