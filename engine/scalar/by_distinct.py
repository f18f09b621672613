"""Kernels of functions whose kernel is made for a constant, such as a pattern, where it is a column instead.

A kernel is made for each distinct value of the column, and computes the rows that have it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Datum, Kernel, on_arrays


class Unknown(Exception):
    """There is no kernel for a value. The text is the reason."""


def by_distinct(kernel: Callable[[str], Kernel], type: Any, constant: int) -> Kernel:
    """The kernel of two arguments. Argument number `constant` is a text, for which `kernel` makes what the other needs.

    The rows whose text raises Unknown fail.
    """

    @on_arrays
    def run(*data: Any) -> Datum:
        codes, other = data[constant].dictionary_encode(), data[1 - constant]
        index = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        order, parts = [], []
        mask, reasons = np.zeros(len(index), np.bool_), np.empty(len(index), object)
        null = pa.nulls(int((index < 0).sum()), type)
        for number, text in enumerate(codes.dictionary.to_pylist()):
            rows = np.flatnonzero(index == number)
            try:
                made = kernel(text)
            except Unknown as problem:
                given = rows[np.asarray(other.take(pa.array(rows)).is_valid())]
                mask[given], reasons[given] = True, str(problem)
                made = lambda _: pa.nulls(len(rows), type)  # noqa: B023, E731
            order.append(rows)
            found = made(other.take(pa.array(rows)))
            parts.append(found if isinstance(found, pa.Array) else pa.repeat(found, len(rows)))
        if mask.any():
            raise Failed(str(reasons[mask][0]), mask, messages=reasons[mask])
        joined = pa.concat_arrays([*(part.cast(type) for part in parts), null])
        back = np.argsort(np.concatenate([*order, np.flatnonzero(index < 0)]), kind="stable")
        return pc.take(joined, pa.array(back))

    return run
