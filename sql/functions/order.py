"""What orders values. Most types order by themselves; `order_of` says what orders the others, and `value_at` goes back.

An enum is ordered by the position of its label, a number. A jsonb is ordered by bytes, which follow PostgreSQL's order.
Comparisons, sort keys, and what min, max, greatest, least, mode and percentile_disc compare are these. Equality, groups
and joins need the values only. Intervals are equal by their lengths in microseconds as well as ordered by them.
"""

from __future__ import annotations

from dataclasses import replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Column, Expr, Literal
from halfjoin.sql.functions.internal import LENGTH
from halfjoin.sql.functions.record_values import is_there, members
from halfjoin.sql.functions.signature import Resolve
from halfjoin.sql.relation import AggregateCall, SortKey, WindowCall
from halfjoin.sql.types import BOOLEAN, BYTEA, INTEGER, JSONB, TEXT, Kind, SqlType, array

ORDERING = ("<", "<=", ">", ">=")
POSITION, BYTES = "enum position", "jsonb order"
_INSTEAD = {Kind.ENUM: "unnest them, or compare texts", Kind.JSONB: "write to_jsonb(...) of the array",
            Kind.RECORD: "unnest them, or write to_jsonb(...) of the array"}


def check_equality(*types: SqlType) -> None:
    """Refuse what needs to know which values of the types are equal: json is a text as it was written.

    Raises:
        UnsupportedSQL: a type is json, or has one inside.
    """
    if any(map(_has_json, types)):
        raise _not_json("an equality")


def _has_json(type: SqlType) -> bool:
    inner = [one for _, one in type.fields] if type.element is None else [type.element]
    return type.kind is Kind.JSON or any(map(_has_json, inner))


def _not_json(what: str) -> UnsupportedSQL:
    return UnsupportedSQL(f"could not identify {what} operator for type json", code="42883",
                          remedy="cast it to jsonb: j::jsonb, or to text")


def order_of(expr: Expr) -> Expr:
    """What orders as the expression does: the expression itself for most types.

    Raises:
        UnsupportedSQL: it is a json, or an array whose elements do not order by themselves.
    """
    type = expr.type
    if _has_json(type):
        raise _not_json("an ordering")
    if type.element is not None and type.element.kind is Kind.ARRAY:
        raise UnsupportedSQL(f"an order of {type} is not supported", remedy="write to_jsonb(...) of the array")
    if type.element is not None and type.element.kind in _INSTEAD:
        raise UnsupportedSQL(f"an order of {type} is not supported", remedy=_INSTEAD[type.element.kind])
    if type.kind is Kind.JSONB:
        return Call(BYTES, (expr,), BYTEA)
    if type.kind is not Kind.ENUM:
        return expr
    return Call(POSITION, (expr, Literal(list(type.labels), array(TEXT))), INTEGER)


def constant_order_of(expr: Expr) -> Expr:
    """What orders as the expression does, where no one asks for the value again: a label that is written is a number.

    Raises:
        UnsupportedSQL: as `order_of`.
    """
    if expr.type.kind is Kind.ENUM and isinstance(expr, Literal):
        return Literal(None if expr.value is None else expr.type.labels.index(str(expr.value)) + 1, INTEGER)
    return order_of(expr)


def ordered_value(expr: Expr) -> Expr:
    """The expression that `order_of` was given."""
    return expr.args[0] if isinstance(expr, Call) and expr.function in (POSITION, BYTES) else expr


def value_at(order: Expr, type: SqlType) -> Expr:
    """The value of a type from what orders it."""
    if type.kind is Kind.JSONB:
        return Call("jsonb of order", (order,), JSONB)
    if type.kind is Kind.ENUM:
        return Call("enum label", (order, Literal(list(type.labels), array(TEXT))), type)
    return order


def compared(expr: Expr, *, equality: bool) -> Expr:
    """What a comparison reads of an operand."""
    check_equality(expr.type)
    if expr.type.kind is Kind.INTERVAL:
        return length_of(expr)
    return expr if equality else constant_order_of(expr)


def length_of(interval: Expr) -> Call:
    """The number by which an interval is compared: its microseconds, with 30 days in a month and 24 hours in a day."""
    return Call("length of interval", (interval,), LENGTH)


def same_value(resolve: Resolve, one: Expr, other: Expr) -> Expr:
    """Whether a value is another's copy, as the plan of a subquery asks; two json are if they look the same."""
    if not _has_json(one.type):
        return resolve("is not distinct from", (one, other))
    if one.type.kind is not Kind.RECORD:
        return Call("is not distinct from", (one, other), BOOLEAN)
    pairs = zip((is_there(one), *members(one)), (is_there(other), *members(other)), strict=True)
    return resolve("and", [same_value(resolve, *pair) for pair in pairs])


def key_in_order(key: SortKey) -> SortKey:
    """A sort key over what orders its values."""
    return replace(key, expr=order_of(key.expr))


def result_of(call: AggregateCall | WindowCall, column: Column) -> Expr:
    """The result of an aggregate in its column, as a value where what orders the values was compared."""
    read = call.args[0] if call.args else None
    if isinstance(call, AggregateCall) and call.function in ("mode", "percentile_disc"):
        read = call.order[0].expr
    elif call.function not in ("min", "max"):
        return column
    if read is None or (value := ordered_value(read)) is read:
        return column
    if column.type.kind is Kind.ARRAY:
        raise UnsupportedSQL(f"{call.function} of {value.type} takes one fraction", remedy="call it for each fraction")
    return value_at(column, value.type)
