"""The kernel of to_char for intervals: a field shows the years, months, days, hours, ... of an interval as they are.

Months are years and months, the time is hours, minutes and seconds; each has the sign of its part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from halfjoin.engine.scalar.each import Bad, each
from halfjoin.engine.scalar.number_text import ordinal
from halfjoin.engine.scalar.values import Kernel
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.date_format import interval_tokens

_ROMAN = ("XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I")
_HALVES = {"AM": ("AM", "PM"), "PM": ("AM", "PM"), "A.M.": ("A.M.", "P.M."), "P.M.": ("A.M.", "P.M.")}


class _Fields:
    """The parts of an interval, all with the signs of their own."""

    def __init__(self, months: int, days: int, micros: int) -> None:
        self.year, self.month = _divided(months, 12)
        self.day, self.all_days = days, months * 30 + days
        self.hour, rest = _divided(micros, 3_600_000_000)
        self.minute, rest = _divided(rest, 60_000_000)
        self.second, self.micros = _divided(rest, 1_000_000)


def _divided(number: int, by: int) -> tuple[int, int]:
    """The quotient and the remainder, both with the sign of the number."""
    whole, rest = divmod(abs(number), by)
    return (whole, rest) if number >= 0 else (-whole, -rest)


def _cut(number: int, by: int) -> int:
    return _divided(number, by)[0]


def _rest(number: int, by: int) -> int:
    return _divided(number, by)[1]


# Field: its number, and the width to which zeros fill a number that is not negative; negative ones have one more.
_NUMBERS: dict[str, tuple[Callable[[_Fields], int], int]] = {
    "HH": (lambda f: _rest(f.hour, 12) or 12, 2), "HH12": (lambda f: _rest(f.hour, 12) or 12, 2),
    "HH24": (lambda f: f.hour, 2), "MI": (lambda f: f.minute, 2), "SS": (lambda f: f.second, 2),
    "MM": (lambda f: f.month, 2), "YYYY": (lambda f: f.year, 4), "YYY": (lambda f: _rest(f.year, 1000), 3),
    "YY": (lambda f: _rest(f.year, 100), 2), "CC": (lambda f: _cut(f.year, 100), 2),
}  # fmt: skip
# Field: its number, and the width to which zeros fill it, the sign included.
_FIXED: dict[str, tuple[Callable[[_Fields], int], int]] = {
    "DDD": (lambda f: f.all_days, 3), "DD": (lambda f: f.day, 2),
    "WW": (lambda f: _cut(f.all_days - 1, 7) + 1, 2), "W": (lambda f: _cut(f.day - 1, 7) + 1, 1),
    "Y": (lambda f: _rest(f.year, 10), 1),
    **dict.fromkeys(("SSSS", "SSSSS"), (lambda f: (f.hour * 60 + f.minute) * 60 + f.second, 1)),
}  # fmt: skip
_FRACTIONS = {"MS": 3, "US": 6, **{f"FF{digits}": digits for digits in range(1, 7)}}


def _shown(fields: _Fields, name: str, fill: bool) -> str:
    """The text of a field; `fill`: FM precedes it, so it has no zeros and blanks."""
    upper = name.upper()
    if upper in _NUMBERS:
        number, width = _NUMBERS[upper]
        value = number(fields)
        # (The hour decides about the width of the hour on a 12-hour clock, and the year about that of its last digits.)
        sign = fields.hour if upper in ("HH", "HH12") else fields.year if upper in ("YYY", "YY") else value
        return f"{value:0{0 if fill else width + (sign < 0)}d}" if not fill else str(value)
    if upper in _FIXED:
        number, width = _FIXED[upper]
        return str(number(fields)) if fill else f"{number(fields):0{width}d}"
    if upper in _FRACTIONS:
        digits = _FRACTIONS[upper]
        return f"{_cut(fields.micros, 10 ** (6 - digits)):0{digits}d}"
    if upper == "Y,YYY":
        thousands, rest = _divided(fields.year, 1000)
        return f"{thousands},{rest:03d}"
    if upper == "Q":
        return str(_cut(fields.month - 1, 3) + 1) if fields.month else ""
    if upper == "RM":
        return _roman(fields, name.isupper(), fill)
    words = _HALVES[upper]
    word = words[_rest(fields.hour, 24) >= 12]
    return word if name.isupper() else word.lower()


def _roman(fields: _Fields, upper: bool, fill: bool) -> str:
    if not fields.month and not fields.year:
        return ""
    if not fields.month:
        at = 0 if fields.year >= 0 else 11
    else:
        at = -fields.month - 1 if fields.month < 0 else 12 - fields.month
    word = _ROMAN[at] if upper else _ROMAN[at].lower()
    return word if fill else word.ljust(4)


@lru_cache(maxsize=1024)
def _tokens(pattern: str) -> list[tuple[str, bool]]:
    try:
        return interval_tokens(pattern)
    except UnsupportedSQL as error:
        raise Bad(error.reason) from None


def _text(interval: tuple[int, int, int], pattern: str) -> str | None:
    if not pattern:
        return None
    fields, out = _Fields(*interval), ""
    for name, fill in _tokens(pattern):
        if name.startswith("'"):
            out += name[1:]
            continue
        bare, _, ending = name.partition("+")
        text = _shown(fields, bare, fill)
        out += text + (ordinal(text, ending) if ending and text else "")
    return out


def interval_to_char(_: Call) -> Kernel:
    """The kernel of to_char(interval, pattern)."""
    return each(_text, pa.string())
