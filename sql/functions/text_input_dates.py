"""Parses text to dates, times and timestamps: ISO 8601 and PostgreSQL's forms with names of months."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction

from halfjoin.errors import UnsupportedSQL

_NAMES = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip
MONTHS = {short: i for i, name in enumerate(_NAMES, 1) for short in (name, name[:3])} | {"sept": 9}
_DATE = (
    re.compile(r"(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})", re.ASCII),
    re.compile(r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})", re.ASCII),
    re.compile(r"(?P<y>\d{4})(?P<s>[-\s])(?P<m>[a-z]{3,9})(?P=s)(?P<d>\d{1,2})", re.ASCII),
    re.compile(r"(?P<m>[a-z]{3,9})\s+(?P<d>\d{1,2}),?\s+(?P<y>\d{4})", re.ASCII),
    re.compile(r"(?P<d>\d{1,2})(?P<s>[-\s])(?P<m>[a-z]{3,9})(?P=s)(?P<y>\d{4})", re.ASCII),
)
_BEFORE_T = re.compile(r"\d+([-/]?)\d+\1\d+", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(\.\d*)?)?\s*(am|pm)?", re.ASCII)
_ZONE = re.compile(r"\s*(z|utc|gmt|(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<m>\d{2}))?)$", re.ASCII)
_WIDEST_ZONE = 15  # hours
_WITH_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2} ", re.ASCII)
_MOVING = ("now", "today", "tomorrow", "yesterday", "allballs")


def date_of(text: str) -> date | None:
    """A date; it ignores a time of day after the date, as PostgreSQL does."""
    moment = _moment(text)
    return moment[0].date() if moment else None


def timestamp_of(text: str) -> datetime | None:
    """A timestamp; it ignores a time zone after it, as PostgreSQL does."""
    moment = _moment(text)
    return moment[0] if moment else None


def timestamptz_of(text: str) -> datetime | None:
    """The moment in UTC; a text without a time zone is in UTC."""
    moment = _moment(text)
    return (moment[0] - moment[1]).replace(tzinfo=UTC) if moment else None


def time_of(text: str) -> time | None:
    """A time of day; it ignores a date before the time, as PostgreSQL does."""
    match = _TIME.fullmatch(text.strip().lower())
    if match is None:
        dated = _WITH_DATE.match(text.strip()) if ":" in text else None
        moment = _moment(text) if dated else None
        day = date_of(dated[0]) if dated else None
        return moment[0].time() if moment and moment[0].date() == day else None  # not 24:00
    parsed = _time(match)
    if parsed is None or parsed >= timedelta(days=1):
        return None
    return (datetime(2000, 1, 1) + parsed).time()


def _moment(text: str) -> tuple[datetime, timedelta] | None:
    """A date with an optional time, and its time zone's offset from UTC."""
    body = text.strip().lower()
    if body in _MOVING:
        raise UnsupportedSQL(f"'{text}' depends on when it is read", remedy="write mz_now() in a temporal filter")
    if body == "epoch":
        return datetime(1970, 1, 1), timedelta(0)
    if body.lstrip("+-") in ("infinity", "inf"):
        raise UnsupportedSQL(f"'{text}' as a date", remedy="use NULL, or a date far away")
    for pattern in _DATE:
        match = pattern.match(body)
        if match is None:
            continue
        name = match["m"]
        month = int(name) if name.isdigit() else MONTHS.get(name, 0)
        start = datetime(int(match["y"]), month, int(match["d"]))
        rest = body[match.end() :]
        if rest and (rest[0] not in " tz+" or (rest[0] == "t" and not _BEFORE_T.fullmatch(match[0]))):
            continue
        found = _TIME.match(rest.removeprefix("t").strip())
        clock = timedelta(0)
        if found:
            parsed = _time(found)
            if parsed is None:
                return None
            clock, rest = parsed, rest.removeprefix("t").strip()[found.end() :]
            if found[5] and rest[:1] not in ("", " "):  # `am-08` is the name of a zone
                return None
        zone = _ZONE.match(rest) if rest.strip() else None
        if rest.strip() and (zone is None or int(zone["h"] or 0) > _WIDEST_ZONE):
            return None
        return start + clock, _offset(zone)
    return None


def _offset(zone: re.Match[str] | None) -> timedelta:
    if zone is None or not zone["sign"]:
        return timedelta(0)
    offset = timedelta(hours=int(zone["h"]), minutes=int(zone["m"] or 0))
    return -offset if zone["sign"] == "-" else offset


def _time(match: re.Match[str]) -> timedelta | None:
    hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
    micros = round(Fraction("0" + match[4]) * 1_000_000) if match[4] and match[4] != "." else 0
    if match[5]:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if match[5] == "pm" else 0)
    if hours > 24 or minutes > 59 or seconds > 60 or (hours == 24 and (minutes or seconds or micros)):
        return None
    return timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=micros)
