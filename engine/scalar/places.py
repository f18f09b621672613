"""How many decimals PostgreSQL gives roots, powers and logarithms: 16 significant ones, by an estimate."""

from __future__ import annotations

import math
from decimal import Context, Decimal

from halfjoin.engine.scalar.weights import SIGNIFICANT, Number, leading

_EXACT = Context(prec=200)
_LOG10_E = 0.434294481903252
_GROUP = 4


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
        return _GROUP * weight + int(math.log10(first))
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
