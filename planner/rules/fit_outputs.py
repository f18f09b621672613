"""Fit the outputs into types that can be stored: a stored numeric has up to 38 digits, an intermediate one up to 76."""

from __future__ import annotations

from dataclasses import replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.block import Blocks
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions import cast
from halfjoin.sql.types import STORED_DIGITS, Kind, SqlType, array, numeric


def fit_outputs(blocks: Blocks) -> Blocks:
    """The same blocks with numerics of too many digits cast to 38. The cast fails for a row whose value needs more.

    Raises:
        UnsupportedSQL: a column has more than 38 digits after the point, and cutting them would change values silently.
    """
    return tuple(
        replace(block, outputs=tuple(_fitted(column, expr) for column, expr in block.outputs)) for block in blocks
    )


def _fitted(column: Column, expr: Expr) -> tuple[Column, Expr]:
    type = stored(column)
    return (column, expr) if type == column.type else (replace(column, type=type), cast(expr, type))


def stored(column: Column) -> SqlType:
    """The type in which an output column is stored."""
    return stored_type(column.type, column.name)


def stored_type(type: SqlType, name: str) -> SqlType:
    """As `stored`, of a column of that name and type."""
    if type.kind is Kind.ARRAY and type.element is not None:
        return array(stored_type(type.element, name))
    if type.kind is not Kind.NUMERIC or type.precision is None or type.precision <= STORED_DIGITS:
        return type
    scale = type.scale or 0
    if scale > STORED_DIGITS:
        raise UnsupportedSQL(
            f"column {name} has {scale} digits after the point; a column holds at most {STORED_DIGITS} in all",
            remedy=f"round it: round({name}, 10), or cast it to numeric(38, 10)",
        )
    return numeric(STORED_DIGITS, scale)
