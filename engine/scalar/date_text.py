"""The kernel of to_char: it makes an array of text for each field and joins these arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from halfjoin.engine.scalar.number_text import ordinal
from halfjoin.engine.scalar.values import Kernel, call, on_arrays, raw
from halfjoin.engine.updates.intervals import DAY
from halfjoin.sql.functions.date_format import tokens
from halfjoin.sql.types import Kind

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_join = call("binary_join_element_wise", pc.JoinOptions("emit_null"))
_Numbers = NDArray[np.int64]


class _Parts:
    """The calendar fields of timestamps."""

    def __init__(self, micros: _Numbers) -> None:
        self.days, self.clock = np.divmod(micros, DAY)
        self.date = self.days.astype("datetime64[D]")
        months = self.date.astype("datetime64[M]").astype(np.int64)
        years, self.month = months // 12 + 1970, months % 12 + 1
        self.year, self.century = _counted(years), np.where(years > 0, (years + 99) // 100, -(-years // 100) - 1)
        self.after_christ = (years > 0).astype(np.int64)
        self.day = self.days - self.date.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + 1
        self.day_of_year = self.days - self.date.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64) + 1
        self.hour = self.clock // 3_600_000_000
        self.weekday = (self.days + 4) % 7
        thursday = self.days - (self.days + 3) % 7 + 3
        iso = thursday.astype("datetime64[D]").astype("datetime64[Y]")
        self.iso_year = _counted(iso.astype(np.int64) + 1970)
        self.iso_week = (thursday - iso.astype("datetime64[D]").astype(np.int64)) // 7 + 1


def _counted(years: _Numbers) -> _Numbers:
    """Years as to_char prints them: years before Christ count backwards from 1, without a sign."""
    counted: _Numbers = np.where(years > 0, years, 1 - years)
    return counted


def _ordinals(texts: Any, ending: str) -> Any:
    codes = texts.dictionary_encode()
    made = [text + ordinal(text, ending) for text in codes.dictionary.to_pylist()]
    return pa.array(made, pa.string()).take(codes.indices)


# What a zone's fields show: the zone is UTC.
_ZONES = {"TZ": "", "tz": "", "OF": "+00", "TZH": "+00", "TZM": "00"}
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")

# Field: its number, and the width to which zeros fill it.
_NUMBERS: dict[str, tuple[Callable[[_Parts], _Numbers], int]] = {
    "YYYY": (lambda p: p.year, 4), "YYY": (lambda p: p.year % 1000, 3), "YY": (lambda p: p.year % 100, 2),
    "Y": (lambda p: p.year % 10, 1), "IYYY": (lambda p: p.iso_year, 4), "MM": (lambda p: p.month, 2),
    "DD": (lambda p: p.day, 2), "DDD": (lambda p: p.day_of_year, 3), "D": (lambda p: p.weekday + 1, 1),
    "ID": (lambda p: (p.weekday + 6) % 7 + 1, 1), "IW": (lambda p: p.iso_week, 2),
    "WW": (lambda p: (p.day_of_year - 1) // 7 + 1, 2), "W": (lambda p: (p.day - 1) // 7 + 1, 1),
    "IDDD": (lambda p: p.days - _iso_start(p) + 1, 3), "IYY": (lambda p: p.iso_year % 1000, 3),
    "IY": (lambda p: p.iso_year % 100, 2), "I": (lambda p: p.iso_year % 10, 1),
    "FF1": (lambda p: p.clock % 1_000_000 // 100_000, 1), "FF2": (lambda p: p.clock % 1_000_000 // 10_000, 2),
    "FF3": (lambda p: p.clock % 1_000_000 // 1000, 3), "FF4": (lambda p: p.clock % 1_000_000 // 100, 4),
    "FF5": (lambda p: p.clock % 1_000_000 // 10, 5), "FF6": (lambda p: p.clock % 1_000_000, 6),
    "Q": (lambda p: (p.month - 1) // 3 + 1, 1), "CC": (lambda p: p.century, 2),
    "J": (lambda p: p.days + 2_440_588, 1), "HH24": (lambda p: p.hour, 2),
    "HH12": (lambda p: (p.hour + 11) % 12 + 1, 2), "HH": (lambda p: (p.hour + 11) % 12 + 1, 2),
    "MI": (lambda p: p.clock // 60_000_000 % 60, 2), "SS": (lambda p: p.clock // 1_000_000 % 60, 2),
    "MS": (lambda p: p.clock // 1000 % 1000, 3), "US": (lambda p: p.clock % 1_000_000, 6),
    "SSSS": (lambda p: p.clock // 1_000_000, 1), "SSSSS": (lambda p: p.clock // 1_000_000, 1),
}  # fmt: skip

def _iso_start(parts: _Parts) -> _Numbers:
    """The day, since 1970, on which the ISO year begins."""
    start: _Numbers = parts.days - (parts.iso_week - 1) * 7 - (parts.weekday + 6) % 7
    return start


# Field (in lower case): its words, the index into them, and the width to which blanks fill it.
_WORDS: dict[str, tuple[tuple[str, ...], Callable[[_Parts], _Numbers], int]] = {
    "month": (_MONTHS, lambda p: p.month - 1, 9), "mon": (tuple(m[:3] for m in _MONTHS), lambda p: p.month - 1, 3),
    "day": (_DAYS, lambda p: p.weekday, 9), "dy": (tuple(d[:3] for d in _DAYS), lambda p: p.weekday, 3),
    "am": (("am", "pm"), lambda p: p.hour // 12, 2), "pm": (("am", "pm"), lambda p: p.hour // 12, 2),
    "rm": (_ROMAN, lambda p: p.month - 1, 4),
    "bc": (("bc", "ad"), lambda p: p.after_christ, 2), "ad": (("bc", "ad"), lambda p: p.after_christ, 2),
    "b.c.": (("b.c.", "a.d."), lambda p: p.after_christ, 4), "a.d.": (("b.c.", "a.d."), lambda p: p.after_christ, 4),
    "a.m.": (("a.m.", "p.m."), lambda p: p.hour // 12, 4), "p.m.": (("a.m.", "p.m."), lambda p: p.hour // 12, 4),
}  # fmt: skip


def moment_to_char(kind: Kind, pattern: str) -> Kernel:
    """The kernel of to_char of timestamps with a pattern; the empty pattern gives NULL."""
    if not pattern:
        return lambda _: pa.scalar(None, pa.string())
    zone = "UTC" if kind is Kind.TIMESTAMPTZ else ""
    fields = [_field(name, fill, zone) for name, fill in tokens(pattern)]
    empty = pa.scalar("")

    @on_arrays
    def run(a: Any) -> Any:
        parts = _Parts(raw(a))
        texts = [field if isinstance(field, pa.Scalar) else field(parts) for field in fields]
        blank = pc.if_else(a.is_valid(), empty, pa.scalar(None, pa.string()))
        return _join(blank, *texts, empty)

    return run


def _signed(numbers: _Numbers, pad: Kernel) -> Any:
    """The padded digits. A negative number (a century before Christ) gets a minus in front."""
    text = pad(pa.array(np.abs(numbers)).cast(pa.string()))
    negative = numbers < 0
    return pc.if_else(pa.array(negative), _join("-", text, ""), text) if negative.any() else text


def _field(name: str, fill: bool, zone: str) -> Any:
    """A field's constant text, or a function from the parts to an array of text."""
    if name.startswith("'"):
        return pa.scalar(name[1:])
    if name in _ZONES:
        if name == "OF" and fill:
            return pa.scalar("+0")
        return pa.scalar(zone.lower() if name == "tz" else zone if name == "TZ" else _ZONES[name])
    name, _, ending = name.partition("+")
    if ending:
        plain = _field(name, fill, zone)
        return lambda parts: _ordinals(plain(parts), ending)
    if name == "Y,YYY":
        return lambda parts: pa.array([f"{year // 1000},{year % 1000:03}" for year in parts.year.tolist()])
    if name in _NUMBERS:
        number, width = _NUMBERS[name]
        fixed = name in ("MS", "US") or name.startswith("FF")  # FM does not drop their zeros
        pad = call("utf8_lpad", pc.PadOptions(1 if fill and not fixed else width, "0"))
        return lambda parts: _signed(number(parts), pad)
    words, index, width = _WORDS[name.lower()]
    if name.isupper():
        words = tuple(word.upper() for word in words)
    elif name.islower():
        words = tuple(word.lower() for word in words)
    table = pa.array([word if fill else word.ljust(width) for word in words])
    return lambda parts: table.take(pa.array(index(parts)))
