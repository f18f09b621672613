"""How many decimals PostgreSQL gives a quotient, a root, a power or a logarithm: 16 significant ones, by an estimate.

PostgreSQL writes a numeric in digits of base 10000. The weight of a number is the power of 10000 that its first digit
counts. A quotient has 16 significant decimal digits or a few more: 16 - 4 * w decimals, where w is the weight that
weights and first digits of both operands promise; never fewer decimals than an operand, and never fewer than 0.

    >>> [decimals_of_quotient((dividend, 0), (3, 0)) for dividend in (1, 20, 100000)]
    [20, 16, 12]
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import TypeAlias

Number: TypeAlias = tuple[int, int]  # the digits without the point, and how many of them are after it

SIGNIFICANT = 16
GROUP = 4  # decimal digits of a digit of base 10000
_EXACT = Context(prec=200)
_LOG10_E = 0.434294481903252


def decimals_of_quotient(dividend: Number, divisor: Number) -> int:
    """The decimals of one quotient."""
    (w1, first1), (w2, first2) = leading(*dividend), leading(*divisor)
    return max(SIGNIFICANT - GROUP * (w1 - w2 - (first1 <= first2)), dividend[1], divisor[1])


def leading(number: int, scale: int) -> tuple[int, int]:
    """The weight and the value of the first digit in base 10000; (0, 0) of 0."""
    if not number:
        return 0, 0
    number = abs(number)
    weight = (len(str(number)) - 1 - scale) // GROUP
    shift = GROUP * weight + scale
    return weight, number // 10**shift if shift >= 0 else number * 10**-shift


def of_quotient(dividend: Decimal, divisor: Decimal) -> int:
    """The decimals of a quotient."""
    return decimals_of_quotient(_units(dividend), _units(divisor))


def of_root(x: Decimal) -> int:
    """The decimals of a square root: a digit of base 10000 gives two of the root's."""
    return _at_least(2 * leading(*_units(x))[0] + 1, x)


def of_exponential(x: Decimal) -> int:
    """The decimals of e to the power of x."""
    return _at_least(int(max(min(float(x) * _LOG10_E, 2000), -2000)), x)


def of_logarithm(first: Decimal, second: Decimal | None = None) -> int:
    """The decimals of a logarithm to base 10, or of the second to the base of the first."""
    base, number = (Decimal(10), first) if second is None else (first, second)
    return _at_least(_of_ln(number) - _of_ln(base), base, number)


def of_natural(x: Decimal) -> int:
    """The decimals of a natural logarithm."""
    return _at_least(_of_ln(x), x)


def of_power(base: Decimal, exponent: Decimal) -> int:
    """The decimals of a power; 16 or those of the base if the exponent is a whole number."""
    if not base or exponent == exponent.to_integral_value():
        return _at_least(0, base)
    return _at_least(int(float(exponent) * _log10(base)), base, exponent)


def _at_least(weight: int, *args: Decimal) -> int:
    return max(SIGNIFICANT - weight, 0, *(-int(arg.as_tuple().exponent) for arg in args))


def _of_ln(x: Decimal) -> int:
    """The weight, in decimal digits, of the natural logarithm's first digit; 0 for those between 0.1 and 1."""
    if Decimal("0.9") <= x <= Decimal("1.1"):
        rest = _EXACT.subtract(x, Decimal(1))
        if not rest:
            return 0
        weight, first = leading(*_units(rest))
        return GROUP * weight + int(math.log10(first))
    return int(math.log10(abs(_log10(x) * math.log(10))))


def _log10(x: Decimal) -> float:
    """The logarithm to base 10, from the first digits."""
    number, scale = _units(x)
    number = abs(number)
    dropped = max(len(str(number)) - SIGNIFICANT, 0)
    return math.log10(number // 10**dropped) + dropped - scale


def _units(x: Decimal) -> Number:
    scale = max(-int(x.as_tuple().exponent), 0)
    return int(x.scaleb(scale, _EXACT)), scale
