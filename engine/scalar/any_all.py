"""Kernels of ANY and ALL: a value is compared with each element of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.arrays import elements
from halfjoin.engine.scalar.comparison import kernel_for, no_minus_zero
from halfjoin.engine.scalar.values import Datum, Kernel, call, from_numpy, mask_of, on_arrays, valid
from halfjoin.sql.expr import Call
from halfjoin.sql.types import Kind, has_rows

_OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_is_null, _or, _invert, _sorted = call("is_null"), call("or"), call("invert"), call("array_sort_indices")


def _any(operator: str, negated: bool) -> Callable[[Call], Kernel]:
    """`x < ANY (array)`: true if an element makes it true; else NULL if one makes it NULL; else false. Or its NOT.

    Many rows and one array are compared in time and memory that do not grow with their product.
    """

    def build(expr: Call) -> Kernel:
        type = expr.args[0].type
        compare = kernel_for(operator, type)
        plain = type.kind not in (Kind.ARRAY, Kind.INTERVAL) and not has_rows(type)

        @on_arrays
        def each(value: Any, array: Any) -> Any:
            rows, values = elements(array)
            true = compare(value.take(pa.array(rows)), values)
            found = _any_of(rows, mask_of(true), len(array))
            unknown = _any_of(rows, mask_of(pc.is_null(true)), len(array))
            return from_numpy(found ^ negated, pa.bool_(), (unknown & ~found) | ~valid(array))

        def run(value: Datum, array: Datum) -> Datum:
            one = plain and isinstance(array, pa.Scalar) and array.is_valid and not isinstance(value, pa.Scalar)
            if not one or len(array.values) <= 1:
                return each(value, array)
            if operator == "=":
                found = _among(value, array.values)
                return _invert(found) if negated else found
            ends = _ends(array.values)
            return each(value, pa.ListArray.from_arrays(pa.array([0, len(ends)], pa.int32()), ends)[0])

        return run

    return build


def _among(value: Any, items: Any) -> Any:
    """Whether each value is one of the items, of which there are some."""
    options: Any = pc.SetLookupOptions(value_set=no_minus_zero(items), skip_nulls=True)
    found = pc.get_function("is_in").call([no_minus_zero(value)], options)
    unknown = _or(_is_null(value), _invert(found)) if items.null_count else _is_null(value)
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def _ends(items: Any) -> Any:
    """The least and the greatest item, and a NULL if there is one: what differs from an item, or is less or greater
    than one, does so from one of these. NaN is the greatest number, as Arrow sorts it."""
    known = len(items) - items.null_count
    ends = {0, known - 1, len(items) - 1} if known else {0}
    return items.take(_sorted(items).take(pa.array(sorted(ends))))


def _any_of(rows: Any, mask: Any, n: int) -> Any:
    out = np.zeros(n, np.bool_)
    out[rows[mask]] = True
    return out


ANY_ALL: dict[str, Callable[[Call], Kernel]] = {
    **{f"{operator} any": _any(operator, False) for operator in _OPPOSITES},
    **{f"{operator} all": _any(opposite, True) for operator, opposite in _OPPOSITES.items()},
}
