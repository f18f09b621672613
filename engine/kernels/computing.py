"""Kernels that look at values or compute some: decimals, spreads, comparisons, bounds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.kernels import native
from halfjoin.engine.kernels.native import ARRAY, BUFFER, Ints, column_of

if native.BUILT:
    from halfjoin.engine.kernels import _native


def bounds(values: Ints) -> tuple[int, int] | None:
    """The least and the greatest of some values; None if there are none."""
    return _native.bounds(values) if native.on else None


def sound(columns: list[pa.Array], bounds: list[tuple[int, int]]) -> bool:
    """Whether the values of columns plainly are what SQL has: texts of ASCII without NUL, floats other than -0, dates
    and times between their column's `bounds`, decimals with no more digits than the second of them. False: somebody
    must look closer."""
    return native.on and _native.sound(columns, bounds)


def decimals(counts: pa.Array, totals: pa.Array, type: pa.DataType, divided: int | None = None) -> pa.Array | None:
    """Kept sums of integers, in units of the decimal `type`, as its values; NULL where a count is 0 or NULL, or nothing
    is kept. `divided`: the decimals of sums that are to be divided by their counts. None also where a number has too
    many digits."""
    if not native.on or type.bit_width != 128:
        return None
    made = _native.decimals([counts], [totals], type.precision, divided is not None, divided or 0, type.scale)
    return None if made is None else column_of(type, len(totals), made)


def spread(
    name: str, count: pa.Array, sums: list[pa.Array], type: pa.DataType, given: int | None
) -> tuple[pa.Array, NDArray[np.bool_]] | None:
    """What `engine.scalar.spread` makes of a count and kept sums, and which rows are left to it: they are NULL.
    `given`: the decimals of exact values; None of floats."""
    if not native.on or not (type == pa.float64() if given is None else type.bit_width == 128):
        return None
    digits = (0, 0) if given is None else (type.precision, type.scale)
    made = _native.spread(name, [count, *sums], given is not None, given or 0, *digits)
    if made is None:
        return None
    there, values, left = np.frombuffer(made[0], np.bool_), made[1], np.frombuffer(made[2], np.bool_)
    valid = None if there.all() else pa.array(there).buffers()[1]
    return ARRAY(type, len(there), [valid, BUFFER(values)]), left


def arithmetic(
    operator: str, left: pa.Array, right: pa.Array, digits: tuple[int, int], length: int, type: pa.DataType
) -> pa.Array | None:
    """The sum, difference or product of decimals or integers in each row, of the decimal `type`, which has room for
    all. An operand of one row stands for all rows. `digits`: the zeros to append to each operand, for a sum or
    difference."""
    made = _native.arithmetic(operator, [left, right], *digits, length) if native.on else None
    return None if made is None else column_of(type, length, made)


def quotients(left: pa.Array, right: pa.Array, length: int, type: pa.DataType) -> pa.Array | None:
    """The quotient of decimals in each row, of the decimal `type`, with the decimals that PostgreSQL gives it. An
    operand of one row stands for all rows. None also where a divisor is 0 or a quotient too long."""
    if not native.on or max(left.type.bit_width, right.type.bit_width) > 128 or type.scale < 0:
        return None
    made = _native.quotients([left, right], left.type.scale, right.type.scale, type.scale, type.precision,
                             type.bit_width // 8, length)  # fmt: skip
    return None if made is None else column_of(type, length, made)


def compared(allowed: int, left: pa.Array, right: pa.Array, digits: tuple[int, int], length: int) -> pa.Array | None:
    """Whether the order of integers or decimals in each row is allowed: 1 less, 2 equal, 4 greater, or a sum of these.
    Operands and `digits` are as in `arithmetic`; one of the digits is 0."""
    made = _native.compared(allowed, [left, right], *digits, length) if native.on else None
    return None if made is None else column_of(pa.bool_(), length, made)


def like(column: pa.Array, parts: tuple[bytes, ...]) -> pa.Array | None:
    """Which texts begin with the first part, end with the last one, and have the others between them, in order."""
    made = _native.like([column], parts) if native.on else None
    if made is None:
        return None
    missing = None if not column.null_count else ~column.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(np.frombuffer(made, np.bool_), mask=missing)
