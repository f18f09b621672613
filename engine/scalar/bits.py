"""Kernels of the bits of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.each import each
from halfjoin.engine.scalar.values import Kernel, call, from_numpy, on_arrays, raw, valid
from halfjoin.sql.expr import Call


def _arrow(name: str) -> Callable[[Call], Kernel]:
    kernel = call(name)
    return lambda _: kernel


def _shift(shift: Callable[..., Any]) -> Callable[[Call], Kernel]:
    """The shift that the processor makes: by the number modulo the width, which is 32 for a smallint as well."""

    def build(expr: Call) -> Kernel:
        type = arrow_type(expr.type)
        wide, width = (np.int64, 64) if type.bit_width == 64 else (np.int32, 32)

        @on_arrays
        def run(a: Any, n: Any) -> Any:
            null = ~(valid(a) & valid(n))
            values = np.where(null, 0, raw(a)).astype(wide)
            by = (np.where(null, 0, raw(n)) % width).astype(wide)
            return from_numpy(shift(values, by).astype(type.to_pandas_dtype()), type, null)

        return run

    return build


BITS: dict[str, Callable[[Call], Kernel]] = {
    "&": _arrow("bit_wise_and"),
    "|": _arrow("bit_wise_or"),
    "#": _arrow("bit_wise_xor"),
    "bit not": _arrow("bit_wise_not"),
    "<<": _shift(np.left_shift),
    ">>": _shift(np.right_shift),
    "bit_count": lambda _: each(lambda data: int.from_bytes(data, "big").bit_count(), pa.int64()),
}
