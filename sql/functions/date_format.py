"""Parses the patterns of to_char for dates and timestamps."""

from __future__ import annotations

import re

from halfjoin.errors import UnsupportedSQL

# The fields of a pattern; `_FIELD` tries longer ones first.
FIELDS = (
    "YYYY", "YYY", "YY", "Y", "IYYY", "MONTH", "Month", "month", "MON", "Mon", "mon", "MM", "MI", "MS", "DAY", "Day",
    "day", "DDD", "DD", "DY", "Dy", "dy", "D", "ID", "IW", "HH24", "HH12", "HH", "SSSSS", "SSSS", "SS", "US", "AM",
    "PM", "am", "pm", "A.M.", "P.M.", "a.m.", "p.m.", "Q", "WW", "W", "CC", "J", "TZ", "tz", "OF", "TZH", "TZM", "RM",
    "rm", "BC", "AD", "bc", "ad", "B.C.", "A.D.", "b.c.", "a.d.", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "IDDD",
    "IYY", "IY", "I", "Y,YYY",
)  # fmt: skip
_WORDS = ("MONTH", "MON", "DAY", "DY", "AM", "PM", "A.M.", "P.M.", "TZ", "RM", "BC", "AD", "B.C.", "A.D.")
_ANY_CASE = {field for field in FIELDS if field.isupper() and field not in _WORDS}
_NAME = re.compile("month|mon|day|dy", re.IGNORECASE)
_QUOTED = re.compile(r'"((?:\\.|[^"])*)"?', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_FIELD = re.compile(
    "|".join(
        re.escape(field) if field not in _ANY_CASE else f"{re.escape(field)}|{re.escape(field.lower())}"
        for field in sorted(FIELDS, key=len, reverse=True)
    )
)


def tokens(pattern: str) -> list[tuple[str, bool]]:
    """Pairs (field or text, whether FM precedes it). A text begins with a quote character, and
    has True if it was quoted; `+TH` or `+th` follows a
    field with the ending of an ordinal number."""
    out: list[tuple[str, bool]] = []
    position, fill, prefixed = 0, False, False
    while position < len(pattern):
        rest = pattern[position:]
        if quoted := _QUOTED.match(rest):
            out.append(("'" + _ESCAPE.sub(r"\1", quoted[1]), True))
            position, fill, prefixed = position + quoted.end(), False, False
            continue
        if rest.startswith('\\"'):  # outside quotes, a backslash is special only before "
            out.append(("'\"", False))
            position, fill, prefixed = position + 2, False, False
            continue
        if rest[:2] in ("FX", "fx"):
            position, fill, prefixed = position + (4 if rest[2:4] in ("TH", "th") else 2), False, False
            continue
        if rest[:2] in ("FM", "fm", "TM", "tm") and not prefixed:
            fill = rest[:2].upper() == "FM" or _NAME.match(rest[2:]) is not None  # TM would translate names
            position, prefixed = position + 2, True
            continue
        match = _FIELD.match(rest)
        if match:
            name = match[0] if match[0] in FIELDS else match[0].upper()
            position += len(match[0])
            if pattern[position : position + 2] in ("TH", "th"):
                numbered = not any(name.upper() == word for word in (*_WORDS, "OF", "TZH", "TZM", "MONTH"))
                name += "+" + pattern[position : position + 2] if numbered else ""
                position += 2
            out.append((name, fill))
        else:
            out.append(("'" + rest[0], False))
            position += 1
        fill = prefixed = False  # FM applies only to the next token, field or not
    return out


# Fields that an interval has nothing for.
_OF_DAYS = ("MONTH", "MON", "DAY", "DY", "D", "ID", "IW", "IDDD", "IYYY", "IYY", "IY", "I", "J", "TZ", "TZH", "TZM",
            "OF", "BC", "AD", "B.C.", "A.D.")  # fmt: skip


def interval_tokens(pattern: str) -> list[tuple[str, bool]]:
    """The tokens of a pattern for an interval, or UnsupportedSQL if it has a field of a day of the calendar."""
    found = tokens(pattern)
    for name, _ in found:
        if not name.startswith("'") and name.partition("+")[0].upper() in _OF_DAYS:
            raise UnsupportedSQL(f'invalid format specification for an interval value: "{name.partition("+")[0]}"',
                                 remedy="an interval has no day of the calendar: use YYYY, MM, DD, HH24, MI, SS",
                                 code="22007")
    return found
