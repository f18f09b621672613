"""Single values of Python, NumPy and pandas, as Arrow reads them without a loss; and what is too fine for a column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import time
from decimal import Decimal
from types import NoneType
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from halfjoin.sql.types import Kind, SqlType

_MISSING = ("NAType", "NaTType", "MaskedConstant")  # types of pandas and NumPy
_FINE = {"Timestamp": "nanosecond", "Timedelta": "nanoseconds"}  # types of pandas, and what each calls its nanoseconds
_FLOOR = "the column holds microseconds: floor the nanoseconds first, for example with .dt.floor('us')"


def plain(given: Sequence[Any], of: type = NoneType) -> Sequence[Any]:
    """Values of one type, and None, as Arrow reads them without a loss."""
    if of.__name__ in _MISSING:
        return [None] * len(given)
    if of.__name__ in _FINE:  # Arrow would drop the nanoseconds
        return [_whole(value) for value in given]
    if issubclass(of, np.datetime64 | np.timedelta64):
        return [None if value is None else _of_numpy(value) for value in given]
    if issubclass(of, time) and any(value is not None and value.tzinfo is not None for value in given):
        raise ValueError("Arrow would drop the time zone")
    if issubclass(of, UUID):
        return [None if value is None else str(value) for value in given]
    if issubclass(of, Decimal):  # NaN is a value of numeric, unlike a float's NaN, which pandas writes
        for value in given:
            if value is not None and value.is_nan():
                raise ValueError(value)
    return given if isinstance(given, list) else list(given)


def _whole(value: Any) -> Any:
    if _pandas_nanos(value):
        raise ValueError(value)
    return value


def _pandas_nanos(value: Any) -> int:
    """The nanoseconds of pandas' Timestamp or Timedelta; 0 for other values."""
    name = _FINE.get(type(value).__name__)
    return 0 if name is None else int(getattr(value, name, 0))


def _of_numpy(value: np.datetime64 | np.timedelta64) -> Any:
    """NumPy's moment, day or duration in a unit that Arrow takes; NaT is missing."""
    unit, days = np.datetime_data(value.dtype)[0], isinstance(value, np.datetime64)
    if np.isnat(value):
        return None
    if days and unit in ("Y", "M", "W", "D"):
        return value.astype("datetime64[D]").item()
    return value.astype(f"{'datetime64' if days else 'timedelta64'}[s]") if unit in ("W", "D", "h", "m") else value


def missing(value: Any) -> bool:
    """Whether it stands for NULL: None, NaN, or what pandas and NumPy write for it."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in _MISSING or (isinstance(value, float) and value != value)


def listed(value: Any) -> Any:
    """An array of NumPy as a list, if Arrow does not read it as it is: Arrow takes what is masked for a value, and no
    days or several dimensions. DuckDB's frames mask the NULLs of a list. What is missing is None. Other values are as
    they were."""
    if missing(value):
        return None
    if isinstance(value, np.ma.MaskedArray):
        return [None if item is np.ma.masked else item for item in value]
    if isinstance(value, np.ndarray) and (value.ndim > 1 or value.dtype.kind in "OmM"):
        return list(value)
    return value


def too_fine(value: Any, kind: SqlType) -> str | None:
    """The remedy for a moment, a time or an interval with nanoseconds; None for other values."""
    if kind.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME, Kind.INTERVAL):
        return None
    given = value.as_py() if isinstance(value, pa.Scalar) and is_string(value.type) else value
    if isinstance(given, str):
        return ("the column holds microseconds: leave the digits after the sixth out, or declare the column text and "
                "cast it in a view, which rounds") if re.search(r"[.,]\d{6}\d*[1-9]", given) else None  # fmt: skip
    if isinstance(value, pa.Scalar):
        fine = getattr(value.type, "unit", "") == "ns" and value.value % 1000
    elif isinstance(value, np.datetime64 | np.timedelta64):
        if isinstance(value, np.timedelta64) != (kind.kind is Kind.INTERVAL):
            return None
        fine = np.datetime_data(value.dtype)[0] == "ns" and int(value.astype(np.int64)) % 1000
    else:
        fine = _pandas_nanos(value)
    return _FLOOR if fine else None


def is_string(type: pa.DataType) -> bool:
    """Whether an Arrow type is one of texts."""
    return bool(pt.is_string(type) or pt.is_large_string(type) or pt.is_string_view(type))
