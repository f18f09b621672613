"""Kernels of enums: from a label to its position among all labels, from 1, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.values import Datum, Kernel, call, on_arrays
from halfjoin.sql.expr import Call, Literal


def _labels(expr: Call) -> Any:
    labels = expr.args[1]
    assert isinstance(labels, Literal)
    return pa.array(labels.value, pa.string())


def _position(expr: Call) -> Kernel:
    find: Any = call("index_in", pc.SetLookupOptions(value_set=_labels(expr), skip_nulls=True))
    one = pa.scalar(1, pa.int32())
    return lambda a, _: pc.add(find(a), one)


def _label(expr: Call) -> Kernel:
    labels, one = _labels(expr), pa.scalar(1, pa.int32())

    @on_arrays
    def run(a: Any, _: Any) -> Datum:
        return labels.take(pc.subtract(a, one))

    return run


ENUMS: dict[str, Callable[[Call], Kernel]] = {"enum position": _position, "enum label": _label}
