"""Parses the patterns of to_char for dates and timestamps."""

from __future__ import annotations

import re

from halfjoin.errors import UnsupportedSQL

# The fields of a pattern; `_FIELD` tries longer ones first.
FIELDS = (
    "YYYY", "YYY", "YY", "Y", "IYYY", "MONTH", "Month", "month", "MON", "Mon", "mon", "MM", "MI", "MS", "DAY", "Day",
    "day", "DDD", "DD", "DY", "Dy", "dy", "D", "ID", "IW", "HH24", "HH12", "HH", "SSSSS", "SSSS", "SS", "US", "AM",
    "PM", "am", "pm", "A.M.", "P.M.", "a.m.", "p.m.", "Q", "WW", "W", "CC", "J",
)  # fmt: skip
_ANY_CASE = {field for field in FIELDS if field.isupper() and field not in ("MONTH", "MON", "DAY", "DY", "AM", "PM")}
_REFUSED = ("TZ", "OF", "RM", "BC", "AD", "B.C.", "A.D.", "TM", "SP", "FF", "IDDD", "IYY", "IY", "Y,YYY")
_QUOTED = re.compile(r'"((?:\\.|[^"])*)"?', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_FIELD = re.compile(
    "|".join(
        re.escape(field) if field not in _ANY_CASE else f"(?i:{re.escape(field)})"
        for field in sorted(FIELDS, key=len, reverse=True)
    )
)


def tokens(pattern: str) -> list[tuple[str, bool]]:
    """Pairs (field or text, whether FM precedes it); a text begins with a quote character."""
    out: list[tuple[str, bool]] = []
    position, fill = 0, False
    while position < len(pattern):
        rest = pattern[position:]
        if quoted := _QUOTED.match(rest):
            out.append(("'" + _ESCAPE.sub(r"\1", quoted[1]), False))
            position, fill = position + quoted.end(), False
            continue
        if rest.startswith('\\"'):  # outside quotes, a backslash is special only before "
            out.append(("'\"", False))
            position, fill = position + 2, False
            continue
        if rest[:2].upper() == "FM":
            fill, position = True, position + 2
            continue
        refused = next((word for word in _REFUSED if rest.upper().startswith(word)), None)
        match = _FIELD.match(rest)
        if refused and not (match and len(match[0]) > len(refused)):
            raise UnsupportedSQL(f"to_char pattern '{pattern}' contains {refused}", remedy="use YYYY, MM, DD, HH24 ...")
        if match:
            name = match[0] if match[0] in FIELDS else match[0].upper()
            position += len(match[0])
            if pattern[position : position + 2].upper() == "TH":
                raise UnsupportedSQL(f"to_char pattern '{pattern}' contains an ordinal ending (TH)")
            out.append((name, fill))
        else:
            if rest[0].isalpha():
                raise UnsupportedSQL(f"to_char pattern '{pattern}': '{rest[0]}' is not a field",
                                     remedy='quote text: "..."')
            out.append(("'" + rest[0], False))
            position += 1
        fill = False  # FM applies only to the next token, field or not
    return out
