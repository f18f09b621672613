"""Computes the key columns of an arrangement from the collection's rows. The arrangement's index is sorted by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.index import Entries, KeyColumns
from halfjoin.engine.linear.evaluate import evaluate_all
from halfjoin.engine.linear.failures import DROPPED
from halfjoin.engine.linear.operators import compile_linear
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar import compile
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.planner.linear import Keep, Linear
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column, Expr, columns_of

_ORIGIN = "#row"  # no SQL column has such a name


def key_columns(key: ArrangementKey, registry: Registry) -> KeyColumns:
    """The function that makes index entries from updates: one per row, or several if a table function makes the key.

    A row whose key expression fails has no entry. The path of the row's own input reports the failure.
    """
    if key.through is None and all(isinstance(expr, Column) for expr in key.keys):
        names = [expr.name for expr in key.keys if isinstance(expr, Column)]
        return lambda updates: ([updates.columns[name] for name in names], None)
    return _computed(key.keys, key.through, registry)


def _computed(keys: tuple[Expr, ...], through: Linear | None, registry: Registry) -> KeyColumns:
    scalars = [(compile(expr), expr) for expr in keys]
    kept = Keep((*sorted(frozenset[str]().union(*map(columns_of, keys))), _ORIGIN))  # a filter copies no other column
    operator = None if through is None else compile_linear(replace(through, steps=(*through.steps, kept)), registry)

    def entries(updates: Updates) -> Entries:
        origin = pa.array(np.arange(len(updates)))
        # The weight of a row does not matter to the index. So a weight of 0 must not drop the row.
        rows = Updates({**updates.columns, _ORIGIN: origin}, updates.time, constant(1, len(updates)))
        if operator is not None:
            rows = operator(rows, [])
        arrays, rows = evaluate_all(scalars, rows, DROPPED)
        if operator is None and len(rows) == len(updates):
            return arrays, None
        return arrays, rows.columns[_ORIGIN].to_numpy()

    return entries
