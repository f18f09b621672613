"""Fold simple constant parts: comparisons and integer arithmetic of literals, and AND, OR, NOT of truth values. And a
row that is taken apart and put together again is the row."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from halfjoin.planner.block import Block, Blocks
from halfjoin.sql.expr import FALSE, TRUE, Call, Expr, Literal, rewrite
from halfjoin.sql.functions.record_values import VALUE, as_it_was
from halfjoin.sql.types import BOOLEAN, STRINGS, Kind

_BITS = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


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

    >>> from halfjoin.sql.types import INTEGER
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
        case Call(name, (Literal(left, kind), Literal(right, other))) if kind == other:
            return _binary(expr, name, left, right, kind.kind)
    return expr


def _connective(expr: Call, is_and: bool, args: tuple[Expr, ...]) -> Expr:
    neutral, absorbing = (TRUE, FALSE) if is_and else (FALSE, TRUE)
    if absorbing in args:
        return absorbing
    rest = tuple(arg for arg in args if arg != neutral)
    if not rest:
        return neutral
    return rest[0] if len(rest) == 1 else replace(expr, args=rest)


def _binary(expr: Call, name: str, left: object, right: object, kind: Kind) -> Expr:
    if name in _COMPARISONS and (kind in _BITS or kind in STRINGS or kind is Kind.BOOLEAN):
        if left is None or right is None:
            return Literal(None, BOOLEAN)
        return TRUE if _COMPARISONS[name](left, right) else FALSE
    bits = _BITS.get(expr.type.kind)
    if name in _ARITHMETIC and bits and kind is expr.type.kind and isinstance(left, int) and isinstance(right, int):
        value = _ARITHMETIC[name](left, right)
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return Literal(value, expr.type)
    return expr
