"""Text to dates, times, timestamps and intervals: ISO 8601 and PostgreSQL's spelled-out forms."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction

from halfjoin.sql.errors import UnsupportedSQL

Interval = tuple[int, int, int]  # months, days, microseconds

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MOST_MICROS = 9_223_372_036_854_775  # as 64-bit nanoseconds
_DATE = (
    re.compile(r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})"),
    re.compile(r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})"),
    re.compile(r"(?P<y>\d{4})[-\s](?P<m>[a-z]{3,9})[-\s](?P<d>\d{1,2})"),
    re.compile(r"(?P<m>[a-z]{3,9})\s+(?P<d>\d{1,2}),?\s+(?P<y>\d{4})"),
    re.compile(r"(?P<d>\d{1,2})[-\s](?P<m>[a-z]{3,9})[-\s](?P<y>\d{4})"),
)
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(\.\d*)?)?\s*(am|pm)?")
_ZONE = re.compile(r"\s*(z|utc|gmt|(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<m>\d{2}))?)$")
_MOVING = ("now", "today", "tomorrow", "yesterday", "allballs")
_UNITS: dict[str, tuple[int, int]] = {}  # name: (field 0 months, 1 days, 2 microseconds; how many of it)
for _names, _unit in (
    ("millennium millennia mil mils", (0, 12000)), ("century centuries cent c", (0, 1200)),
    ("decade decades dec decs", (0, 120)), ("year years yr yrs y", (0, 12)),
    ("month months mon mons", (0, 1)), ("week weeks w", (1, 7)), ("day days d", (1, 1)),
    ("hour hours hr hrs h", (2, 3_600_000_000)), ("minute minutes min mins m", (2, 60_000_000)),
    ("second seconds sec secs s", (2, 1_000_000)), ("millisecond milliseconds msec msecs ms", (2, 1000)),
    ("microsecond microseconds usec usecs us", (2, 1)),
):  # fmt: skip
    _UNITS.update(dict.fromkeys(_names.split(), _unit))


def date_of(text: str) -> date | None:
    """A date; a time of day behind it is ignored, as PostgreSQL does."""
    moment = _moment(text)
    return moment[0].date() if moment else None


def timestamp_of(text: str) -> datetime | None:
    """A timestamp; a zone behind it is ignored, as PostgreSQL does."""
    moment = _moment(text)
    return moment[0] if moment else None


def timestamptz_of(text: str) -> datetime | None:
    """The moment in UTC, which is also the zone of text that names none."""
    moment = _moment(text)
    return (moment[0] - moment[1]).replace(tzinfo=UTC) if moment else None


def time_of(text: str) -> time | None:
    """A time of day; a date before it is ignored, as PostgreSQL does."""
    match = _TIME.fullmatch(text.strip().lower())
    if match is None:
        moment = _moment(text) if ":" in text else None
        return moment[0].time() if moment else None
    parsed = _time(match)
    if parsed is None or parsed >= timedelta(days=1):
        return None
    return (datetime(2000, 1, 1) + parsed).time()


def interval_of(text: str) -> Interval | None:
    """`1 mon 2 days 03:04:05`, `1-2`, `P1Y2DT3H`, `@ 1 day ago`."""
    body = text.strip().lower()
    fields = [Fraction(0), Fraction(0), Fraction(0)]
    if body.startswith("p"):
        return _iso_interval(body)
    ago = body.endswith(" ago")
    body = body.removeprefix("@").removesuffix(" ago").strip()
    if not body:
        return None
    token = re.compile(
        r"(?P<sign>[+-]?)(?:(?P<h>\d+):(?P<mi>\d{1,2})(?::(?P<s>\d{1,2}(?:\.\d*)?))?|(?P<y>\d+)-(?P<mo>\d{1,2})"
        r"|(?P<n>\d+\.?\d*|\.\d+)\s*(?P<unit>[a-z]+(?=\d|[+-]|\s|$))?)(?:\s+|$|(?<=[a-z]))"
    )
    position = 0
    while position < len(body):
        match = token.match(body, position)
        if match is None or match.end() == position:
            return None
        position = match.end()
        sign = -1 if match["sign"] == "-" else 1
        if match["h"]:
            seconds = Fraction(match["h"]) * 3600 + Fraction(match["mi"]) * 60 + Fraction(match["s"] or 0)
            fields[2] += sign * seconds * 1_000_000
        elif match["y"]:
            fields[0] += sign * (int(match["y"]) * 12 + int(match["mo"]))
        elif not _add_unit(fields, sign * Fraction(match["n"]), match["unit"] or "s"):
            return None
    return _settled(fields, -1 if ago else 1)


def _iso_interval(body: str) -> Interval | None:
    """The `P1Y2M3DT4H5M6S` form."""
    fields = [Fraction(0), Fraction(0), Fraction(0)]
    match = re.fullmatch(r"p(?P<date>(?:-?[\d.]+[ymwd])*)(?:t(?P<time>(?:-?[\d.]+[hms])+))?", body)
    if match is None or body == "p":
        return None
    names = {"y": "year", "m": "month", "w": "week", "d": "day"}
    for number, unit in re.findall(r"(-?[\d.]+)([ymwd])", match["date"]):
        _add_unit(fields, Fraction(number), names[unit])
    for number, unit in re.findall(r"(-?[\d.]+)([hms])", match["time"] or ""):
        _add_unit(fields, Fraction(number), unit)
    return _settled(fields, 1)


def _add_unit(fields: list[Fraction], number: Fraction, name: str) -> bool:
    """Add `number` units; a fraction of a month spills into days of 30, of a day into its microseconds."""
    unit = _UNITS.get(name)
    if unit is None:
        return False
    field, factor = unit
    amount = number * factor
    whole = Fraction(int(amount))
    rest = amount - whole
    fields[field] += whole
    if field == 0 and factor == 1:
        _add_unit(fields, rest * 30, "day")
    elif field == 0:
        fields[0] += round(rest)
    elif field == 1:
        fields[2] += rest * 86_400_000_000
    else:
        fields[2] += rest
    return True


def _settled(fields: list[Fraction], sign: int) -> Interval:
    months, days, micros = (sign * round(field) for field in fields)
    if abs(months) >= 1 << 31 or abs(days) >= 1 << 31 or abs(micros) > _MOST_MICROS:
        raise UnsupportedSQL("interval out of range")
    return months, days, micros


def _moment(text: str) -> tuple[datetime, timedelta] | None:
    """A date with an optional time, and the offset of its zone from UTC."""
    body = text.strip().lower()
    if body in _MOVING:
        raise UnsupportedSQL(f"'{text}' depends on when it is read", instead="write mz_now() in a temporal filter")
    if body == "epoch":
        return datetime(1970, 1, 1), timedelta(0)
    if body.lstrip("+-") in ("infinity", "inf"):
        raise UnsupportedSQL(f"'{text}' as a date", instead="use NULL, or a date far away")
    for pattern in _DATE:
        match = pattern.match(body)
        if match is None:
            continue
        name = match["m"]
        month = int(name) if name.isdigit() else MONTHS.index(name[:3]) + 1
        start = datetime(int(match["y"]), month, int(match["d"]))
        rest = body[match.end() :]
        if rest and rest[0] not in " tz+":
            continue
        found = _TIME.match(rest.removeprefix("t").strip())
        clock = timedelta(0)
        if found:
            parsed = _time(found)
            if parsed is None:
                return None
            clock, rest = parsed, rest.removeprefix("t").strip()[found.end() :]
        zone = _ZONE.match(rest) if rest.strip() else None
        if rest.strip() and zone is None:
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
