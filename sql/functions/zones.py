"""Time zones by their names: those of the IANA database, usual abbreviations, and offsets such as GMT+4."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

# Hours east of UTC. An abbreviation has one meaning in all years.
_ABBREVIATIONS = {
    "acst": 9.5, "adt": -3, "aest": 10, "aedt": 11, "akdt": -8, "akst": -9, "ast": -4, "awst": 8, "bst": 1, "cdt": -5,
    "cest": 2, "cet": 1, "cst": -6, "eat": 3, "edt": -4, "eest": 3, "eet": 2, "est": -5, "gmt": 0, "hkt": 8, "hst": -10,
    "jst": 9, "kst": 9, "mdt": -6, "mst": -7, "nzdt": 13, "nzst": 12, "pdt": -7, "pst": -8, "sast": 2, "ut": 0,
    "utc": 0, "wet": 0, "west": 1, "z": 0, "zulu": 0,
}  # fmt: skip
_POSIX = re.compile(r"[a-z]{3,}([+-]?)(\d{1,2})(?::(\d{2}))?", re.ASCII)
_OFFSET = re.compile(r"(?:<[a-z0-9+-]{3,}>)?([+-])(\d{1,2})(?::(\d{2}))?", re.ASCII | re.IGNORECASE)
_MOST_HOURS = 24


@cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def abbreviation(name: str) -> timedelta | None:
    """How far ahead of UTC the zone of an abbreviation is; `name` is in lower case."""
    hours = _ABBREVIATIONS.get(name)
    return None if hours is None else timedelta(hours=hours)


@lru_cache(maxsize=1024)
def zone_of(name: str) -> ZoneInfo | timedelta | None:
    """The zone, or how far it is always ahead of UTC; None if there is no such zone.

    After a name of one's own a positive number is west of UTC, as POSIX has it: GMT+4 is 4 hours behind UTC.
    """
    lower = name.lower()
    fixed = abbreviation(lower)
    if fixed is not None:
        return fixed
    known = _names().get(lower)
    if known is not None:
        return ZoneInfo(known)
    match = _POSIX.fullmatch(lower)
    if match is None or int(match[2]) > _MOST_HOURS or int(match[3] or 0) > 59:
        return None
    ahead = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    return ahead if match[1] == "-" else -ahead


def offset_of(name: str, *, posix: bool) -> timedelta | None:
    """How far ahead of UTC `+5`, `-05:30` or `<+05>-5` is; None for another text.

    As POSIX has it (AT TIME ZONE), a positive number is west of UTC; as ISO 8601 has it (make_timestamptz), east.
    """
    match = _OFFSET.fullmatch(name)
    if match is None or int(match[2]) > _MOST_HOURS or int(match[3] or 0) > 59:
        return None
    size = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    return size if (match[1] == "-") == posix else -size


def offset_at(zone: ZoneInfo | timedelta, clock: datetime) -> timedelta:
    """How far a zone is ahead of UTC when its clock shows a time.

    A time that the clock shows twice is the later one. One that it skips is read with the offset before the gap.
    """
    if isinstance(zone, timedelta):
        return zone
    before, after = (clock.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    assert before is not None and after is not None
    return min(before, after)  # of the two offsets at a change, both rules take the smaller one
