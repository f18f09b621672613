"""The kernel of to_char for numbers: digits are put into a pattern, one field after the other, as PostgreSQL does."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from halfjoin.engine.scalar.each import Bad, each
from halfjoin.engine.scalar.values import Kernel
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.number_format import NumberFormat, number_format
from halfjoin.sql.types import FLOATS, Kind

_EXACT = Context(prec=200, rounding=ROUND_HALF_UP)
_ROMAN = (("M", 1000), ("CM", 900), ("D", 500), ("CD", 400), ("C", 100), ("XC", 90), ("L", 50), ("XL", 40), ("X", 10),
          ("IX", 9), ("V", 5), ("IV", 4), ("I", 1))  # fmt: skip


def number_to_char(expr: Call) -> Kernel:
    """The kernel of to_char(number, pattern)."""
    kind = expr.args[0].type.kind
    most = {Kind.REAL: 6, Kind.DOUBLE: 15}.get(kind) if kind in FLOATS else None

    def run(value: Any, pattern: str) -> str:
        try:
            found = number_format(pattern)
        except UnsupportedSQL as error:
            raise Bad(error.reason) from None
        if kind in (Kind.SMALLINT, Kind.INTEGER) and "EEEE" in found.words:
            return _formatted(float(value), found, 15)
        return _formatted(value, found, most)

    return each(run, pa.string())


def _formatted(value: Any, pattern: NumberFormat, most: int | None) -> str:
    """A number in a pattern. `most`: how many digits a float has."""
    if not pattern.fields:
        return ""
    if "RN" in pattern.words:
        if most is not None and not math.isfinite(value):
            number = ""
        else:
            exact = value if most is not None else Decimal(value).quantize(Decimal(1), context=_EXACT)
            number = _roman(round(exact))
        return _Writer(pattern, number or "#" * 15, "+", 0, 0).written()
    if "EEEE" in pattern.words:
        return _scientific(value, pattern.after, most)
    before, after = pattern.before + pattern.shift, pattern.after
    if most is None:
        exact = Decimal(value).scaleb(pattern.shift, _EXACT).quantize(Decimal(1).scaleb(-after), context=_EXACT)
        text, sign = f"{exact.copy_abs():f}", "-" if exact < 0 else "+"
    else:
        value = float(value) * 10.0**pattern.shift
        whole = len(_plain(value, 0))
        after = 0 if whole >= most else min(after, most - whole)
        text, sign = _plain(value, after), "-" if math.copysign(1, value) < 0 and value == value else "+"
    whole = len(text.partition(".")[0])
    if whole > before:
        text = "#" * before + "." + "#" * after
    return _Writer(pattern, text, sign, max(before - whole, 0), before).written()


def _plain(value: float, after: int) -> str:
    """The digits of a float; NaN and infinities are letters in their places."""
    return f"{abs(value):.{after}f}".replace("nan", "NaN").replace("inf", "Infinity")


def _scientific(value: Any, after: int, most: int | None) -> str:
    if most is not None and not math.isfinite(value):
        return " #." + "#" * after + "####"
    if most is None:
        exponent = Decimal(value).adjusted() if value else 0
        mantissa = Decimal(value).scaleb(-exponent, _EXACT).quantize(Decimal(1).scaleb(-after), context=_EXACT)
        text = f"{mantissa:f}e{exponent:+03d}"
    else:
        text = f"{value:.{after}e}"
    return text if text.startswith("-") else " " + text


def _roman(number: int) -> str:
    if not 0 < number < 4000:
        return ""
    out = ""
    for letters, size in _ROMAN:
        count, number = divmod(number, size)
        out += letters * count
    return out


class _Writer:
    """Writes digits into the fields of a pattern.

    `blanks`: how many places before the point have no digit. `last`: with FM, the place of the last digit after the
    point that is not dropped.
    """

    def __init__(self, pattern: NumberFormat, digits: str, sign: str, blanks: int, before: int) -> None:
        self.pattern, self.digits, self.sign, self.blanks = pattern, digits, sign, blanks
        words = pattern.words
        self.fill = "FM" in words
        self.bracket = "PR" in words and not (self.fill and sign == "+")
        self.sign_at = pattern.sign
        self.signed = True  # whether the sign is written, or need not be
        if words & {"PL", "MI", "SG"}:
            self.signed = not ("PL" in words and not words & {"MI", "SG"})
        else:
            self.signed = sign == "+" and self.fill and not pattern.sign
            if pattern.sign == "before" and pattern.before == pattern.sign_at:
                self.sign_at = "after"
        self.count = pattern.after + before - 1 + (not self.signed and not blanks)
        self.last: int | None = None
        if self.fill and pattern.decimal and "." in digits:
            point = digits.index(".")
            kept = digits.rstrip("0")
            self.last = max(len(kept) - 1, point)
            if pattern.zeros_to > blanks:
                self.last = max(self.last, min(len(digits) - 1, pattern.zeros_to - blanks))
        self.place = self.at = 0  # of the field among the digits' fields; of the digit
        self.inside = False  # whether a digit has been written
        self.ended = False  # whether a field after the last digit has ended the text
        self.out: list[str] = []

    def written(self) -> str:
        for word in self.pattern.fields:
            if word.startswith("'"):
                self.out.append(word[1:])
            elif word in ("9", "0", ".", "D"):
                self._digit(word)
                if self.ended:
                    break
            elif word in (",", "G"):
                if self.inside or not self.fill:
                    self.out.append("," if self.inside else " ")
            elif word == "L":
                self.out.append(" ")
            elif word.upper() == "RN":
                digits = self.digits if word == "RN" else self.digits.lower()
                self.out.append(digits if self.fill else digits.rjust(15))
            elif word.upper() == "TH":
                if not (self.digits.startswith("#") or self.sign == "-" or self.pattern.decimal
                        or "RN" in self.pattern.words):  # fmt: skip
                    self.out.append(ordinal(self.digits, word))
            elif word in ("MI", "PL"):
                wanted = "-" if word == "MI" else "+"
                if self.sign == wanted or not self.fill:
                    self.out.append(wanted if self.sign == wanted else " ")
            elif word == "SG":
                self.out.append(self.sign)
        return "".join(self.out)

    def _digit(self, word: str) -> None:
        if "RN" in self.pattern.words:
            return
        self.inside = False
        zero = self.pattern.zero
        at_point = self.last is not None and self.digits[self.last] == "."
        starts = self.place >= self.blanks or (zero and self.pattern.zeros_from == self.place)
        if not self.signed and starts and (not self._leading_zero() or at_point):
            self._sign()
        if self.place < self.blanks and not (zero and self.pattern.zeros_from <= self.place):
            self.out += [] if self.fill else [" "]
        elif self.place < self.blanks:
            self.out.append("0")
            self.inside = True
        else:
            digit = self.digits[self.at : self.at + 1]
            if digit == ".":
                self.out.append(".")
            elif self.last is not None and self.at > self.last and word != "0":
                pass
            elif self._leading_zero():
                if not self.fill:
                    self.out.append(" ")
                elif at_point:
                    self.out.append("0")
            elif digit:
                self.out.append(digit)
                self.inside = True
            else:
                self.ended = True
                return
            self.at += bool(digit)
        end = self.count + bool(self.blanks) + self.pattern.decimal
        if self.last is not None and self.last == self.at:
            end = self.place
        if self.place + 1 == end:
            if self.signed and self.bracket:
                self.out.append(" " if self.sign == "+" else ">")
            elif self.sign_at == "after":
                self.out.append(self.sign)
        self.place += 1

    def _leading_zero(self) -> bool:
        """Whether the digit is the 0 of 0.1, which a 9 does not print."""
        return not self.pattern.zero and self.at == 0 and self.digits.startswith("0") and self.pattern.after > 0

    def _sign(self) -> None:
        if self.sign_at:
            if self.sign_at == "before":
                self.out.append(self.sign)
                self.signed = True
            return
        if self.bracket:
            self.out.append(" " if self.sign == "+" else "<")
        elif self.sign == "-":
            self.out.append("-")
        elif not self.fill:
            self.out.append(" ")
        self.signed = True


def ordinal(digits: str, word: str) -> str:
    """The ending of an ordinal number, in the case of TH or th."""
    if not digits[-1:].isdigit():
        raise Bad(f'"{digits}" is not a number')
    ending = {"1": "st", "2": "nd", "3": "rd"}.get(digits[-1], "th") if digits[-2:-1] != "1" else "th"
    return ending.upper() if word[0] == "T" else ending
