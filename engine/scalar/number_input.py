"""The kernel of to_number: it reads a number from a text by a pattern, as leniently as PostgreSQL.

The text is read from the left, one step for each field of the pattern. A digit's field that finds no digit reads one
character all the same; a field of a text skips one character, whatever it is.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.division import OVERFLOW
from halfjoin.engine.scalar.each import Bad, each
from halfjoin.engine.scalar.values import Kernel
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.functions.number_format import NumberFormat, number_format

_DIGITS = frozenset("0123456789")
_OF_NUMBERS = frozenset("0123456789.,+-")  # what L, TH, PL and the like do not skip
_SIGNS = {"MI": "-", "PL": "+", "SG": "-+"}
_NUMBER = re.compile(r"[ +-]?(\d+\.?\d*|\.\d+)")
_EXACT = Context(prec=200)


def to_number(expr: Call) -> Kernel:
    """The kernel of to_number(text, constant pattern)."""
    pattern = expr.args[1]
    assert isinstance(pattern, Literal)
    type = arrow_type(expr.type)
    if not pattern.value:  # NULL or the empty pattern gives NULL
        return each(lambda *_: None, type)
    found = number_format(str(pattern.value))
    return each(lambda text, _: _Reader(found, text).number(), type)


class _Reader:
    """A text that is read from the left: its sign, its digits, and how many are before and after the point."""

    def __init__(self, pattern: NumberFormat, text: str) -> None:
        self.pattern, self.text, self.at = pattern, text, 0
        self.sign, self.read = " ", ""
        self.before = self.after = 0
        self.point = False  # whether a point has been read

    def number(self) -> Decimal:
        """The number. The fields before the point say how many digits it has at most."""
        for field in self.pattern.fields:
            if self._ended():
                break
            self._field(field)
        written = self.sign + (self.read[:-1] if self.read.endswith(".") else self.read)
        if not _NUMBER.fullmatch(written):
            raise Bad(f'invalid input syntax for type numeric: "{written}"')
        value = Decimal(written.strip())
        shift = self.pattern.shift
        if value.copy_abs() >= Decimal(10) ** (self.pattern.before + shift):
            raise Bad(OVERFLOW)
        return value.scaleb(-shift, _EXACT)

    def _ended(self) -> bool:
        return self.at >= len(self.text)

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _field(self, field: str) -> None:
        if field.startswith("'"):
            self.at += len(field) - 1
        elif field in ("9", "0", ".", "D"):
            self._digit(field in ("9", "0"))
            self.at += 1
        elif field in (",", "G"):
            if "FM" not in self.pattern.words and self._next() == ",":
                self.at += 1
        elif field == "L":
            self._skip(1)
        elif field.upper() == "TH":
            if not (self.sign == "-" or self.pattern.decimal):
                self._skip(2)
        elif field in _SIGNS:
            if self._next() in _SIGNS[field]:
                self.sign = self._next()
                self.at += 1
            else:
                self._skip(1)

    def _skip(self, count: int) -> None:
        for _ in range(count):
            if self._ended() or self._next() in _OF_NUMBERS:
                return
            self.at += 1

    def _digit(self, is_digit: bool) -> None:
        """Read a digit or the point, and a sign before the first or behind it. `at` is left on the last one read."""
        if self._next() == " ":
            self.at += 1
        if self._ended():
            return
        words = self.pattern.words
        signed = self._next() in ("-", "+") or ("PR" in words and self._next() == "<")
        if signed and self.sign == " " and is_digit and not (self.before or self.after):
            self.sign = "+" if self._next() == "+" else "-"
            self.at += 1
        if self._ended():
            return
        found = self._next() in _DIGITS
        if found:
            if self.point and self.after == self.pattern.after:
                return
            self.read += self._next()
            self.before, self.after = self.before + (not self.point), self.after + self.point
        elif self.pattern.decimal and not self.point and self._next() == ".":
            self.read += "."
            self.point = found = True
        if self.sign == " " and (self.before or self.after):
            self._sign_behind(found)

    def _sign_behind(self, found: bool) -> None:
        words = self.pattern.words
        if "S" in words:
            if found and self.text[self.at + 1 : self.at + 2] in ("-", "+"):
                self.sign = self.text[self.at + 1]
                self.at += 1
        elif not found and words & {"PL", "MI", "SG"} and self._next() in ("-", "+"):
            self.sign = self._next()
