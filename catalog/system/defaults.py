"""A DEFAULT as PostgreSQL writes it, if it is a constant: with its type. Clients read the value out of it (Rails)."""

from __future__ import annotations

import re

from halfjoin.errors import HalfjoinError
from halfjoin.sql.functions.render import plain
from halfjoin.sql.functions.text_input import parse
from halfjoin.sql.types import FLOATS, INTEGERS, STRINGS, Kind, SqlType

_AS_WRITTEN = (*STRINGS, Kind.JSON, Kind.JSONB, Kind.ARRAY, Kind.ENUM, Kind.RECORD)  # kinds of values
_TEXT = re.compile(r"'((?:[^']|'')*)'")
_NUMBERS = (*INTEGERS, *FLOATS, Kind.NUMERIC)
_BARE = re.compile(r"\d+(\.\d+)?")  # a number that needs no quotes
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
        return None if word == "null" else written
    value = found[1].replace("''", "'")
    if type.kind not in _AS_WRITTEN:
        try:
            value = plain(parse(value, type), type)
        except HalfjoinError:  # the row says so that needs it
            return written
    if type.kind is Kind.BOOLEAN:
        return value.lower()
    if type.kind in _NUMBERS and _BARE.fullmatch(value):
        return value
    quoted = value.replace("'", "''")
    return f"'{quoted}'::{'bpchar' if title == 'character' else title}"
