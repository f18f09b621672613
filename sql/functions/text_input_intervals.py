"""Parses text to intervals: numbers with units and a time of day, in any order; or ISO 8601's `P1Y2DT3H`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from halfjoin.errors import UnsupportedSQL

Interval = tuple[int, int, int]  # months, days, microseconds

_MOST_MICROS = 9_223_372_036_854_775  # the limit of 64-bit nanoseconds
_SECOND, _DAY = 1_000_000, 86_400_000_000
_UNITS: dict[str, tuple[str, str, int]] = {}  # name: the unit, the field that it adds to, and its factor
for _names, _kind, _factor in (
    ("millennium millennia mil mils", "months", 12000), ("century centuries cent c", "months", 1200),
    ("decade decades dec decs", "months", 120), ("year years yr yrs y", "months", 12),
    ("month months mon mons", "months", 1), ("week weeks w", "days", 7), ("day days d", "days", 1),
    ("hour hours hr hrs h", "micros", 3600 * _SECOND), ("minute minutes min mins m", "micros", 60 * _SECOND),
    ("second seconds sec secs s", "micros", _SECOND),
    ("millisecond milliseconds msecond mseconds msec msecs ms", "micros", 1000),
    ("microsecond microseconds usecond useconds usec usecs us", "micros", 1),
):  # fmt: skip
    _UNITS.update(dict.fromkeys(_names.split(), (_names.split()[0], _kind, _factor)))
_BELOW_A_SECOND = ("second", "millisecond", "microsecond")
_CLOCK = ("hour", "minute", *_BELOW_A_SECOND)
_BEFORE_DIGITS = ("d", "h", "m", "mon", "s", "y")  # units that a number may follow without a blank
_FIELD = re.compile(
    r"(?:(?P<sign>[+-]\s*)(?!\d+:[\d:.]*-))?(?P<clock>\d+:[\d:.]*)|(?P<signed>[+-]?\s*)(?P<years>\d+)-(?P<months>\d*)(?![\d.:-])"
    r"|(?P<number>[+-]\s*\d+(?:\.\d*)?|\d+(?:\.(?:\d+|(?![a-z])))?|\.\d+)(?![\d.:/-])"
    r"|(?P<word>[a-z]+)(?![-/.+])", re.ASCII)  # fmt: skip
_PUNCTUATION = re.compile(r"[\s!-*,;-@\[-`{-~]*", re.ASCII)
_TIME = re.compile(r"(\d+):(\d*)(?::(\d*))?(\.\d*)?", re.ASCII)
_ISO_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"
_ISO = re.compile(rf"P((?:{_ISO_NUMBER}[YMWD])*)(T(?:{_ISO_NUMBER}[HMS])*)?", re.ASCII)
_ISO_PLAIN = re.compile(r"P(\d+)-(\d+)(?:-(\d+))?(?:T(\d+):(\d+)(?::(\d+(?:\.\d*)?))?)?", re.ASCII)


def interval_of(text: str, last: str = "second", *, of_minutes: bool = False) -> Interval | None:
    """Parse `1 mon 2 days 03:04:05`, `1-2 3 04:05`, `@ 1 day ago`, `P1Y2DT3H`; None if the text is not an interval.

    The loop reads fields from last to first, since a number without a unit counts the unit `last` at the end, and days
    before a time of day or hours. `of_minutes`: `1:02` has minutes and seconds, not hours and minutes.
    """
    if text.startswith("P") and len(text.strip()) > 1:
        return _iso(text.strip())
    sums, seen, ago = _Sums(), set[str](), False
    unit: str | None = last
    given: tuple[str, ...]
    for match in reversed(_fields(text.lower()) or ()):
        if match["word"]:
            word = match["word"][:10] if match["word"].startswith(("microsecon", "millisecon")) else match["word"]
            known = _UNITS.get(word) or _UNITS.get(word + "d")
            if known is None and word != "ago":
                return None
            ago, unit = ago or known is None, known and known[0]
            continue
        if match["clock"]:
            given, unit = _CLOCK, "day"
            sign = -1 if (match["sign"] or "").startswith("-") else 1
            if not sums.take_clock(match["clock"], sign, of_minutes=of_minutes):
                return None
        elif match["years"]:
            sign, months, given = -1 if match["signed"].startswith("-") else 1, int(match["months"] or 0), ("month",)
            if months > 11:
                raise UnsupportedSQL("interval field value out of range")
            sums.months += sign * (int(match["years"]) * 12 + months)
            unit = "month"
        elif unit is None:
            return None
        else:
            given = sums.add(match["number"], unit)
            unit = "day" if unit == "hour" else unit
        if seen & set(given):
            return None
        seen |= set(given)
    return sums.settled(-1 if ago else 1) if seen else None


def _fields(body: str) -> list[re.Match[str]] | None:
    """The fields from left to right, without the punctuation between them; None if the text has anything else."""
    found: list[re.Match[str]] = []
    position = _skipped(body, 0)
    while position < len(body):
        match = _FIELD.match(body, position)
        if match is None:
            return None
        position = match.end()
        if match["word"] and body[position : position + 1].isdigit() and match["word"] not in _BEFORE_DIGITS:
            return None
        found.append(match)
        position = _skipped(body, position)
    return found


def _skipped(body: str, position: int) -> int:
    match = _PUNCTUATION.match(body, position)
    return match.end() if match else position


@dataclass
class _Sums:
    """The sums of the fields.

    As in PostgreSQL, fractions are computed in floating point and halves are rounded towards zero; and a time of day
    replaces the time that fields to its right have added.
    """

    months: int = 0
    days: int = 0
    micros: int = 0

    def add(self, number: str, name: str) -> tuple[str, ...]:
        """Add a number of units; a fraction of a month adds days, a fraction of a day adds time. Returns the units."""
        number = "".join(number.split())
        whole, _, decimals = number.lstrip("+-").partition(".")
        sign = -1 if number.startswith("-") else 1
        count, fraction = sign * int(whole or 0), sign * float(f"0.{decimals or 0}")
        if abs(count) >= 1 << 63:
            raise UnsupportedSQL("interval field value out of range")
        _unit, kind, factor = _UNITS[name]
        if kind == "months":
            self.months += count * factor
            if factor == 1:
                self._add_days(fraction, 30)
            else:
                self.months += round(fraction * (factor // 12) * 12)
        elif kind == "days":
            self.days += count * factor
            self._add_days(fraction, factor)
        else:
            self.micros += count * factor
            self._add_micros(fraction, factor)
        return _BELOW_A_SECOND if name == "second" and fraction else (name,)

    def take_clock(self, text: str, sign: int, *, of_minutes: bool = False) -> bool:
        """Set the time from `hours:minutes[:seconds]` or `minutes:seconds.fraction`; False if malformed.

        `of_minutes`: two numbers are minutes and seconds in any case.
        """
        match = _TIME.fullmatch(text)
        if match is None:
            return False
        hours, minutes, seconds = int(match[1]), int(match[2] or 0), int(match[3] or 0)
        if (match[4] or of_minutes) and match[3] is None:
            hours, minutes, seconds = 0, hours, minutes
        if minutes > 59 or seconds > 60:
            raise UnsupportedSQL("interval field value out of range")
        fraction = round(float(f"0{match[4] or ''}0") * _SECOND)
        self.micros = sign * (((hours * 60 + minutes) * 60 + seconds) * _SECOND + fraction)
        return True

    def _add_days(self, fraction: float, factor: int) -> None:
        fraction *= factor
        self.days += int(fraction)
        self._add_micros(fraction - int(fraction), _DAY)

    def _add_micros(self, fraction: float, factor: int) -> None:
        micros = math.trunc(fraction * factor)
        rest = fraction * factor - micros
        self.micros += micros + (rest > 0.5) - (rest < -0.5)

    def settled(self, sign: int) -> Interval:
        """The interval, or UnsupportedSQL if its numbers are out of range."""
        months, days, micros = sign * self.months, sign * self.days, sign * self.micros
        if abs(months) >= 1 << 31 or abs(days) >= 1 << 31 or abs(micros) > _MOST_MICROS:
            raise UnsupportedSQL("interval out of range")
        return months, days, micros


def _iso(body: str) -> Interval | None:
    """Parse `P1Y2M3DT4H5M6S` or `P0001-02-03T04:05:06`."""
    sums = _Sums()
    if plain := _ISO_PLAIN.fullmatch(body):
        for number, unit in zip(plain.groups(), ("year", "month", "day", "hour", "minute", "second"), strict=True):
            sums.add(number or "0", unit)
        return sums.settled(1)
    match = _ISO.fullmatch(body)
    if match is None:
        return None
    names = {"Y": "year", "M": "month", "W": "week", "D": "day"}
    for number, letter in re.findall(rf"({_ISO_NUMBER})([YMWD])", match[1]):
        sums.add(number, names[letter])
    for number, letter in re.findall(rf"({_ISO_NUMBER})([HMS])", match[2] or ""):
        sums.add(number, {"H": "hour", "M": "minute", "S": "second"}[letter])
    return sums.settled(1)
