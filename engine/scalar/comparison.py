"""Kernels of comparison, one for each family of types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar import decimals
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.compared import compare
from halfjoin.engine.scalar.duck import duck_kernel
from halfjoin.engine.scalar.intervals import compare_intervals
from halfjoin.engine.scalar.literals import array_of_constants
from halfjoin.engine.scalar.rows import compare_rows
from halfjoin.engine.scalar.values import Datum, Kernel, any_true, call
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.types import BOOLEAN, FLOATS, Kind, SqlType, has_rows

_ARROW = {
    "=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
}  # fmt: skip
_KERNELS = {operator: call(name) for operator, name in _ARROW.items()}
_and, _or, _invert, _is_null, _is_nan = call("and"), call("or"), call("invert"), call("is_null"), call("is_nan")


def kernel_for(operator: str, type: SqlType) -> Kernel:
    """The comparison of two data of one type. Decimals may have different numbers of digits."""
    if type.kind in FLOATS:
        return _float(operator)
    if type.kind is Kind.INTERVAL:
        return lambda a, b: compare_intervals(operator, a, b)
    if has_rows(type):
        return compare_rows(operator)
    if type.kind is Kind.ARRAY:
        return duck_kernel(f"$1 {operator} $2", BOOLEAN)
    return _KERNELS[operator]


def _float(operator: str) -> Kernel:
    """Compare floats. NaN equals NaN and is above every number. Without NaN, Arrow's kernels are correct."""
    plain, less, equal = _KERNELS[operator], _KERNELS["<"], _KERNELS["="]

    def total(a: Datum, b: Datum) -> Datum:
        a_nan, b_nan = _is_nan(a), _is_nan(b)
        if operator in ("=", "<>"):
            same = _or(equal(a, b), _and(a_nan, b_nan))
            return same if operator == "=" else _invert(same)
        if operator in (">", "<="):
            above = _or(less(b, a), _and(a_nan, _invert(b_nan)))
            return above if operator == ">" else _invert(above)
        below = _or(less(a, b), _and(b_nan, _invert(a_nan)))
        return below if operator == "<" else _invert(below)

    def run(a: Datum, b: Datum) -> Datum:
        if any_true(_is_nan(a)) or any_true(_is_nan(b)):
            return total(a, b)
        return plain(a, b)

    return run


def _compare(expr: Call) -> Kernel:
    left, right = expr.args
    if left.type.kind is not Kind.NUMERIC:
        return kernel_for(expr.function, left.type)
    return compare(_KERNELS[expr.function], expr.function, left, right)


def _distinct(expr: Call) -> Kernel:
    differ = _compare(Call("<>", expr.args, BOOLEAN))
    same = expr.function == "is not distinct from"

    def run(a: Datum, b: Datum) -> Datum:
        result = differ(a, b)  # NULL where an argument is NULL
        a_null, b_null = _is_null(a), _is_null(b)
        result = pc.if_else(_or(a_null, b_null), pc.xor(a_null, b_null), result)
        return _invert(result) if same else result

    return run


def _in(expr: Call) -> Kernel:
    """Membership in constants. NULL if the value is NULL, or if it is not among them and a constant is NULL."""
    value, *items = expr.args
    constants = [item for item in items if isinstance(item, Literal)]
    known = [item.value for item in constants if item.value is not None]
    has_null = len(known) < len(constants)
    if value.type.kind is Kind.NUMERIC:
        known = decimals.storable(arrow_type(value.type), known)
    wanted = no_minus_zero(array_of_constants(known, value.type))
    options: Any = pc.SetLookupOptions(value_set=wanted, skip_nulls=True)
    lookup = call("is_in", options)

    def run(a: Datum) -> Datum:
        found = lookup(no_minus_zero(a))
        unknown = _or(_is_null(a), _invert(found)) if has_null else _is_null(a)
        return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)

    return lambda a, *_: run(a)


def no_minus_zero(datum: Datum) -> Datum:
    """Replace -0.0 by 0.0: they are equal, but have different hashes."""
    return pc.add(datum, pa.scalar(0, datum.type)) if pa.types.is_floating(datum.type) else datum


COMPARISON: dict[str, Callable[[Call], Kernel]] = {
    **dict.fromkeys(_ARROW, _compare),
    "is distinct from": _distinct,
    "is not distinct from": _distinct,
    "in": _in,
}
