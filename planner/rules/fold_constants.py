"""Fold constant parts: what literals make (`constant_values`), AND, OR, NOT of truth values. Days that are compared as
timestamps are compared as days. And a row that is taken apart and put together again is the row."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from halfjoin.planner.block import Block, Blocks
from halfjoin.planner.rules.constant_values import computed, day_of
from halfjoin.sql.expr import FALSE, FLIPPED, TRUE, Call, Cast, Expr, Literal, rewrite
from halfjoin.sql.functions.casting import cast
from halfjoin.sql.functions.record_values import VALUE, as_it_was
from halfjoin.sql.types import Kind
from halfjoin.sql.unseen import is_unseen

_MOMENTS = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def fold_constants(blocks: Blocks) -> Blocks:
    """The same blocks with constant parts of predicates, arguments and outputs computed."""
    return tuple(_folded(block) for block in blocks)


def _folded(block: Block) -> Block:
    return replace(
        block,
        functions=tuple(
            replace(function, step=replace(function.step, args=tuple(fold(arg) for arg in function.step.args)))
            for function in block.functions
        ),
        predicates=tuple(fold(predicate) for predicate in block.predicates),
        outputs=tuple((column, fold(expr)) for column, expr in block.outputs),
    )


def fold(expr: Expr) -> Expr:
    """The expression with its constant parts computed.

    >>> from halfjoin.sql.types import BOOLEAN, INTEGER
    >>> fold(Call("=", (Literal(1, INTEGER), Literal(2, INTEGER)), BOOLEAN)).value
    False
    """
    return rewrite(expr, _fold_node)


def _fold_node(expr: Expr) -> Expr:
    match expr:
        case Call("and" | "or" as name, args):
            return _connective(expr, name == "and", args)
        case Call("not", (Literal(value),)):
            return expr.args[0] if value is None else (FALSE if value else TRUE)
        case Call(function=name) if name == VALUE:
            return as_it_was(expr)
        case Call(args=(Literal() as left, Literal() as right)):
            return computed(expr, left, right)
        case Call(function=name, args=(Cast() as side, Literal() as literal)) if name in FLIPPED:
            return _of_days(expr, name, side, literal)
        case Call(function=name, args=(Literal() as literal, Cast() as side)) if name in FLIPPED:
            return _of_days(expr, FLIPPED[name], side, literal)
        case Cast(Literal() as literal, type) if literal.type.kind is Kind.DATE and type.kind in _MOMENTS:
            return expr if is_unseen(literal.value) or not isinstance(literal.value, date) else cast(literal, type)
    return expr


def _of_days(expr: Call, comparison: str, side: Cast, literal: Literal) -> Expr:
    """`day::timestamp < '2024-01-02 00:00:00'`, as of `day < date '2024-01-01' + interval '1 day'`, compares days.

    As in PostgreSQL where no cast is written, a date beyond all timestamps is compared, and does not fail.
    """
    if side.arg.type.kind is not Kind.DATE or side.type.kind not in _MOMENTS:
        return expr
    day = day_of(literal)
    return expr if day is None else Call(comparison, (side.arg, day), expr.type)


def _connective(expr: Call, is_and: bool, args: tuple[Expr, ...]) -> Expr:
    neutral, absorbing = (TRUE, FALSE) if is_and else (FALSE, TRUE)
    if absorbing in args:
        return absorbing
    rest = tuple(arg for arg in args if arg != neutral)
    if not rest:
        return neutral
    return rest[0] if len(rest) == 1 else replace(expr, args=rest)
