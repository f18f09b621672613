"""Kernels of variances, covariances and regressions, from kept sums of values and of products.

A variance is the difference of two numbers that may have all digits of a float in common. So it is computed from the
exact integers, and rounded once. With sums X, Y and XY of n pairs in units u and u^2, the integer n * XY - X * Y is n
times the sum of (x - mean x) * (y - mean y), in units of u^2. A kernel does so for many groups; those that are not
plain, as with NaN or with an error, are left to Python's integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from math import isqrt, nan
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from halfjoin.engine.kernels import computing
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.division import OVERFLOW, quotient_units
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.kept import exact
from halfjoin.engine.scalar.lifting import FLOAT_UNIT
from halfjoin.engine.scalar.values import Datum, Kernel, on_arrays
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.functions.decimal_places import decimals_of_quotient
from halfjoin.sql.functions.sum_results import SUM_RESULTS

Sum: TypeAlias = int | None  # None if a value is NaN or infinite
Ratio: TypeAlias = tuple[int, int, int]  # a numerator, a denominator, and a power of the unit
Moment: TypeAlias = Ratio | float | None  # a float if it is NaN or a constant; None for NULL

_EXACT = Context(prec=100)
_GUARD = 130  # the bits of a root before it is rounded to a float
_ROOTS = ("stddev_pop", "stddev_samp", "corr")


class _Wrong(Exception):
    """A group has no result; the text is the reason."""


def _centred(n: int, x: Sum, y: Sum, xy: Sum) -> Sum:
    return None if x is None or y is None or xy is None else n * xy - x * y


def _over(centred: Sum, denominator: int, power: int = 2) -> Moment:
    return nan if centred is None else (centred, denominator, power)


def _population(n: int, x: Sum, y: Sum, xy: Sum) -> Moment:
    return _over(_centred(n, x, y, xy), n * n)


def _sample(n: int, x: Sum, y: Sum, xy: Sum) -> Moment:
    return _over(_centred(n, x, y, xy), n * (n - 1)) if n != 1 else None


def _slope(n: int, x: Sum, y: Sum, xx: Sum, xy: Sum) -> Moment:
    square = _centred(n, x, x, xx)
    return None if square == 0 else nan if square is None else _over(_centred(n, x, y, xy), square, 0)


def _intercept(n: int, x: Sum, y: Sum, xx: Sum, xy: Sum) -> Moment:
    square, product = _centred(n, x, x, xx), _centred(n, x, y, xy)
    if square == 0:
        return None
    if square is None or product is None or x is None or y is None:
        return nan
    return y * square - x * product, n * square, 1


def _determination(constant: float | None) -> Callable[..., Moment]:
    """The square of the correlation; its numerator has the sign of the correlation. `constant`: of a constant y."""

    def of(n: int, x: Sum, y: Sum, xx: Sum, yy: Sum, xy: Sum) -> Moment:
        first, second, product = _centred(n, x, x, xx), _centred(n, y, y, yy), _centred(n, x, y, xy)
        if first == 0:
            return None
        if second == 0:
            return constant
        if first is None or second is None or product is None:
            return nan
        return product * abs(product), first * second, 0

    return of


_FORMULAS: dict[str, Callable[..., Moment]] = {
    "var_pop": lambda n, x, xx: _population(n, x, x, xx),
    "var_samp": lambda n, x, xx: _sample(n, x, x, xx),
    "stddev_pop": lambda n, x, xx: _population(n, x, x, xx),
    "stddev_samp": lambda n, x, xx: _sample(n, x, x, xx),
    "regr_sxx": lambda n, x, xx: _over(_centred(n, x, x, xx), n),
    "regr_sxy": lambda n, x, y, xy: _over(_centred(n, x, y, xy), n),
    "covar_pop": _population,
    "covar_samp": _sample,
    "regr_slope": _slope,
    "regr_intercept": _intercept,
    "regr_r2": _determination(1.0),
    "corr": _determination(None),
}


def _kernel(expr: Call) -> Kernel:
    """The kernel of a call: a count, sums, and for exact numbers the digits of the values."""
    name, family = expr.function.split(" of ")
    formula, type = _FORMULAS[name], arrow_type(expr.type)
    exactly = family == "integers"
    finish = _as_numeric(expr, name in _ROOTS) if exactly else _as_float(name)
    given = _decimals(expr) if exactly else None

    def by_kernel(count: Any, sums: Sequence[Any]) -> Datum | None:
        made = computing.spread(name, count, [*sums], type, given)
        if made is None:
            return None
        array, left = made
        if not left.any():
            return array
        few = pa.array(np.flatnonzero(left))
        try:
            others = each(count.take(few), [one.take(few) for one in sums])
        except Failed:  # it is to name the rows
            return None
        places = np.arange(len(array))
        places[left] = len(array) + np.arange(len(few))
        return pa.concat_arrays([array, others]).take(pa.array(places))

    @on_arrays
    def run(count: Any, *rest: Any) -> Datum:
        sums = rest[:-2] if exactly else rest
        made = by_kernel(count, sums)
        return each(count, sums) if made is None else made

    def each(count: Any, sums: Sequence[Any]) -> Datum:
        results: list[Any] = []
        wrong: dict[str, list[int]] = {}
        for i, (n, *kept) in enumerate(zip(*(array.to_pylist() for array in (count, *sums)), strict=True)):
            moment = formula(n, *map(exact, kept)) if n and None not in kept else None
            try:
                results.append(finish(moment) if isinstance(moment, tuple) else moment)
            except _Wrong as problem:
                results.append(None)
                wrong.setdefault(str(problem), []).append(i)
        for message, rows in wrong.items():  # the rows of the others come in the next call, without these
            raise Failed(message, np.isin(np.arange(len(results)), rows))
        return pa.array(results, type)

    return run


def _decimals(expr: Call) -> int:
    """The decimals of exact values."""
    scale = expr.args[-1]
    assert isinstance(scale, Literal) and isinstance(scale.value, int)
    return scale.value


def _as_numeric(expr: Call, root: bool) -> Callable[[Ratio], Decimal]:
    """Rounds a ratio as PostgreSQL rounds quotients, and then its root to as many decimals; halves away from zero."""
    digits, places, limit = _decimals(expr), expr.type.scale or 0, 10 ** (expr.type.precision or 0)

    def finish(ratio: Ratio) -> Decimal:
        numerator, denominator, power = _positive(ratio)
        dividend, divisor = (numerator, power * digits), (denominator, 0)
        if not root:
            whole = quotient_units(dividend, divisor, places)
        else:
            _check_root(numerator)
            decimals = decimals_of_quotient(dividend, divisor)
            kept = min(decimals, places)
            square = quotient_units(dividend, divisor, decimals) * 10 ** max(2 * kept - decimals, 0)
            unit = 10 ** max(decimals - 2 * kept, 0)
            whole = isqrt(square // unit)
            whole += (2 * whole + 1) ** 2 * unit <= 4 * square
            whole *= 10 ** (places - kept)
        if abs(whole) >= limit:
            raise _Wrong(OVERFLOW)
        return Decimal(whole).scaleb(-places, _EXACT)

    return finish


def _as_float(name: str) -> Callable[[Ratio], float]:
    """Rounds a ratio, or its root, to the nearest float."""

    def finish(ratio: Ratio) -> float:
        numerator, denominator, power = _positive(ratio)
        denominator <<= FLOAT_UNIT * power
        try:
            if name == "regr_r2":
                return abs(numerator) / denominator
            if name not in _ROOTS:
                return numerator / denominator
            if name != "corr":
                _check_root(numerator)
            root = _root(abs(numerator), denominator)
            return -root if numerator < 0 else root
        except OverflowError:
            raise _Wrong("value out of range: overflow") from None

    return finish


def _root(numerator: int, denominator: int) -> float:
    """The root of a ratio, to the nearest float: its first bits, and a last bit that says whether there are more."""
    shift = max((_GUARD - numerator.bit_length() + denominator.bit_length()) // 2, 0)
    whole, rest = divmod(numerator << 2 * shift, denominator)
    root = isqrt(whole)
    more = rest != 0 or root * root != whole
    return (2 * root + more) / (1 << (shift + 1))


def _positive(ratio: Ratio) -> Ratio:
    """The same ratio with a positive denominator. It is negative after the deletion of rows that were not there."""
    numerator, denominator, power = ratio
    return ratio if denominator > 0 else (-numerator, -denominator, power)


def _check_root(numerator: int) -> None:
    if numerator < 0:
        raise _Wrong("cannot take square root of a negative number")


SPREAD: dict[str, Callable[[Call], Kernel]] = {
    entry.name: _kernel for entry in SUM_RESULTS if entry.name.partition(" of ")[0] in _FORMULAS
}
