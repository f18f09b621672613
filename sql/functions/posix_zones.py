"""Time zones that are written as a rule, as POSIX has it: `CET-1CEST,M3.5.0,M10.5.0/3`.

A name, how far behind UTC it is, and the name, offset and days of its summer time. Names have no meaning. The standard
library reads the rules of a zone's file, so a rule is handed to it as a file that has nothing else.
"""

from __future__ import annotations

import re
from datetime import timedelta
from io import BytesIO
from zoneinfo import ZoneInfo

_NAME = r"(?!:)(?:<[^>]*>|[^0-9,;+<-]*)"
_OFFSET = r"([+-]?)([0-9]++)(?::([0-9]++)(?::([0-9]++)|(?!:))|(?!:))"  # a number comes after each colon
_DAY = r"(?:J[0-9]+|[0-9]+|M[0-9]+\.[0-9]+\.[0-9]+)(?:/[+-]?[0-9]+(?::[0-9]+){0,2})?"
_SHIFT = re.compile(_NAME + _OFFSET, re.DOTALL)
_SUMMER = re.compile(f"(?!,|;)(?:<[^>]*>|[^0-9,;+<-]+)(?:{_OFFSET})?(?:[,;]({_DAY}),({_DAY}))?", re.DOTALL)
_MOST_HOURS, _MOST_OF_FILE = 167, 24
_AMERICAN = ("M3.2.0", "M11.1.0")  # without days, those of the United States since 2007
# An empty file of the second version: two headers, each with one kind of time, then the rule between two newlines.
_HEADER = b"TZif2" + bytes(15) + bytes(16) + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")
_FILE = 2 * (_HEADER + bytes(7))


def posix_zone(text: str) -> ZoneInfo | timedelta | None:
    """The zone of a rule, or how far it is always ahead of UTC; None if the text is no rule.

    A positive number is west of UTC: GMT+4 and +4 are 4 hours behind UTC.

    >>> str(posix_zone("<+0330>-3:30"))
    '3:30:00'
    """
    winter = _SHIFT.match(text)
    behind = _behind(winter, 1) if winter is not None else None
    if winter is None or behind is None:
        return None
    if winter.end() == len(text):
        return timedelta(seconds=-behind)
    summer = _SUMMER.fullmatch(text, winter.end())
    in_summer = behind - 3600 if summer is None or summer[2] is None else _behind(summer, 1)
    if summer is None or in_summer is None or max(abs(behind), abs(in_summer)) >= _MOST_OF_FILE * 3600:
        return None
    first, last = (summer[5], summer[6]) if summer[5] else _AMERICAN
    rule = f"AAA{_clock(behind)}BBB{_clock(in_summer)},{first},{last}"
    try:
        return ZoneInfo.from_file(BytesIO(_FILE + f"\n{rule}\n".encode()), key=text)
    except ValueError:
        return None


def _behind(found: re.Match[str], group: int) -> int | None:
    """The seconds behind UTC of an offset; None if it is no time of day."""
    hours, minutes, seconds = (int(found[group + i] or 0) for i in (1, 2, 3))
    if hours > _MOST_HOURS or minutes > 59 or seconds > 60:
        return None
    behind = hours * 3600 + minutes * 60 + seconds
    return -behind if found[group] == "-" else behind


def _clock(seconds: int) -> str:
    hours, rest = divmod(abs(seconds), 3600)
    return f"{'-' if seconds < 0 else ''}{hours:02}:{rest // 60:02}:{rest % 60:02}"
