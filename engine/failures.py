"""Errors as data: a row for which an expression fails becomes an update of the view's error collection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.codes import codes
from halfjoin.engine.updates import Positions, Updates
from halfjoin.sql.expr import Expr, columns_of
from halfjoin.sql.functions import render

SCHEMA = {"error": pa.string(), "row": pa.string(), "code": pa.int64()}


def error_updates(updates: Updates, rows: Positions, messages: Iterable[str], expr: Expr) -> Updates:
    """One error per failing row, with that row's time and diff, so that it goes away when the row does.

    `messages[i]` belongs to `rows[i]`. The text names the expression and the values it read. The code is that of the
    whole row, so that different rows do not cancel; a complete row has the same columns by whichever path it came.
    """
    failing = updates.take(rows)
    code = codes([failing.columns[name] for name in sorted(failing.columns)], len(failing))
    prefix = pa.array([f"{message} in {render(expr)}" for message in messages], pa.string())
    row = _describe(failing, sorted(columns_of(expr)))
    return Updates({"error": prefix, "row": row, "code": pa.array(code)}, failing.time, failing.diff)


def _describe(updates: Updates, names: Sequence[str]) -> pa.Array:
    """The rows as text: `a.x = 1, a.y = two`."""
    parts = [pa.array(np.full(len(updates), ""), pa.string())]
    for name in names:
        text = pc.fill_null(_as_text(updates.columns[name]), "NULL")
        parts.append(pc.binary_join_element_wise(f"{name} = ", text, ""))
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts[1:], ", ")


def _as_text(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # bytes that are no text, arrays
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
