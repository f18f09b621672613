"""Parses text to dates, times and timestamps as leniently as PostgreSQL does, with months before days (MDY).

A text is cut into fields: numbers, words, dates, times of day, zones. Each field, from left to right, has a meaning
that depends on what the fields before it have told. A text that tells something twice, or too little, is not a moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from fractions import Fraction

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.functions.calendar import (
    DAY_MICROS,
    FIRST_DAY,
    LAST_DATE,
    Far,
    days_of,
    far_date,
    far_moment,
    holds_moment,
    like,
    month_length,
)
from halfjoin.sql.functions.clock import may_read, read_at
from halfjoin.sql.functions.text_input_fields import DAYS, ERAS, FILLERS, HALVES, MONTHS, MOVING, Bad, fields, offset
from halfjoin.sql.functions.zones import abbreviation, offset_at, zone_of

_CLOCK = re.compile(r"(\d+):(\d+)(?::(\d+))?(?:\.(\d*))?", re.ASCII)
_DATE = frozenset(("year", "month", "day"))
_DAY = timedelta(days=1)
_MICRO = timedelta(microseconds=1)


def date_of(text: str) -> date | Far | None:
    """A date; it ignores a time of day and a zone, as PostgreSQL does."""
    moment = _moment(text)
    moment.clock()
    days = moment.days()
    if not FIRST_DAY <= days <= LAST_DATE:
        raise UnsupportedSQL(f'date out of range: "{text}"', code="22008")
    return far_date(days)


def timestamp_of(text: str) -> datetime | Far | None:
    """A timestamp; it ignores a time zone after it, as PostgreSQL does."""
    return far_moment(_moment(text).micros(), zoned=False)


def timestamptz_of(text: str) -> datetime | Far | None:
    """The moment in UTC; a text without a time zone is in UTC."""
    moment = _moment(text)
    clock = moment.micros()
    return far_moment(moment.kept(clock - moment.ahead(clock)), zoned=True)


def time_of(text: str) -> time | None:
    """A time of day; it ignores a date before the time, as PostgreSQL does."""
    moment = _moment(text, only_time=True)
    if "time" not in moment.told:
        return None
    if isinstance(moment.zone, tzinfo) and not moment.told >= _DATE:  # its offset depends on the date
        return None
    if moment.told & _DATE:
        moment.days()
    if moment.clock() >= _DAY:
        raise UnsupportedSQL(f"'{text}' as a time: a time of day ends before 24:00",
                             remedy="write interval '24:00', or 00:00 of the next day")
    return (datetime(2000, 1, 1) + moment.clock()).time()


def _moment(text: str, *, only_time: bool = False) -> _Moment:
    body = text.strip().lower()
    if not may_read() and any(word in body.split() for word in MOVING):
        raise UnsupportedSQL(f"'{text}' depends on when it is read",
                             remedy="write now() in a query or a default, and mz_now() in a temporal filter of a view")
    if body.lstrip("+-") == "infinity" and not only_time:
        raise UnsupportedSQL(f"'{text}' as a date or timestamp: there are no infinite ones",
                             remedy="write NULL, or a date far away such as '9999-12-31'")
    found = _Moment(text, only_time=only_time)
    parts = list(fields(body))
    for place, (kind, part) in enumerate(parts):
        found.take(kind, part, parts[place + 1 :])
    return found


@dataclass
class _Moment:
    """What the fields have told: `told` names it. `next`: what the next field must be, after `j` or `t`."""

    text: str
    only_time: bool
    told: set[str] = field(default_factory=set)
    year: int = 0
    month: int = 0
    day: int = 0
    era: int = 0
    two_digits: bool = False
    named_month: bool = False
    of_year: int = 0
    julian: int | None = None
    half: int | None = None
    since: timedelta = timedelta(0)  # midnight
    zone: tzinfo | timedelta | None = None
    next: str = ""
    taken: int = 0

    def take(self, kind: str, part: str, later: list[tuple[str, str]]) -> None:
        """Take the next field. `later`: the fields after it."""
        self.taken += 1
        whole = self.told >= _DATE
        if kind == "time":
            self._expect("time")
            self._time(part)
        elif kind == "zone":
            self._tell("zone")
            self.zone = offset(part)
        elif kind == "word":
            self._word(part, later)
        elif self.next == "julian":
            self._julian(part)
        elif kind == "number":
            self._number(part, later)
        elif self.next == "time" or (part[0].isdigit() and (whole or not self._may_be_dated(later))):
            self._expect("time")
            self._time_and_zone(part)
        elif self.told >= {"month", "day"} or not self._may_be_dated(later):
            self._named_zone(part)
        else:
            self._date(part)

    def micros(self) -> int:
        """The date with the time of day, in microseconds since 1970."""
        return self.kept(self.days() * DAY_MICROS + self.clock() // _MICRO)

    def kept(self, micros: int) -> int:
        """The microseconds, if a timestamp can be so."""
        if not holds_moment(micros):
            raise UnsupportedSQL(f'timestamp out of range: "{self.text}"', code="22008")
        return micros

    def clock(self) -> timedelta:
        """The time of day."""
        if self.half is None:
            return self.since
        hour = self.since // timedelta(hours=1)
        if hour > 12:
            raise self._beyond()
        return self.since + timedelta(hours=self.half - (12 if hour == 12 else 0))

    def ahead(self, micros: int) -> int:
        """How many microseconds the zone is ahead of UTC when its clock shows a time."""
        return 0 if self.zone is None else offset_at(self.zone, like(micros)[0]) // _MICRO

    def days(self) -> int:
        """The date, in days since 1970."""
        if self.julian is not None:
            if self.era:
                raise self._beyond()
            return self.julian + FIRST_DAY
        if not self.told >= _DATE:
            raise Bad
        year = self.year
        if self.era == -1:
            year = 1 - year
        elif self.two_digits:
            year += 2000 if year < 70 else 1900
        if self.year <= 0 and not (self.two_digits and self.era != -1):
            raise self._beyond()
        if self.of_year:
            return days_of(year, 1, 1) + self.of_year - 1
        if not 1 <= self.month <= 12 or not 1 <= self.day <= month_length(year, self.month):
            raise self._beyond()
        return days_of(year, self.month, self.day)

    def _beyond(self) -> UnsupportedSQL:
        return UnsupportedSQL(f'date/time field value out of range: "{self.text}"', code="22008")

    def _tell(self, *names: str) -> None:
        if self.told & set(names):
            raise Bad
        self.told |= set(names)

    def _expect(self, kind: str) -> None:
        if self.next not in ("", kind):
            raise Bad
        self.next = ""

    def _may_be_dated(self, later: list[tuple[str, str]]) -> bool:
        """Whether a field may be a date: before a time that is all one asks for, only the first field."""
        kinds = [kind for kind, _ in later]
        first = self.taken == 1 and bool(kinds)
        return not self.only_time or (first and (kinds[0] == "time" or kinds[-1] == "date"))

    def _word(self, word: str, later: list[tuple[str, str]]) -> None:
        fixed = abbreviation(word)
        if fixed is not None:
            self._tell("zone")
            self.zone = fixed
        elif self.only_time and (word in MONTHS or word in DAYS or word == "epoch"):
            raise Bad
        elif word in MONTHS:
            if "month" in self.told and "day" not in self.told and not self.named_month:
                self.told.add("day")  # the number before was the day
                self.day = self.month
            else:
                self._tell("month")
            self.month, self.named_month = MONTHS[word], True
        elif word == "epoch":
            self._tell(*_DATE, "time", "zone", "half")
            self.year, self.month, self.day = 1970, 1, 1
        elif word in MOVING:
            self._moving(word)
        elif word == "allballs":
            self._tell("time", "zone")
        elif word in ERAS:
            self._tell("era")
            self.era = ERAS[word]
        elif word in HALVES:
            self._tell("half")
            self.half = HALVES[word]
        elif word in ("j", "jd", "julian"):
            self.next = "julian"
        elif word == "t":
            if not (self.told >= _DATE or self.only_time) or not later or later[0][0] in ("word", "zone"):
                raise Bad
            self.next = "time"
        elif word in DAYS:
            self._tell("weekday")
        elif word not in FILLERS:
            self._named_zone(word)

    def _moving(self, word: str) -> None:
        """`now`, or the midnight of a day near it."""
        now = read_at()
        if now is None or (self.only_time and word != "now"):
            raise Bad
        if not self.only_time:
            self._tell(*_DATE)
            day = now.date() + MOVING[word] * _DAY
            self.year, self.month, self.day = day.year, day.month, day.day
        if word == "now":
            self._tell("time", "zone")
            self.since = now.replace(tzinfo=None) - datetime.combine(now.date(), time())

    def _named_zone(self, name: str) -> None:
        self._tell("zone")
        self.zone = zone_of(name)
        if self.zone is None:
            raise Bad

    def _julian(self, part: str) -> None:
        """`2451187`, `2451187.5`, or a number with a zone: `2451187-08`."""
        self.next = ""
        match = re.fullmatch(r"(\d+)(\.\d*)?(-[\d:]+)?", part, re.ASCII)
        if match is None:
            raise Bad
        self._tell(*_DATE)
        self.julian = int(match[1])
        if match[2]:
            self._tell("time")
            self.since = timedelta(microseconds=round(Fraction("0" + match[2] + "0") * 86_400_000_000))
        if match[3]:
            self._tell("zone")
            self.zone = offset(match[3])

    def _time(self, part: str) -> None:
        """`hours:minutes[:seconds[.fraction]]`, or `minutes:seconds.fraction`."""
        match = _CLOCK.fullmatch(part)
        if match is None:
            raise Bad
        self._tell("time")
        hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
        if match[3] is None and match[4] is not None:
            hours, minutes, seconds = 0, hours, minutes
        self._set_time(hours, minutes, seconds, match[4] or "")

    def _set_time(self, hours: int, minutes: int, seconds: int, fraction: str) -> None:
        micros = round(Fraction(f"0.{fraction or 0}") * 1_000_000)
        if hours > 24 or minutes > 59 or seconds > 60 or (hours == 24 and (minutes or seconds or micros)):
            raise self._beyond()
        self.since = timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=micros)

    def _time_and_zone(self, part: str) -> None:
        """`040506-08` or `040506.789-08`."""
        digits, dash, zone = part.partition("-")
        if not dash:
            raise Bad
        self._tell("zone")
        self.zone = offset(f"-{zone}")
        self._together(digits, dated=True)

    def _number(self, part: str, later: list[tuple[str, str]]) -> None:
        whole = part.partition(".")[0]
        if self.next == "time":
            self.next = ""
            self._together(part, dated=True)
        elif self.only_time and not ("." in part and self._may_be_dated(later) and later[-1][0] == "date"):
            self._together(part, dated=True)
        elif "." in part and not self.told >= _DATE:
            self._date(part)
        elif ("." in part and len(whole) > 2) or (len(whole) >= 6 and not self.told >= {*_DATE, "time"}):
            self._together(part, dated=self.told >= _DATE)
        else:
            self._in_turn(part)

    def _together(self, part: str, *, dated: bool) -> None:
        """Digits without separators: a date, or after it (`dated`) a time of day."""
        whole, point, fraction = part.partition(".")
        if not point and not dated:
            if len(whole) < 6:
                raise Bad
            self._tell(*_DATE)
            self.year, self.month, self.day = int(whole[:-4]), int(whole[-4:-2]), int(whole[-2:])
            self.two_digits = len(whole) == 6
            return
        if len(whole) not in (4, 6) or (len(whole) == 4 and point):
            raise Bad
        self._tell("time")
        self._set_time(int(whole[:2]), int(whole[2:4]), int(whole[4:] or 0), fraction)

    def _date(self, part: str) -> None:
        """A date with separators: first the name of a month in it, then the numbers."""
        parts = re.findall(r"\d+|[a-z]+", part)
        if not 2 <= len(parts) <= 3 or self.told & {"time", "era", "half", "weekday"}:
            raise Bad
        named, self.named_month = self.named_month, False
        for word in parts:
            if word.isalpha():
                if word not in MONTHS:
                    raise Bad
                self._tell("month")
                self.month, self.named_month = MONTHS[word], True
        for number in filter(str.isdigit, parts):
            if self.told >= _DATE:
                raise Bad
            self._in_turn(number)
        self.named_month = named
        if not self.told >= _DATE:
            raise Bad

    def _in_turn(self, part: str) -> None:
        """A number whose meaning follows from what is known of the date."""
        if not part.isdigit():
            raise Bad
        known, value, long = self.told & _DATE, int(part), len(part) > 2
        if known == _DATE:
            self._together(part, dated=True)
        elif len(part) == 3 and known == {"year"} and 1 <= value <= 366:
            self.told |= {"month", "day"}
            self.of_year = value
        elif (not known and long) or (known == {"month"} and self.named_month and long) or known == {"month", "day"}:
            self._tell("year")
            self.year, self.two_digits = value, not long
        elif not known or known == {"year"} or known == {"day"}:
            self._tell("month")
            self.month = value
        elif known == {"year", "month"} and self.named_month and long and self.two_digits:
            self._tell("day")  # the first number was the day
            self.day, self.year, self.two_digits = self.year, value, False
        else:
            self._tell("day")
            self.day = value
