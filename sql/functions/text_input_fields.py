"""Cuts a text into the fields of a moment: numbers, words, dates, times of day, zones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from halfjoin.errors import UnsupportedSQL

_NAMES = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip
MONTHS = {short: i for i, name in enumerate(_NAMES, 1) for short in (name, name[:3])} | {"sept": 9}
DAYS = frozenset((
    "sunday", "sun", "monday", "mon", "tuesday", "tue", "tues", "wednesday", "wed",
    "weds", "thursday", "thu", "thur", "thurs", "friday", "fri", "saturday", "sat",
))  # fmt: skip
FILLERS = DAYS | {"at", "on"}
ERAS = {"ad": 1, "bc": -1}
HALVES = {"am": 0, "pm": 12}
MOVING = {"now": 0, "today": 0, "tomorrow": 1, "yesterday": -1}  # days from that at which the text is read
_KNOWN = {*MONTHS, *FILLERS, *ERAS, *HALVES, *MOVING, "allballs", "epoch", "infinity", "j", "jd", "julian", "t",
          "y", "m", "d", "h", "s", "mm", "dst"}  # fmt: skip
_DATE_WORD = re.compile(r"[+\-/_.:a-z0-9]+", re.ASCII)
_FIELDS = (
    ("time", re.compile(r"\d+:[\d:.]*", re.ASCII)),
    ("date", re.compile(r"\d+([-/])(?:\d+(?:\1(?:\d|\1)*)?|[a-z0-9\-/]*)", re.ASCII)),
    ("date", re.compile(r"\d+\.(?:\d+\.[\d.]*|[a-z][a-z0-9.]*)", re.ASCII)),
    ("number", re.compile(r"\d*\.\d+|\d+\.?", re.ASCII)),
    ("word", re.compile(r"[a-z]+", re.ASCII)),
    ("zone", re.compile(r"[+-]\s*\d[\d:.\-]*", re.ASCII)),
    ("word", re.compile(r"[+-]\s*[a-z]+", re.ASCII)),
)
_OFFSET = re.compile(r"([+-])\s*(\d+)(?::(\d+))?(?::(\d+))?", re.ASCII)


class Bad(ValueError):
    """The text is not a moment."""


def fields(body: str) -> Iterator[tuple[str, str]]:
    """The kinds of the fields, and their texts; punctuation between them does not count."""
    at = 0
    while at < len(body):
        if body[at].isspace():
            at += 1
            continue
        for kind, pattern in _FIELDS:
            match = pattern.match(body, at)
            if match is None:
                continue
            after = body[match.end() : match.end() + 1]
            if kind == "word" and (after in tuple("-/.") or (after and (after == "+" or after.isdigit())
                                                            and match[0] not in _KNOWN)):  # fmt: skip
                match = _DATE_WORD.match(body, at)  # `jan-08-1999`, `america/new_york`, `gmt+4`
                kind = "date"
                assert match is not None
            yield kind, match[0]
            at = match.end()
            break
        else:
            if body[at] in "+-" or not (body[at].isascii() and body[at].isprintable()):
                raise Bad
            at += 1


def offset(part: str) -> timedelta:
    """How far a zone such as `+05:30` or `-0830` is ahead of UTC."""
    match = _OFFSET.fullmatch(part)
    if match is None:
        raise Bad
    hours, minutes, seconds = int(match[2]), int(match[3] or 0), int(match[4] or 0)
    if match[3] is None and len(match[2]) > 2:
        hours, minutes = divmod(hours, 100)
    if hours > 15 or minutes > 59 or seconds > 59:
        raise UnsupportedSQL(f'time zone displacement out of range: "{part}"', code="22009")
    ahead = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return -ahead if match[1] == "-" else ahead
