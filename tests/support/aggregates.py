"""Aggregates in tests: from the values of a group to the kept sums, and from those to the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar import arrow_type, compile, sums
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.aggregates import Decomposed, decompose, resolve_aggregate
from halfjoin.sql.types import SqlType

Rows = Sequence[Sequence[Any]]  # values of x, or of y and x

NAMES = {1: ("x",), 2: ("y", "x")}


def decomposed(name: str, *types: SqlType, condition: Expr | None = None) -> Decomposed:
    """What adds up in a call over columns of these types; `count` without types counts rows."""
    args = [Column(column, type) for column, type in zip(NAMES.get(len(types), ()), types, strict=True)]
    made = decompose(resolve_aggregate(name, args, condition=condition))
    assert made is not None
    return made


def totals(made: Decomposed, columns: dict[str, Any], diff: Sequence[int]) -> list[Totals]:
    """One entry a row, for each part."""
    weights, found = np.array(diff, np.int64), []
    for part in made.parts:
        args = [compile(arg).evaluate(columns, len(diff)).values for arg in part.args]
        found.append(Totals.lifted(part.kind, args, weights))
    return found


def columns_of(rows: Rows, types: Sequence[SqlType]) -> dict[str, Any]:
    """The rows as columns."""
    values = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    names = NAMES.get(len(types), ())
    return {name: pa.array(column, arrow_type(type)) for name, column, type in zip(names, values, types, strict=True)}


def kept(made: Decomposed, rows: Rows, types: Sequence[SqlType], diff: Sequence[int] | None = None) -> list[Any]:
    """What is kept for one group of these rows."""
    if not rows:
        return [pa.nulls(1, arrow_type(part.type)) for part in made.parts]
    found = totals(made, columns_of(rows, types), [1] * len(rows) if diff is None else diff)
    return [part.added(np.array([0])).kept() for part in found]


def results(made: Decomposed, arrays: Sequence[Any]) -> list[Any]:
    """The aggregate's values from what is kept for several groups; a failure as its text."""
    columns = [Column(f"k{i}", part.type) for i, part in enumerate(made.parts)]
    given = {column.name: array for column, array in zip(columns, arrays, strict=True)}
    found = compile(made.result(columns)).evaluate(given, len(arrays[0]))
    with patch.object(sums, "FEW", 0):  # few groups are computed one by one, and mean the same
        many = compile(made.result(columns)).evaluate(given, len(arrays[0]))
    values: list[Any] = found.values.to_pylist()
    assert repr(many.values.to_pylist()) == repr(values) and (many.failures is None) == (found.failures is None)
    if found.failures is not None:
        for row, message in zip(found.failures.rows, found.failures.messages, strict=True):
            values[row] = f"ERROR: {message}"
    return values


def aggregate(name: str, rows: Rows, *types: SqlType, diff: Sequence[int] | None = None) -> Any:
    """The aggregate over one group of rows."""
    made = decomposed(name, *types)
    return results(made, kept(made, rows, types, diff))[0]
