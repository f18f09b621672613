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
_POSIX = re.compile(r"(?:<[^>]*>|[^0-9,+<-]*)([+-]?)([0-9]+)(?::([0-9]+)(?::([0-9]+))?)?", re.DOTALL)
_MOST_HOURS = 167


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

    A positive number is west of UTC, as POSIX has it: GMT+4 and +4 are 4 hours behind UTC.
    """
    lower = name.lower()
    fixed = abbreviation(lower)
    if fixed is not None:
        return fixed
    known = _names().get(lower)
    if known is not None:
        return ZoneInfo(known)
    match = _POSIX.fullmatch(lower)
    if match is None:
        return None
    hours, minutes, seconds = (int(match[group] or 0) for group in (2, 3, 4))
    if hours > _MOST_HOURS or minutes > 59 or seconds > 60:
        return None
    ahead = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return ahead if match[1] == "-" else -ahead


def offset_at(zone: ZoneInfo | timedelta, clock: datetime) -> timedelta:
    """How far a zone is ahead of UTC when its clock shows a time.

    A time that the clock shows twice is the later one. One that it skips is read with the offset before the gap.
    """
    if isinstance(zone, timedelta):
        return zone
    before, after = (clock.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    assert before is not None and after is not None
    return min(before, after)  # of the two offsets at a change, both rules take the smaller one
