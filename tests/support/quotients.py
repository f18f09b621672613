"""PostgreSQL's number of decimals of a quotient, from the text of the numbers: a second way beside the engine's."""

from __future__ import annotations

import math
from fractions import Fraction


def first_digit(value: Fraction) -> tuple[int, int]:
    """The power of 10000 and the value of the first digit in base 10000."""
    power, value = 0, abs(value)
    while value and value >= 10000:
        power, value = power + 1, value / 10000
    while value and value < 1:
        power, value = power - 1, value * 10000
    return power, math.floor(value)


def quotient_decimals(a: Fraction, b: Fraction, least: int) -> int:
    """The decimals of a / b, whose operands have up to `least` decimals."""
    (power, first), (other, second) = first_digit(a), first_digit(b)
    return max(16 - 4 * (power - other - (first <= second)), least)


def rounded(value: Fraction, places: int) -> Fraction:
    """The value with so many decimals, halves away from zero."""
    whole = math.floor(abs(value) * 10**places + Fraction(1, 2))
    return Fraction(whole if value >= 0 else -whole, 10**places)
