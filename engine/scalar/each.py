"""Kernels from Python functions: for what Arrow and numpy have no kernel for, such as `format` or a hash.

The function is called once for each distinct combination of arguments, not once a row. The results are bounded like
all others (`bounds`); a function that can make far more than it is given must check before it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.scalar.bounds import LONG, check, sizes
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Datum, Kernel, broadcast, count, raw, valid
from halfjoin.engine.updates.intervals import fields
from halfjoin.sql.expr import Call
from halfjoin.sql.types import VALUE_BYTES


class Bad(Exception):
    """The function has no value for these arguments. The text is the reason."""


def each(compute: Callable[..., Any], type: Any, *, nulls: bool = False) -> Kernel:
    """The kernel that computes each row's value with a Python function.

    Dates, times and timestamps are whole numbers (of days, of microseconds) as arguments and as results, and intervals
    are months, days and microseconds. `nulls`: the function takes NULL (None); otherwise the result of NULL is NULL.
    """

    @wraps(compute)
    def run(*data: Datum) -> Datum:
        n = count(*data)
        alone = all(isinstance(datum, pa.Scalar) for datum in data)
        code, first = _distinct([datum for datum in data if not isinstance(datum, pa.Scalar)], n)
        rows = [_values(datum, first) for datum in data]
        results: list[Any] = []
        reasons: dict[int, str] = {}
        for i, row in enumerate(zip(*rows, strict=True)):
            if not nulls and None in row:
                results.append(None)
                continue
            try:
                result = compute(*row)
                if isinstance(result, (str, bytes)) and len(result) > VALUE_BYTES // 4:
                    _check_length(result)
                results.append(result)
            except Bad as bad:
                reasons[i] = str(bad)
        if reasons:
            raise _failed(reasons, code, strict=not nulls)
        made = array_of(results, type)
        if alone:
            return made[0]
        if pt.is_string(type) or pt.is_binary(type):
            check(sizes(made)[code], n, strict=not nulls)
        return made.take(pa.array(code))

    return run


def of_each(compute: Callable[..., Any], type: Any) -> Callable[[Call], Kernel]:
    """What makes the kernel of `each` for a call, whatever the types of its arguments."""
    kernel = each(compute, type)
    return lambda _: kernel


def _distinct(arrays: Sequence[Any], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each row the number of its combination of values, and for each combination its first row."""
    code = np.zeros(n, np.int64)
    for array in arrays:
        if pt.is_nested(array.type) or pt.is_interval(array.type):  # Arrow cannot tell which are equal
            return np.arange(n), np.arange(n)
        values = array.dictionary_encode()
        index = np.asarray(values.indices.fill_null(len(values.dictionary)).to_numpy(), np.int64)
        _, code = np.unique(code * (len(values.dictionary) + 1) + index, return_inverse=True)
    _, first, code = np.unique(code, return_index=True, return_inverse=True)
    return code, first


def _values(datum: Datum, rows: NDArray[np.int64]) -> list[Any]:
    """The values of some rows, in Python."""
    if isinstance(datum, pa.Scalar):
        return python_values(broadcast(datum, 1)) * len(rows)
    return python_values(datum.take(pa.array(rows)))


def python_values(array: Any) -> list[Any]:
    """The values in Python: whole numbers for dates, times and timestamps, three for an interval, also in arrays."""
    type = array.type
    if pt.is_interval(type):
        values = zip(*(part.tolist() for part in fields(array)), strict=True)
        return [value if ok else None for value, ok in zip(values, valid(array).tolist(), strict=True)]
    if pt.is_temporal(type):
        return [value if ok else None for value, ok in zip(raw(array).tolist(), valid(array).tolist(), strict=True)]
    if pt.is_list(type) and (pt.is_temporal(type.value_type) or pt.is_interval(type.value_type)):
        elements, ends = python_values(array.values), array.offsets.to_pylist()
        return [elements[start:end] if ok else None
                for start, end, ok in zip(ends, ends[1:], valid(array).tolist(), strict=False)]  # fmt: skip
    found: list[Any] = array.to_pylist()
    return found


def array_of(values: list[Any], type: Any) -> Any:
    """The array of values in the form of `python_values`."""
    if pt.is_interval(type):
        return pa.array([value and pa.MonthDayNano((value[0], value[1], value[2] * 1000)) for value in values], type)
    if pt.is_temporal(type):
        return pa.array(values, pa.int32() if pt.is_date32(type) else pa.int64()).view(type)
    return pa.array(values, type)


def _check_length(result: str | bytes) -> None:
    if len(result.encode() if isinstance(result, str) else result) > VALUE_BYTES:
        raise Bad(LONG)


def _failed(reasons: dict[int, str], code: NDArray[np.int64], *, strict: bool) -> Failed:
    """The failure of the rows whose combinations have a reason."""
    mask = np.isin(code, np.fromiter(reasons, np.int64))
    messages = np.empty(int(mask.sum()), object)
    messages[:] = [reasons[number] for number in code[mask].tolist()]
    return Failed(str(messages[0]), mask, messages=messages, strict=strict)
