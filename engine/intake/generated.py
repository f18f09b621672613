"""Computes the GENERATED columns of rows, and checks the CHECK constraints of a table."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import ColumnModel, Table
from halfjoin.engine.scalar import Scalar, compile
from halfjoin.engine.scalar.cells import cell
from halfjoin.engine.updates.consolidate import groups
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import DataError, InvalidRow, shown
from halfjoin.sql.bind.constraints import bind_check, bind_generated
from halfjoin.sql.bind.named_types import VALUE, violation
from halfjoin.sql.bind.named_types import condition as of_domain

MOST_TABLES = 4096  # whose expressions are remembered


def with_generated(table: Table, updates: Updates, *, given: bool = False) -> Updates:
    """The rows with the values of the generated columns. `given`: the values that they have there are the user's, so
    they must be these values or NULL.

    Raises:
        DataError: an expression fails for a row.
        InvalidRow: a value is NULL, and the column is NOT NULL; or the user gave another value.
    """
    if all(column.generated is None for column in table.columns):
        return updates
    made = {}
    for column, value in _generated(table):
        made[column.name] = values(table, value, updates)
        if column.not_null and made[column.name].null_count:
            raise InvalidRow("is NULL, and the column is NOT NULL", table=table.name, column=column.name,
                             code="23502")  # fmt: skip
        if given:
            _check_given(table, column.name, updates.columns[column.name], made[column.name])
    return updates.with_columns(made)


def _check_given(table: Table, name: str, given: pa.Array, made: pa.Array) -> None:
    """Check that no value given for a generated column is another one than the column's."""
    if given.null_count == len(given):
        return
    numbers = groups([pa.concat_arrays([given, made])], 2 * len(given))
    other = (numbers[: len(given)] != numbers[len(given) :]) & given.is_valid().to_numpy(zero_copy_only=False)
    if other.any():
        row = int(other.argmax())
        raise InvalidRow(f"is not the value of the generated column, {shown(cell(made, row))}",
                         remedy="leave the column out", table=table.name, column=name, row=row,
                         value=cell(given, row), code="428C9")  # fmt: skip


def check(table: Table, updates: Updates) -> None:
    """Check the conditions of CHECK for the rows that are added.

    Raises:
        InvalidRow: one is false for a row; it is numbered in the updates.
        DataError: one fails for a row.
    """
    if not table.checks and not any(column.domain and column.domain.checks for column in table.columns):
        return
    domains, conditions = _checks(table)
    added = np.flatnonzero(updates.diff > 0)
    rows = updates.take(added)
    for column, name, condition in domains:
        value = Updates({VALUE: rows.columns[column.name]}, rows.time, rows.diff)
        held = values(table, condition, value)
        wrong = np.flatnonzero(held.fill_null(True).to_numpy(zero_copy_only=False) == 0)
        if len(wrong):
            assert column.domain is not None
            raise InvalidRow(violation(column.domain, name), table=table.name, column=column.name,
                             row=int(added[wrong[0]]), constraint=name, code="23514")  # fmt: skip
    for one, condition in zip(table.checks, conditions, strict=True):
        held = values(table, condition, rows)
        wrong = np.flatnonzero(held.fill_null(True).to_numpy(zero_copy_only=False) == 0)
        if len(wrong):
            raise InvalidRow(f"violates check constraint {one.name}: {one.text}", table=table.name,
                             row=int(added[wrong[0]]), constraint=one.name, code="23514")  # fmt: skip


# Expressions are bound once, not for each batch, and all of a table at once: to find them there is work, too.
@lru_cache(maxsize=MOST_TABLES)
def _generated(table: Table) -> tuple[tuple[ColumnModel, Scalar], ...]:
    """The generated columns, and what computes each."""
    plain, known = tuple(one.column for one in table.columns if one.generated is None), Catalog.knowing(table)
    return tuple((one, compile(bind_generated(one.generated, plain, one.type, known, table.name)))
                 for one in table.columns if one.generated is not None)  # fmt: skip


@lru_cache(maxsize=MOST_TABLES)
def _checks(table: Table) -> tuple[tuple[tuple[ColumnModel, str, Scalar], ...], tuple[Scalar, ...]]:
    """The conditions of the columns' domains, with their columns and names; and those of the table."""
    columns, known = tuple(one.column for one in table.columns), Catalog.knowing(table)
    domains = tuple((one, name, compile(of_domain(text, one.type, known)))
                    for one in table.columns if one.domain for name, text in one.domain.checks)  # fmt: skip
    return domains, tuple(compile(bind_check(one.text, columns, known, table.name)) for one in table.checks)


def values(table: Table, scalar: Scalar, updates: Updates) -> pa.Array:
    """The values of an expression for rows.

    Raises:
        DataError: it fails for a row.
    """
    result = scalar.evaluate(updates.columns, len(updates))
    if result.failures is not None and len(result.failures.rows):
        why = next(iter(result.failures.messages))
        raise DataError(f"{table.name}: {why}", code=DataError(why).sqlstate)
    return result.values
