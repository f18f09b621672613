"""The kernels of to_date and to_timestamp: they read dates from text by a pattern, as leniently as PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.each import Bad, each
from halfjoin.engine.scalar.values import Kernel
from halfjoin.engine.updates.intervals import DAY
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.calendar import FIRST_DAY, LAST_DATE, civil, days_of, holds_moment, month_length
from halfjoin.sql.functions.date_input import OF_MONTHS, OF_WEEKS, WIDTHS, Step, input_steps

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_ROMAN = ("xii", "xi", "x", "ix", "viii", "vii", "vi", "v", "iv", "iii", "ii", "i")
_HALVES = {"AM": ("am", "pm"), "PM": ("am", "pm"), "A.M.": ("a.m.", "p.m."), "P.M.": ("a.m.", "p.m.")}
_ERAS = {"BC": ("bc", "ad"), "AD": ("bc", "ad"), "B.C.": ("b.c.", "a.d."), "A.D.": ("b.c.", "a.d.")}
_SPACES = " \t\n\r\v\f"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_THOUSANDS = re.compile(r"([+-]?[0-9]{1,6}),([0-9]{1,3})")
_FROM_2000 = 946_684_800_000_000
_FRACTIONS = {"MS": 3, "US": 6, **{f"FF{digits}": 6 for digits in range(1, 7)}}


class _Reader:
    """A text that is read from the left, and the fields that are found."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.found: dict[str, int] = {}
        self.weeks = self.months = False  # whether a field was of an ISO week, or of a month

    def read(self, steps: tuple[Step, ...]) -> None:
        """Read the fields. Blanks between fields do not count; a separator matches any separator, or nothing."""
        extra = 0
        for i, step in enumerate(steps):
            if self.at >= len(self.text):
                break
            field = step.name not in ("-", "c")
            if field or i == 0:
                extra += self._skip()
            if step.name == "-":
                extra -= 1
                if self._at_separator():
                    self.at, extra = self.at + 1, extra + 1
            elif step.name == "c":
                if extra > 0:
                    extra -= 1
                else:
                    self.at += 1
            else:
                self._field(step, extra > 0)
                if step.ordinal and self.at < len(self.text):
                    self.at += 2
                extra = self._skip()

    def _at_separator(self) -> bool:
        char = self.text[self.at : self.at + 1]
        return char in _SPACES or ("!" <= char <= "~" and not char.isalnum())

    def _skip(self) -> int:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in _SPACES:
            self.at += 1
        return self.at - start

    def _field(self, step: Step, skipped: bool) -> None:
        """Read a field; `skipped`: whether more was skipped before it than the pattern has."""
        name = step.name
        self.weeks, self.months = self.weeks or name in OF_WEEKS, self.months or name in OF_MONTHS
        if self.weeks and self.months:
            raise Bad("invalid combination of date conventions")
        if name == "Y,YYY":
            self._thousands()
        elif name in WIDTHS:
            self._number(step)
        elif name in ("MONTH", "MON"):
            self._set("month", self._word(_MONTHS, 3 if name == "MON" else None, name) + 1)
        elif name in ("DAY", "DY"):
            self._set("weekday", self._word(_DAYS, 3 if name == "DY" else None, name) + 1)
        elif name in _HALVES:
            self._set("half", self._word(_HALVES[name], None, name) + 1)
        elif name in _ERAS:
            self._set("era", self._word(_ERAS[name], None, name) + 1)
        elif name == "RM":
            self._set("month", 12 - self._word(_ROMAN, None, name))
        else:
            self._zone(step, skipped)

    def _number(self, step: Step) -> None:
        name, width, start = step.name, WIDTHS.get(step.name, 2), self.at
        given = self.text[start : start + width] if not step.greedy else self.text[start:]
        if not step.greedy and len(given) < width:
            raise Bad(f'source string too short for "{name}" formatting field')
        digits = _INTEGER.match(given)
        if digits is None or (not step.greedy and digits.end() < width):
            raise Bad(f'invalid value "{given[:width]}" for "{name}"')
        value, size = int(digits[0]), digits.end()
        if abs(value) >= 1 << 31:
            raise Bad(f'value for "{name}" in source string is out of range')
        self.at += size
        if name in _FRACTIONS:
            value *= 10 ** max(_FRACTIONS[name] - size, 0) if name != "MS" or size < 3 else 1
            self.found["digits"] = int(name[2]) if name[:2] == "FF" else 0
        elif name in _SHORT_YEARS and size < 4:
            value += next((more for below, more in _NEAR_2020 if value < below), 0)
        elif name == "ID":
            value = value + 1 if value < 7 else 1  # Sunday is the first day here, and the last one of an ISO week
        if name in ("HH", "HH12"):
            self.found["twelve"] = 1
        if name in ("YY", "Y", "IY", "I"):
            self.found["in century"] = 1
        self._set(_MEANING.get(name, name), value)

    def _thousands(self) -> None:
        """The year of Y,YYY: thousands, a comma, and at most three digits."""
        digits = _THOUSANDS.match(self.text, self.at)
        if digits is None:
            raise Bad('invalid input string for "Y,YYY"')
        self.at = digits.end()
        self._set("year", int(digits[1]) * 1000 + int(digits[2]))

    def _word(self, words: tuple[str, ...], width: int | None, name: str) -> int:
        rest = self.text[self.at : self.at + 10].lower()
        for i, word in enumerate(words):
            if rest.startswith(word[:width]):
                self.at += len(word[:width])
                return i
        raise Bad(f'invalid value "{self.text[self.at : self.at + 10].split(" ")[0]}" for "{name}"')

    def _zone(self, step: Step, skipped: bool) -> None:
        char = self.text[self.at : self.at + 1]
        if step.name == "TZH":
            signed = char != "" and char in "+- "
            if not signed and skipped:  # a minus may have been skipped as a separator
                char = self.text[self.at - 1]
            self.found["west"] = 1 if char == "-" else 0
            self.at += signed
        self._number(step)
        if not 0 <= self.found[step.name] < (16 if step.name == "TZH" else 60):
            raise self._beyond()

    def _set(self, name: str, value: int) -> None:
        if self.found.get(name, 0) not in (0, value):
            raise Bad(f'conflicting values for "{name}" field in formatting string')
        self.found[name] = value

    def micros(self) -> int:
        """The time in microseconds since 1970, of the fields in UTC unless there is an offset. FF1 to FF6 round it."""
        found = self.found
        offset = (found.get("TZH", 0) * 60 + found.get("TZM", 0)) * (-1 if found.get("west") else 1)
        moment = self.day() * DAY + self._clock() - offset * 60_000_000
        if not holds_moment(moment):
            raise Bad("timestamp out of range")
        unit: int = 10 ** (6 - (found.get("digits") or 6))
        since = moment - _FROM_2000
        size = (abs(since) + unit // 2) // unit * unit  # a half rounds away from the year 2000
        return _FROM_2000 + (size if since >= 0 else -size)

    def day(self) -> int:
        """The day of the fields in days since 1970, whatever the offset says."""
        self._clock()
        found = self.found
        year = self._year()
        month, day = found.get("month") or 1, found.get("DD") or 1
        if found.get("J"):
            year, month, day = civil(found["J"] + FIRST_DAY)
        if found.get("IW"):
            return self._kept(_week(year, found["IW"]) + (found.get("weekday", 2) + 5) % 7)
        if found.get("IDDD"):
            return self._kept(_week(year, 1) + found["IDDD"] - 1)
        if found.get("WW"):
            found["DDD"] = (found["WW"] - 1) * 7 + 1
        if found.get("W"):
            day = (found["W"] - 1) * 7 + 1
        if found.get("DDD") and (month <= 1 or day <= 1):
            if "year" not in found and found.get("era") != 1:
                raise Bad("cannot calculate day of year without year information")
            count = sum(month_length(year, number) for number in range(1, 13))
            if not 1 <= found["DDD"] <= count:
                raise self._beyond()
            year, month, day = civil(days_of(year, 1, 1) + found["DDD"] - 1)
        if not 1 <= month <= 12 or not 1 <= day <= month_length(year, month):
            raise self._beyond()
        return self._kept(days_of(year, month, day))

    def _kept(self, days: int) -> int:
        if not FIRST_DAY <= days <= LAST_DATE:
            raise self._beyond()
        return days

    def _year(self) -> int:
        year, century, before = self.found.get("year", 0), self.found.get("CC", 0), self.found.get("era") == 1
        if before:
            year, century = -year, -century
        if century and not year:
            return (century - 1) * 100 + 1 if century > 0 else century * 100 + 1
        if century and "in century" in self.found:
            year = abs(year) % 100
            if not year:
                return century * 100 + (century < 0)
            return (century - 1) * 100 + year if century > 0 else (century + 1) * 100 - year + 1
        return year + 1 if year < 0 else year

    def _clock(self) -> int:
        found = self.found
        hour, minute, second = found.get("hour", 0), found.get("MI", 0), found.get("SS", 0)
        if found.get("seconds"):
            hour, minute, second = found["seconds"] // 3600, found["seconds"] // 60 % 60, found["seconds"] % 60
        if "twelve" in found or "half" in found:
            if not 1 <= hour <= 12:
                raise Bad(f'hour "{hour}" is invalid for the 12-hour clock')
            hour = hour % 12 + (12 if found.get("half") == 2 else 0)
        micros = found.get("MS", 0) * 1000 + found.get("US", 0)
        if not 0 <= hour < 24 or not 0 <= minute < 60 or not 0 <= second < 60 or not 0 <= micros < 1_000_000:
            raise self._beyond()
        return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros

    def _beyond(self) -> Bad:
        return Bad(f'date/time field value out of range: "{self.text}"')


def _week(year: int, week: int) -> int:
    """The Monday of a week of a year, in days since 1970. The first week has 4 January."""
    fourth = days_of(year, 1, 4)
    return fourth - (fourth + 3) % 7 + (week - 1) * 7


_SHORT_YEARS = ("YYY", "YY", "Y", "IYY", "IY", "I")
_NEAR_2020 = ((70, 2000), (100, 1900), (520, 2000), (1000, 1000))  # what completes a year below a bound
_MEANING = {
    "HH": "hour", "HH12": "hour", "HH24": "hour", "MM": "month", "YYYY": "year", "YYY": "year", "YY": "year",
    **dict.fromkeys(("Y", "IYYY", "IYY", "IY", "I"), "year"), "D": "weekday", "ID": "weekday",
    "SSSS": "seconds", "SSSSS": "seconds", **{f"FF{digits}": "US" for digits in range(1, 7)},
}  # fmt: skip


def _read(text: str, pattern: str) -> _Reader:
    try:
        steps = input_steps(pattern)
    except UnsupportedSQL as error:
        raise Bad(error.reason) from None
    reader = _Reader(text)
    reader.read(steps)
    return reader


def _to_date(_: Call) -> Kernel:
    return each(lambda text, pattern: _read(text, pattern).day(), pa.date32())


def to_timestamp(expr: Call) -> Kernel:
    """The kernel of to_timestamp(text, pattern)."""
    return each(lambda text, pattern: _read(text, pattern).micros(), arrow_type(expr.type))


DATE_INPUT: dict[str, Callable[[Call], Kernel]] = {"to_date": _to_date}
