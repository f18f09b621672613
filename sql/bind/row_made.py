"""What is made of rows: a jsonb object of their members, or the text that PostgreSQL writes for a row, `(1,a)`.

A row is an argument of the functions that make jsonb, or is cast to text. See `row_values` for what a row is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind.row_values import Row, row_of
from halfjoin.sql.bind.selected import known
from halfjoin.sql.expr import TRUE, Call, Expr, Literal
from halfjoin.sql.functions import record_values, records
from halfjoin.sql.functions.padding import padded
from halfjoin.sql.types import BOOLEAN, TEXT, UNKNOWN

if TYPE_CHECKING:
    from halfjoin.sql.bind.scalar import Scalars

# The arguments that may be rows, by their positions from 0.
_TAKES: dict[str, Callable[[int], bool]] = {
    "to_jsonb": lambda place: place == 0,
    "jsonb_agg": lambda place: place == 0,
    "jsonb_object_agg": lambda place: place == 1,
    "jsonb_build_array": lambda place: True,
    "jsonb_build_object": lambda place: place % 2 == 1,
}


def arguments(name: str, nodes: Sequence[exp.Expr], scalars: Scalars) -> tuple[Expr, ...]:
    """The arguments of a call as values; a row is a jsonb where the function makes jsonb of values."""
    takes = _TAKES.get(name)
    if takes is None:
        return scalars.values(nodes)
    return tuple(_as_jsonb(node, scalars) if takes(place) else scalars.value(node) for place, node in enumerate(nodes))


def _as_jsonb(node: exp.Expr, scalars: Scalars) -> Expr:
    row = row_of(node, scalars)
    if row is None:
        value = scalars.value(node)
        return records.to_jsonb(functions.resolve, value) if record_values.is_record(value) else value
    parts = [part for name, member in zip(row.names, row.members, strict=True)
             for part in (Literal(name, TEXT), _as_jsonb(member, scalars))]  # fmt: skip
    return _if_there(row, functions.resolve("jsonb_build_object", parts), scalars)


def as_value(row: Row, scalars: Scalars) -> Expr:
    """A row as a value, which `apart` takes apart."""
    scalars.context.records.append("row")
    there = TRUE if row.there is None else scalars.value(row.there)
    return record_values.record(row.names, tuple(map(known, scalars.values(row.members))), there)


def as_text(node: exp.Expr, scalars: Scalars) -> Expr | None:
    """The text of a row; None for another expression."""
    row = row_of(node, scalars)
    if row is None:
        return None
    texts = tuple(_member(member, scalars) for member in row.members)
    return _if_there(row, Call("row text", texts, TEXT) if texts else Literal("()", TEXT), scalars)


def _member(node: exp.Expr, scalars: Scalars) -> Expr:
    """The text of a member as it is in a row, before quotes."""
    if (text := as_text(node, scalars)) is not None:
        return text
    value = known(scalars.value(node))
    if value.type != BOOLEAN:
        return functions.cast(padded(value), TEXT, explicit=True)
    letters = (value, Literal("t", UNKNOWN), functions.resolve("not", (value,)), Literal("f", UNKNOWN))
    return functions.resolve("case", letters)


def _if_there(row: Row, value: Expr, scalars: Scalars) -> Expr:
    """The value, or NULL for a row of the side of an outer join that is missing."""
    return value if row.there is None else functions.resolve("case", (scalars.value(row.there), value))
