"""Quotients of numerics: each row rounded to the decimals that PostgreSQL gives it, in a column that has room for them.

Arrow truncates a quotient, and rounding needs one digit more than the result has. So the quotient gets one decimal
more than the column, and is rounded from there: the answer is exact. If 76 digits do not suffice, the arguments are
first narrowed to the digits that their values have, and then the rows are computed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.kernels import computing
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.quotients import nearest_whole
from halfjoin.engine.scalar.values import Datum, Kernel, broadcast, call, count, fail_where, on_arrays
from halfjoin.engine.scalar.weights import decimals_of_quotients
from halfjoin.sql.functions.decimal_places import Number, decimals_of_quotient
from halfjoin.sql.types import STORED_DIGITS, WORKING_DIGITS

OVERFLOW = "numeric field overflow"
_EXACT = Context(prec=400)


def division(types: Sequence[Any], result: Any) -> Kernel:
    """The kernel of `/` on two decimal types. `result`: the type of the column."""
    exact = each_row(_quotient(types, result.scale), result)
    compute = call("divide_checked")
    (p1, s1), (p2, s2), scale = *((t.precision, t.scale) for t in types), result.scale

    def run(a: Datum, b: Datum) -> Datum:
        length = count(a, b)
        if isinstance(a, pa.Array) or isinstance(b, pa.Array):
            made = computing.quotients(broadcast(a, 1), broadcast(b, 1), length, result)
            if made is not None:
                return made
        fail_where(pc.equal(b, pa.scalar(0, b.type)), "division by zero")
        p, q = p1, p2
        if _quotient_digits(p, s1, q, s2, scale)[1] > WORKING_DIGITS:
            p, q = _digits(a), _digits(b)
        left, needed = _quotient_digits(p, s1, q, s2, scale)
        if needed > WORKING_DIGITS:
            return exact(a, b)
        make = pa.decimal256 if needed > STORED_DIGITS else pa.decimal128
        quotient = compute(a.cast(make(max(p - s1, 0) + left, left)), b.cast(make(q, s2)))
        found = _rounded(quotient, np.minimum(decimals_of_quotients(a, b, length), scale))
        try:
            return found.cast(result)
        except pa.ArrowInvalid:
            raise Failed(OVERFLOW) from None

    return run


def _rounded(quotients: Datum, decimals: Any) -> Datum:
    """Each quotient with its own number of decimals, halves away from zero."""
    found = quotients
    for places in np.unique(decimals):
        rounded = call("round", pc.RoundOptions(int(places), "half_towards_infinity"))(quotients)
        here = decimals == places
        found = rounded if here.all() else pc.if_else(pa.array(here), rounded, found)
    return found


def _quotient_digits(p: int, s1: int, q: int, s2: int, scale: int) -> tuple[int, int]:
    """The dividend's decimals that give Arrow's quotient more than `scale` decimals, and that quotient's precision."""
    left = max(s1, scale - q + s2)
    return left, p - s1 + s2 + max(4, left + q - s2 + 1)


def _digits(datum: Datum) -> int:
    """The digits of the widest value, with its decimals. At least as many as the type has decimals."""
    limits = pc.min_max(datum) if not isinstance(datum, pa.Scalar) else {"min": datum, "max": datum}
    found = [len(limits[name].as_py().as_tuple().digits) for name in ("min", "max") if limits[name].is_valid]
    return max(1, int(datum.type.scale), *found)


def _quotient(types: Sequence[Any], scale: int) -> Callable[[Decimal, Decimal], Decimal]:
    first, second = (type.scale for type in types)

    def of(a: Decimal, b: Decimal) -> Decimal:
        units = quotient_units((int(a.scaleb(first, _EXACT)), first), (int(b.scaleb(second, _EXACT)), second), scale)
        return Decimal(units).scaleb(-scale, _EXACT)

    return of


def quotient_units(a: Number, b: Number, scale: int) -> int:
    """a / b rounded to PostgreSQL's decimals, or to `scale` if these are fewer; in units of `scale` decimals.

    >>> quotient_units((2, 0), (3, 0), 22), quotient_units((200000, 0), (3, 0), 16)
    (6666666666666666666700, 666666666666666670000)
    """
    places = min(scale, decimals_of_quotient(a, b))
    return nearest_whole(a[0] * _power(places + b[1]), b[0] * _power(a[1])) * _power(scale - places)


def _power(exponent: int) -> int:
    return int(10**exponent)


def each_row(compute: Callable[[Decimal, Decimal], Decimal], result: Any) -> Kernel:
    """The function row by row. Rows whose values the type does not hold fail."""
    limit = Decimal(10) ** (result.precision - result.scale)

    @on_arrays
    def run(a: Any, b: Any) -> Datum:
        values: list[Decimal | None] = []
        outside = np.zeros(len(a), np.bool_)
        for i, (x, y) in enumerate(zip(a.to_pylist(), b.to_pylist(), strict=True)):
            value = None if x is None or y is None else compute(x, y)
            if value is not None and value.copy_abs() >= limit:
                value, outside[i] = None, True
            values.append(value)
        if outside.any():
            raise Failed(OVERFLOW, outside)
        return pa.array(values, result)

    return run
