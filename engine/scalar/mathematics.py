"""Kernels of rounding, roots, powers and logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar import decimals
from halfjoin.engine.scalar.arrow_types import arrow_type, decimal_type
from halfjoin.engine.scalar.division import OVERFLOW
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.numerics import OF_NUMERIC, round_to
from halfjoin.engine.scalar.short_decimals import with_places
from halfjoin.engine.scalar.values import Datum, Kernel, any_true, call, fail_where, from_numpy, on_arrays, raw, valid
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.functions.mathematics import round_digits
from halfjoin.sql.types import WORKING_DIGITS, Kind

_is_inf, _equal, _less, _and, _or, _invert = (
    call("is_inf"), call("equal"), call("less"), call("and"), call("or"), call("invert"))  # fmt: skip

_MODES = {"round": "half_towards_infinity", "trunc": "towards_zero", "ceil": "up", "floor": "down"}


def _rounding(expr: Call) -> Kernel:
    """Round decimals, with room for a carry. Round floats to whole numbers; `round` takes halves to the even one."""
    name = expr.function
    if expr.type.kind is not Kind.NUMERIC:
        return call("round", pc.RoundOptions(0, "half_to_even" if name == "round" else _MODES[name]))
    if len(expr.args) == 2 and not isinstance(expr.args[1], Literal):
        return round_to(name, expr)
    source, result = arrow_type(expr.args[0].type), arrow_type(expr.type)
    places = round_digits(expr.args)
    null = pa.scalar(None, result)
    if places >= source.scale:
        resize = decimals.rescale(source, result)
        return lambda a, n=None: null if n is not None and not n.is_valid else resize(a)
    wide = decimal_type(min(source.precision + 1, WORKING_DIGITS), source.scale)
    compute = call("round", pc.RoundOptions(places, _MODES[name]))
    if places <= -(source.precision - source.scale):  # coarser than every digit: Arrow refuses
        beyond = _beyond(source, places, name, result)
        return lambda a, n=None: null if n is not None and not n.is_valid else beyond(a)

    def run(a: Datum, n: Datum = None) -> Datum:
        if n is not None and not n.is_valid:
            return null
        short = with_places(a, places, _MODES[name], result)
        if short is not None:
            return short
        try:
            return compute(a.cast(wide)).cast(result)
        except pa.ArrowInvalid:
            raise Failed(OVERFLOW) from None

    return run


def _beyond(source: Any, places: int, name: str, result: Any) -> Kernel:
    """Round to a unit that is larger than any value of the type. The result is one unit up or down, or 0."""
    zero = pa.scalar(Decimal(0), result)
    nearest = name == "round" and -places == source.precision - source.scale  # else a value is less than half a unit
    if name in ("round", "trunc") and not nearest:
        return lambda a: pc.if_else(pc.is_valid(a), zero, pa.scalar(None, result))
    unit = Decimal(10) ** -places
    plus, minus = pa.scalar(unit, result), pa.scalar(-unit, result)
    high, low = (pa.scalar(value, source) for value in ((unit / 2, -unit / 2) if nearest else (Decimal(0), Decimal(0))))
    reaches = pc.greater_equal if nearest else pc.greater

    def run(a: Datum) -> Datum:
        raised = zero if name == "floor" else pc.if_else(reaches(a, high), plus, zero)
        return raised if name == "ceil" else pc.if_else(reaches(low, a), minus, raised)

    return run


def _sign(expr: Call) -> Kernel:
    result, sign = arrow_type(expr.type), call("sign")
    if expr.type.kind is not Kind.NUMERIC:
        return lambda a: pc.if_else(pc.is_nan(a), 0.0, sign(a))
    return lambda a: sign(a).cast(pa.decimal128(19, 0)).cast(result)


def _sqrt(_: Call) -> Kernel:
    root = call("sqrt")

    def run(a: Datum) -> Datum:
        fail_where(_less(a, 0.0), "cannot take square root of a negative number")
        return root(a)

    return run


def _logarithm(name: str) -> Callable[[Call], Kernel]:
    compute = call(name)

    def run(a: Datum) -> Datum:
        fail_where(_equal(a, 0.0), "cannot take logarithm of zero")
        fail_where(_less(a, 0.0), "cannot take logarithm of a negative number")
        return compute(a)

    return lambda _: run


def _exp(_: Call) -> Kernel:
    compute = call("exp")

    def run(a: Datum) -> Datum:
        result = compute(a)
        _in_range(result, _is_inf(a))
        return result

    return run


def _power(_: Call) -> Kernel:
    compute, floor = call("power"), call("floor")

    def run(a: Datum, b: Datum) -> Datum:
        fail_where(_and(_equal(a, 0.0), _less(b, 0.0)), "zero raised to a negative power is undefined")
        whole = _or(_is_inf(b), _equal(floor(b), b))
        fail_where(
            _and(_and(_less(a, 0.0), _invert(whole)), _equal(b, b)),
            "a negative number raised to a non-integer power yields a complex result",
        )
        result = compute(a, b)
        _in_range(result, _or(_or(_is_inf(a), _is_inf(b)), _equal(a, 0.0)))
        return result

    return run


def _in_range(result: Datum, allowed: Datum) -> None:
    """Fail where the result is infinite or 0, unless `allowed`: finite arguments overflowed or underflowed."""
    for limit, what in ((_is_inf(result), "overflow"), (_equal(result, 0.0), "underflow")):
        if any_true(limit):
            fail_where(_and(limit, _invert(allowed)), f"value out of range: {what}")


def _cbrt(_: Call) -> Kernel:
    @on_arrays
    def run(a: Any) -> Any:
        roots = np.fromiter(map(math.cbrt, raw(a).tolist()), np.float64, len(a))  # numpy's differs from the C library's
        return from_numpy(roots, pa.float64(), ~valid(a))

    return run


def _of_kind(name: str, of_floats: Callable[[Call], Kernel]) -> Callable[[Call], Kernel]:
    """The kernel of numerics for numerics, else that of floats."""
    of_numerics = OF_NUMERIC[name]
    return lambda expr: (of_numerics if expr.type.kind is Kind.NUMERIC else of_floats)(expr)


MATHEMATICS: dict[str, Callable[[Call], Kernel]] = {
    **dict.fromkeys(_MODES, _rounding),
    "sign": _sign,
    "cbrt": _cbrt,
    **{name: _of_kind(name, of_floats) for name, of_floats in {
        "sqrt": _sqrt, "power": _power, "^": _power, "exp": _exp, "ln": _logarithm("ln"), "log": _logarithm("log10"),
    }.items()},
}
