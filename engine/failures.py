"""Errors as data: a row for which an expression fails becomes an update of the view's error collection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.codes import codes
from halfjoin.engine.updates import Positions, Updates
from halfjoin.sql.expr import Expr, columns_of
from halfjoin.sql.functions import render

_SHOWN = 1000  # characters of each value of a failing row
SCHEMA = {"error": pa.string(), "row": pa.string(), "code": pa.int64()}


@dataclass(frozen=True, slots=True)
class Errors:
    """Where an operator reports failing rows to.

    `parts`: error updates so far; None where another path or stage answers for the rows. `identity`: the columns that
    tell rows apart, the same by whichever path a row came; it may also have columns that only its path needed.
    """

    parts: list[Updates] | None
    identity: frozenset[str] = frozenset()

    def report(self, updates: Updates, rows: Positions, messages: Iterable[str], expr: Expr) -> None:
        """One error per failing row, with that row's time and diff, so that it goes away when the row does.

        `messages[i]` belongs to `rows[i]`. The text names the expression and the values it read; the code is the whole
        row's, so that different rows do not cancel.
        """
        if self.parts is None:
            return
        failing = updates.take(rows)
        code = codes([failing.columns[name] for name in sorted(self.identity & failing.columns.keys())], len(failing))
        text = pa.array([f"{message} in {render(expr)}" for message in messages], pa.string())
        row = _describe(failing, sorted(columns_of(expr)))
        self.parts.append(Updates({"error": text, "row": row, "code": pa.array(code)}, failing.time, failing.diff))


DROPPED = Errors(None)


def of_rows(updates: Updates, message: str) -> Updates:
    """Error updates that are about whole rows, with all their columns."""
    code = codes(list(updates.columns.values()), len(updates))
    text = pa.array(np.full(len(updates), message, object), pa.string())
    columns = {"error": text, "row": _describe(updates, list(updates.columns)), "code": pa.array(code)}
    return Updates(columns, updates.time, updates.diff)


def of_view(message: str, time: int) -> Updates:
    """An error that is nobody's row: from a time on there is no telling what the view contains."""
    text = f"{message}; it lacks rows from time {time} on: drop it and create it anew"
    columns = {"error": pa.array([text]), "row": pa.array([""]), "code": pa.array([0])}
    return Updates(columns, np.array([time]), np.array([1]))


def _describe(updates: Updates, names: Sequence[str]) -> pa.Array:
    """The rows as text: `a.x = 1, a.y = two`."""
    parts = [pa.array(np.full(len(updates), ""), pa.string())]
    for name in names:
        text = pc.fill_null(_shortened(_as_text(updates.columns[name])), "NULL")
        parts.append(pc.binary_join_element_wise(f"{name} = ", text, ""))
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts[1:], ", ")


def _shortened(text: pa.Array) -> pa.Array:
    """An error is to be read: of what is long its beginning tells enough."""
    if text.nbytes <= _SHOWN:
        return text
    begun = pc.binary_join_element_wise(pc.utf8_slice_codeunits(text, 0, _SHOWN), "...", "")
    return pc.if_else(pc.greater(pc.utf8_length(text), _SHOWN), begun, text)


def _as_text(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # bytes that are no text, arrays
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
