"""Split predicates at AND, and take what all arms of an OR have in common out of the OR."""

from __future__ import annotations

from dataclasses import replace

from halfjoin.planner.block import Blocks
from halfjoin.sql.expr import TRUE, Call, Expr, conjunction, conjuncts
from halfjoin.sql.types import BOOLEAN


def split_conjuncts(blocks: Blocks) -> Blocks:
    """The same blocks with their predicates split: no predicate is an AND, and none occurs twice."""
    return tuple(
        replace(block, predicates=tuple(dict.fromkeys(part for whole in block.predicates for part in split(whole))))
        for block in blocks
    )


def split(predicate: Expr) -> list[Expr]:
    """The conditions that are all true where the predicate is."""
    return [part for conjunct in conjuncts(predicate) for part in _factored(conjunct)]


def _factored(predicate: Expr) -> list[Expr]:
    """`(p AND q) OR (p AND r)` as `p`, `q OR r`."""
    if not (isinstance(predicate, Call) and predicate.function == "or"):
        return [predicate]
    arms = [dict.fromkeys(split(arm)) for arm in predicate.args]
    common = [part for part in arms[0] if all(part in arm for arm in arms[1:])]
    if not common:
        return [predicate]
    rests = tuple(conjunction(tuple(part for part in arm if part not in common)) for arm in arms)
    return common if TRUE in rests else [*common, Call("or", rests, BOOLEAN)]
