"""Computes the GENERATED columns of rows, and checks the CHECK constraints of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import Table
from halfjoin.engine.scalar import Scalar, compile
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import DataError, InvalidRow
from halfjoin.sql.bind.constraints import bind_check, bind_generated
from halfjoin.sql.expr import Column, Expr


def with_generated(table: Table, catalog: Catalog, updates: Updates) -> Updates:
    """The rows with the values of the generated columns.

    Raises:
        DataError: an expression fails for a row.
        InvalidRow: a value is NULL, and the column is NOT NULL.
    """
    plain = [column.column for column in table.columns if column.generated is None]
    made = {}
    for column in table.columns:
        if column.generated is not None:
            value = bind_generated(column.generated, plain, column.type, catalog, table.name)
            made[column.name] = _values(table, value, updates)
            if column.not_null and made[column.name].null_count:
                raise InvalidRow("is NULL, and the column is NOT NULL", table=table.name, column=column.name,
                                 code="23502")  # fmt: skip
    return updates.with_columns(made) if made else updates


def check(table: Table, catalog: Catalog, updates: Updates) -> None:
    """Check the conditions of CHECK for the rows that are added.

    Raises:
        InvalidRow: one is false for a row; it is numbered in the updates.
        DataError: one fails for a row.
    """
    if not table.checks:
        return
    columns: Sequence[Column] = [column.column for column in table.columns]
    added = np.flatnonzero(updates.diff > 0)
    rows = updates.take(added)
    for one in table.checks:
        values = _values(table, bind_check(one.text, columns, catalog, table.name), rows)
        wrong = np.flatnonzero(values.fill_null(True).to_numpy(zero_copy_only=False) == 0)
        if len(wrong):
            raise InvalidRow(f"violates check constraint {one.name}: {one.text}", table=table.name,
                             row=int(added[wrong[0]]), code="23514")  # fmt: skip


def _values(table: Table, expr: Expr, updates: Updates) -> pa.Array:
    scalar: Scalar = compile(expr)
    result = scalar.evaluate(updates.columns, len(updates))
    if result.failures is not None and len(result.failures.rows):
        raise DataError(f"{table.name}: {next(iter(result.failures.messages))}")
    return result.values
