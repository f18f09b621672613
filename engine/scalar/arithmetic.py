"""Kernels of arithmetic on integers and floats. Decimals and dates have their own modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar import decimals
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Datum, Kernel, any_true, call, fail_where, mask_of
from halfjoin.sql.expr import Call
from halfjoin.sql.types import FLOATS, INTEGERS, Kind, SqlType

_CHECKED = {
    "+": "add_checked", "-": "subtract_checked", "*": "multiply_checked", "/": "divide_checked",
    "%": "remainder_checked", "neg": "negate_checked", "abs": "abs_checked",
}  # fmt: skip
_is_inf, _equal, _invert, _and = call("is_inf"), call("equal"), call("invert"), call("and")


def _arithmetic(expr: Call) -> Kernel:
    kinds = {arg.type.kind for arg in expr.args}
    if kinds <= set(INTEGERS):
        return _integer(expr.function, expr.type)
    if kinds <= set(FLOATS):
        return _float(expr.function)
    if kinds == {Kind.NUMERIC}:
        return decimals.arithmetic(expr)
    from halfjoin.engine.scalar.moments import moment_arithmetic

    return moment_arithmetic(expr)


def _integer(operator: str, type: SqlType) -> Kernel:
    checked = call(_CHECKED[operator])
    message = f"{type} out of range"

    def run(*data: Datum) -> Datum:
        try:
            return checked(*data)
        except pa.ArrowInvalid:
            if operator in ("/", "%"):
                fail_where(_equal(data[1], 0), "division by zero")
            if operator == "%":  # Arrow reports an overflow for the least integer modulo -1
                one = pa.scalar(1, data[1].type)
                return checked(data[0], pc.if_else(_equal(data[1], -1), one, data[1]))
            raise Failed(message, _overflows(operator, data)) from None

    return run


def _overflows(operator: str, data: tuple[Datum, ...]) -> Any:
    """The rows whose exact result is outside the type."""
    bits = data[0].type.bit_width - 1
    wide = [datum.cast(pa.decimal256(19, 0)) for datum in data]
    if operator == "/" or len(wide) == 1:  # only the least integer overflows
        return mask_of(_equal(data[0], -(1 << bits))) & (mask_of(_equal(data[1], -1)) if len(wide) == 2 else True)
    exact = call(_CHECKED[operator])(*wide)
    limit = pa.scalar(1 << bits, pa.decimal256(20, 0))
    outside = pc.or_(pc.greater_equal(exact, limit), pc.less(exact, pc.negate(limit)))
    return mask_of(outside)


def _float(operator: str) -> Kernel:
    """Arithmetic of IEEE 754, with errors for overflow (infinity from finite numbers) and underflow (to zero)."""
    compute = call(_CHECKED[operator].removesuffix("_checked"))
    if operator in ("neg", "abs"):
        return compute

    def run(a: Datum, b: Datum) -> Datum:
        if operator == "/":
            zero = _equal(b, 0.0)
            if any_true(zero):
                fail_where(_and(zero, _equal(a, a)), "division by zero")  # NaN / 0 is NaN
        result = compute(a, b)
        infinite = _is_inf(result)
        if any_true(infinite):
            fail_where(_and(infinite, _invert(pc.or_(_is_inf(a), _is_inf(b)))), "value out of range: overflow")
        if operator in ("*", "/"):
            zero = _equal(result, 0.0)
            if any_true(zero):
                allowed = pc.or_(_equal(a, 0.0), _equal(b, 0.0) if operator == "*" else _is_inf(b))
                fail_where(_and(zero, _invert(allowed)), "value out of range: underflow")
        return result

    return run


ARITHMETIC: dict[str, Callable[[Call], Kernel]] = dict.fromkeys(_CHECKED, _arithmetic)
