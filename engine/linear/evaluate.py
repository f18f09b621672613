"""Evaluates expressions over updates: returns the values, and reports each failing row as an error update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.failures import Errors
from halfjoin.engine.scalar import Result, Scalar
from halfjoin.engine.updates.updates import Mask, Updates, where_true
from halfjoin.errors import DataError
from halfjoin.sql.expr import Expr
from halfjoin.sql.functions import fallible, render


def expect(result: Result, expr: Expr) -> None:
    """Check that an expression that failed is one that may fail."""
    if result.failures is not None and not fallible(expr):
        raise DataError(f"{result.failures.messages[0]} in {render(expr)}")


def evaluate_all(
    scalars: Sequence[tuple[Scalar, Expr]], updates: Updates, errors: Errors
) -> tuple[list[pa.Array], Updates]:
    """One array per expression, and the updates that the values belong to.

    A row for which an expression fails is in neither. It is reported as one error, by the first expression that fails.

    Raises:
        DataError: an expression failed that is known not to fail, so that nobody would hear of the row.
    """
    arrays = []
    alive: Mask | None = None
    columns, length = updates.columns, len(updates)
    for scalar, expr in scalars:
        name = scalar.column
        if name is not None and length and columns[name].type == scalar.arrow_type:  # most are bare columns
            arrays.append(columns[name])
            continue
        result = scalar.evaluate(columns, length)
        arrays.append(result.values)
        if result.failures is not None:
            expect(result, expr)
            if alive is None:
                alive = np.ones(len(updates), np.bool_)
            fresh = alive[result.failures.rows]
            rows = result.failures.rows[fresh]
            messages = [text for text, new in zip(result.failures.messages, fresh, strict=True) if new]
            errors.report(updates, rows, messages, expr)
            alive[rows] = False
    if alive is None:
        return arrays, updates
    positions = where_true(alive)
    indices = pa.array(positions)
    return [array.take(indices) for array in arrays], updates.take(positions)
