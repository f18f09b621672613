"""Kernels of angles. Functions of degrees are exact where their value is: `sind(30)` is 0.5.

A function of degrees reduces its angle to the first quadrant, and divides by the value that the library gives at 30 or
60 degrees. PostgreSQL does the same, so the last bits agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Datum, Kernel, call, from_numpy, on_arrays, raw, valid
from halfjoin.sql.expr import Call

_Floats = NDArray[np.float64]
_RADIANS = 0.0174532925199432957692
_OUT = "input is out of range"


def _library(name: str) -> Callable[[_Floats], _Floats]:
    """An Arrow function of floats: it calls the C library, as PostgreSQL does. (numpy's own differ in the last bit.)"""
    compute = call(name)
    return lambda values: np.asarray(compute(pa.array(values)), np.float64)


_sin, _cos, _tan, _asin, _acos, _atan = (_library(name) for name in ("sin", "cos", "tan", "asin", "acos", "atan"))
_SIN_30, _ONE_MINUS_COS_60 = math.sin(30 * _RADIANS), 1.0 - math.cos(60 * _RADIANS)
_ASIN_HALF, _ACOS_HALF, _ATAN_1 = math.asin(0.5), math.acos(0.5), math.atan(1.0)


def _sind_to_30(x: _Floats) -> _Floats:
    return (_sin(x * _RADIANS) / _SIN_30) / 2.0


def _cosd_to_60(x: _Floats) -> _Floats:
    return 1.0 - ((1.0 - _cos(x * _RADIANS)) / _ONE_MINUS_COS_60) / 2.0


def _sind_q1(x: _Floats) -> _Floats:
    return np.where(x <= 30, _sind_to_30(x), _cosd_to_60(90 - x))


def _cosd_q1(x: _Floats) -> _Floats:
    return np.where(x <= 60, _cosd_to_60(x), _sind_to_30(90 - x))


_AT_45 = np.array([45.0])
_TAN_45 = float((_sind_q1(_AT_45) / _cosd_q1(_AT_45))[0])
_COT_45 = float((_cosd_q1(_AT_45) / _sind_q1(_AT_45))[0])


def _in_quadrant(x: _Floats) -> tuple[_Floats, _Floats, _Floats, _Floats]:
    """The angle in the first quadrant, and 1 or -1 for: a negative angle, one of the lower half, one of the left."""
    x = np.fmod(x, 360.0)
    negative = np.where(x < 0, -1.0, 1.0)
    x = np.where(x < 0, -x, x)  # -0 stays
    lower = np.where(x > 180, -1.0, 1.0)
    x = np.where(x > 180, 360 - x, x)
    left = np.where(x > 90, -1.0, 1.0)
    return np.where(x > 90, 180 - x, x), negative, lower, left


def _sind(x: _Floats) -> _Floats:
    x, negative, lower, _ = _in_quadrant(x)
    return negative * lower * _sind_q1(x)


def _cosd(x: _Floats) -> _Floats:
    x, _, _, left = _in_quadrant(x)
    return left * _cosd_q1(x)


def _tand(x: _Floats) -> _Floats:
    x, *signs = _in_quadrant(x)
    found: _Floats = np.prod(signs, axis=0) * ((_sind_q1(x) / _cosd_q1(x)) / _TAN_45) + 0.0  # 0, not -0
    return found


def _cotd(x: _Floats) -> _Floats:
    x, *signs = _in_quadrant(x)
    found: _Floats = np.prod(signs, axis=0) * ((_cosd_q1(x) / _sind_q1(x)) / _COT_45) + 0.0
    return found


def _asind_q1(x: _Floats) -> _Floats:
    near, far = _asin(np.minimum(x, 0.5)), _acos(x)
    return np.where(x <= 0.5, (near / _ASIN_HALF) * 30, 90 - (far / _ACOS_HALF) * 60)


def _acosd_q1(x: _Floats) -> _Floats:
    near, far = _asin(np.minimum(x, 0.5)), _acos(x)
    return np.where(x <= 0.5, 90 - (near / _ASIN_HALF) * 30, (far / _ACOS_HALF) * 60)


def _asind(x: _Floats) -> _Floats:
    return np.where(x >= 0, _asind_q1(np.abs(x)), -_asind_q1(np.abs(x)))


def _acosd(x: _Floats) -> _Floats:
    return np.where(x >= 0, _acosd_q1(np.abs(x)), 90 + _asind_q1(np.abs(x)))


def _degrees(x: _Floats) -> _Floats:
    found = x / _RADIANS
    if (over := np.isinf(found) & np.isfinite(x)).any():
        raise Failed("value out of range: overflow", over)
    return found


def _radians(x: _Floats) -> _Floats:
    found = x * _RADIANS
    if (under := (found == 0) & (x != 0)).any():
        raise Failed("value out of range: underflow", under)
    return found


def _of_one(
    compute: Callable[[_Floats], _Floats], outside: Callable[[_Floats], Any] | None = None
) -> Callable[[Call], Kernel]:
    """A kernel of one argument. `outside`: where the function has no value."""

    @on_arrays
    def run(a: Any) -> Datum:
        null = ~valid(a)
        values = np.where(null, 1.0, raw(a))
        if outside is not None and (bad := outside(values) & ~null).any():
            raise Failed(_OUT, bad)
        with np.errstate(all="ignore"):
            return from_numpy(compute(values), pa.float64(), null)

    return lambda _: run


def _of_two(scale: float | None) -> Callable[[Call], Kernel]:
    """atan2, in radians or in degrees."""
    compute = call("atan2")
    if scale is None:
        return lambda _: compute
    return lambda _: lambda y, x: pc.multiply(pc.divide(compute(y, x), _ATAN_1), scale)


def _pi(_: Call) -> Kernel:
    return lambda: pa.scalar(math.pi)


def _beyond_one(x: _Floats) -> Any:
    return np.abs(x) > 1


TRIGONOMETRY: dict[str, Callable[[Call], Kernel]] = {
    "sin": _of_one(_sin, np.isinf), "cos": _of_one(_cos, np.isinf), "tan": _of_one(_tan, np.isinf),
    "cot": _of_one(lambda x: 1.0 / _tan(x), np.isinf),
    "asin": _of_one(_asin, _beyond_one), "acos": _of_one(_acos, _beyond_one), "atan": _of_one(_atan),
    "atan2": _of_two(None), "atan2d": _of_two(45.0),
    "sind": _of_one(_sind, np.isinf), "cosd": _of_one(_cosd, np.isinf), "tand": _of_one(_tand, np.isinf),
    "cotd": _of_one(_cotd, np.isinf), "asind": _of_one(_asind, _beyond_one), "acosd": _of_one(_acosd, _beyond_one),
    "atand": _of_one(lambda x: (_atan(x) / _ATAN_1) * 45),
    **{name: _of_one(_library(name)) for name in ("sinh", "cosh", "tanh", "asinh")},
    "acosh": _of_one(_library("acosh"), lambda x: x < 1), "atanh": _of_one(_library("atanh"), _beyond_one),
    "degrees": _of_one(_degrees), "radians": _of_one(_radians), "pi": _pi,
}  # fmt: skip
