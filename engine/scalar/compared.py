"""Comparison of numerics with any digits. Integers that are compared with numerics are compared as they are.

One number that many are compared with is rounded to their digits: `x > 2.5` is `x > 2` for integers. So no value of the
others needs more digits than it has.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.kernels import computing
from halfjoin.engine.scalar.arrow_types import arrow_type, decimal_type
from halfjoin.engine.scalar.decimals import to
from halfjoin.engine.scalar.values import Datum, Kernel, on_arrays
from halfjoin.sql.expr import Call, Cast, Expr, Literal
from halfjoin.sql.types import INTEGERS, WORKING_DIGITS, Kind

_EXACT = Context(prec=400)
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ROUNDING = {">": ROUND_FLOOR, "<=": ROUND_FLOOR, "<": ROUND_CEILING, ">=": ROUND_CEILING}  # of the right side
_ALLOWED = {"<": 1, "=": 2, "<=": 3, ">": 4, "<>": 5, ">=": 6}  # of `computing.compared`
_DIGITS = {Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19}


_COMPARISONS = frozenset((*_ALLOWED, "is distinct from", "is not distinct from"))


def operands(expr: Call) -> tuple[Expr, ...]:
    """What the kernel of a call reads: its arguments, but in a comparison the integer for a numeric that holds it."""
    return tuple(map(_whole, expr.args)) if expr.function in _COMPARISONS else expr.args


def _whole(arg: Expr) -> Expr:
    if not isinstance(arg, Cast) or arg.type.kind is not Kind.NUMERIC or arg.arg.type.kind not in INTEGERS:
        return arg
    type = arrow_type(arg.type)
    return arg.arg if type.precision - type.scale >= _DIGITS[arg.arg.type.kind] else arg


def compare(plain: Kernel, operator: str, left: Expr, right: Expr) -> Kernel:
    """A comparison of numerics, or of the integers that `operands` has for them."""
    first, second = arrow_type(left.type), arrow_type(right.type)
    if first == second and left is _whole(left) and right is _whole(right):
        return plain
    if isinstance(right, Literal) and (fixed := _restated(right, first)) is not None:
        return lambda a, _: plain(to(a, first), fixed)
    if isinstance(left, Literal) and (fixed := _restated(left, second)) is not None:
        return lambda _, b: plain(fixed, to(b, second))
    general = _general(plain, operator, first, second)

    def run(a: Datum, b: Datum) -> Datum:
        if operator in _ROUNDING and isinstance(a, pa.Scalar) != isinstance(b, pa.Scalar):
            if isinstance(b, pa.Scalar):
                bound = _rounded(b, _ROUNDING[operator], a.type)
                return general(a, b) if bound is None else plain(a, bound)
            bound = _rounded(a, _ROUNDING[_FLIPPED[operator]], b.type)
            return general(a, b) if bound is None else plain(bound, b)
        return general(a, b)

    return run


def _general(plain: Kernel, operator: str, first: Any, second: Any) -> Kernel:
    scale = max(first.scale, second.scale)
    precision = max(first.precision - first.scale, second.precision - second.scale) + scale
    if first == second or precision <= WORKING_DIGITS:
        common = first if first == second else decimal_type(precision, scale)
        return _by_kernel(operator, first, second, lambda a, b: plain(to(a, common), to(b, common)))
    test: Callable[[Decimal, Decimal], bool] = {
        "=": lambda x, y: x == y, "<>": lambda x, y: x != y, "<": lambda x, y: x < y,
        "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
    }[operator]  # fmt: skip

    @on_arrays
    def run(a: Any, b: Any) -> Datum:
        pairs = zip(a.to_pylist(), b.to_pylist(), strict=True)
        return pa.array([None if x is None or y is None else test(x, y) for x, y in pairs], pa.bool_())

    return _by_kernel(operator, first, second, run)


def _by_kernel(operator: str, first: Any, second: Any, otherwise: Kernel) -> Kernel:
    """The same comparison, without casts where there is a kernel for it."""
    allowed, scale = _ALLOWED[operator], max(first.scale, second.scale)
    digits = scale - first.scale, scale - second.scale

    def run(a: Datum, b: Datum) -> Datum:
        if a.type == b.type or (isinstance(a, pa.Scalar) and isinstance(b, pa.Scalar)):
            return otherwise(a, b)
        left, right = (pa.array([one.as_py()], one.type) if isinstance(one, pa.Scalar) else one for one in (a, b))
        made = computing.compared(allowed, left, right, digits, len(left if isinstance(a, pa.Array) else right))
        return otherwise(a, b) if made is None else made

    return run


def _rounded(number: pa.Scalar, rounding: str, type: Any) -> pa.Scalar | None:
    """The number with the digits of a type; None if it is NULL, or the type does not hold it."""
    if not number.is_valid:
        return None
    scale = type.scale if pt.is_decimal(type) else 0
    whole = _EXACT.scaleb(Decimal(number.as_py()), scale).to_integral_value(rounding)
    try:
        return pa.scalar(_EXACT.scaleb(whole, -scale) if scale or pt.is_decimal(type) else int(whole), type)
    except (pa.ArrowInvalid, OverflowError):
        return None


def _restated(literal: Literal, type: Any) -> Any | None:
    """The constant in `type`; None if the type does not hold it exactly."""
    if literal.value is None:
        return pa.scalar(None, type)
    try:
        return pa.scalar(literal.value, type)
    except pa.ArrowInvalid:
        return None
