"""Kernels of rows at rest, which are structs: put together, taken apart, cast and compared member by member."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.bounds import joined
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Kernel, on_arrays, raw, valid
from halfjoin.engine.updates.codes import same
from halfjoin.engine.updates.structs import struct_of
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.record_values import FIELD, GIVEN, VALUE, place_of
from halfjoin.sql.types import SqlType


def _value(expr: Call) -> Kernel:
    type = arrow_type(expr.type)

    @on_arrays
    def run(there: Any, *members: Any) -> Any:
        made = [one if one.type == field.type else one.cast(field.type)
                for one, field in zip(members, type, strict=True)]  # fmt: skip
        given = raw(there.fill_null(False).cast(pa.uint8())).astype(np.bool_)
        return struct_of(type, made, ~given, len(there))

    return joined(run, strict=False)


def _given(_: Call) -> Kernel:
    def run(rows: Any) -> Any:
        there = valid(rows)
        return pa.array(there, mask=~there)

    return on_arrays(run)


def _member(expr: Call) -> Kernel:
    place = place_of(expr.args[1])
    return on_arrays(lambda rows, _: rows.flatten()[place])


def cast_rows(members: Sequence[Kernel | None], target: SqlType) -> Kernel:
    """The kernel of a cast from rows to rows, by those of the members. A member that fails makes its row fail."""
    type = arrow_type(target)

    @on_arrays
    def run(rows: Any) -> Any:
        parts = []
        for part, cast, field in zip(rows.flatten(), members, type, strict=True):
            made = part if cast is None else cast(part)
            parts.append(made if made.type == field.type else made.cast(field.type))
        return struct_of(type, parts, ~valid(rows), len(rows))

    return run


def compare_rows(operator: str) -> Kernel:
    """Whether two values, with rows in them, are equal (`=`) or not (`<>`). NULL members are equal; NULL if one value
    is NULL as a whole.

    Raises:
        Failed: the operator asks for an order, which only `apart` compares.
    """

    @on_arrays
    def run(a: Any, b: Any) -> Any:
        if operator not in ("=", "<>"):
            raise Failed(f"{operator} of rows in arrays is not supported", np.ones(len(a), np.bool_))
        equal = same(a, b)
        return pa.array(equal if operator == "=" else ~equal, mask=~(valid(a) & valid(b)))

    return run


ROWS: dict[str, Callable[[Call], Kernel]] = {VALUE: _value, GIVEN: _given, FIELD: _member}
