"""Find the temporal filters: turn predicates on mz_now() into formulas of comparisons with it."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.block import Block, Blocks
from halfjoin.planner.linear import Atom, Combination, Formula, Static
from halfjoin.sql.expr import FLIPPED, Call, Comparison, Expr, Now, is_temporal
from halfjoin.sql.functions import render


def find_temporal(blocks: Blocks) -> Blocks:
    """The same blocks with mz_now() only in temporal formulas.

    Raises:
        UnsupportedSQL: mz_now() stands where it does not say from which time until which time a row is in.
    """
    return tuple(_found(block) for block in blocks)


def _found(block: Block) -> Block:
    elsewhere = [arg for function in block.functions for arg in function.step.args]
    elsewhere += [expr for _, expr in block.outputs]
    elsewhere += [expr for item in block.inputs for expr in item.conditions]
    elsewhere += [side for item in block.inputs for match in item.on for side in (match.key, match.probe)]
    for expr in elsewhere:
        if is_temporal(expr):
            raise _refused(expr)
    return replace(
        block,
        predicates=tuple(predicate for predicate in block.predicates if not is_temporal(predicate)),
        temporal=tuple(formula(predicate) for predicate in block.predicates if is_temporal(predicate)),
    )


def formula(expr: Expr) -> Formula:
    """A predicate as a function of the time of the read."""
    if not is_temporal(expr):
        return Static(expr)
    match expr:
        case Call("and" | "or" as op, args):
            return Combination("and" if op == "and" else "or", tuple(formula(arg) for arg in args))
        case Call("not", (arg,)):
            return Combination("not", (formula(arg),))
        case Call(op, (Now(), bound)) if op in FLIPPED and not is_temporal(bound):
            return Atom(cast(Comparison, op), bound)
        case Call(op, (bound, Now())) if op in FLIPPED and not is_temporal(bound):
            return Atom(FLIPPED[op], bound)
    raise _refused(expr)


def _refused(expr: Expr) -> UnsupportedSQL:
    return UnsupportedSQL(
        f"mz_now() is used in {render(expr)}, which does not say from which time until which time a row is in",
        remedy="compare it in WHERE, alone on one side: mz_now() < expires_at",
    )
