"""Imply filters of one input from an OR over several inputs, so that fewer rows go on to the next lookup.

`(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)` implies `a.x = 1 OR a.x = 3` for `a` alone. The OR itself stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from halfjoin.planner.block import Block, Blocks, inputs_of
from halfjoin.sql.expr import Call, Expr, conjunction, conjuncts, is_temporal
from halfjoin.sql.functions import fallible
from halfjoin.sql.types import BOOLEAN


def imply_filters(blocks: Blocks) -> Blocks:
    """The same blocks with the implied filters added. They are redundant, so none that may fail is added."""
    return tuple(
        replace(block, predicates=tuple(dict.fromkeys([*block.predicates, *_implied(block)]))) for block in blocks
    )


def _implied(block: Block) -> Iterator[Expr]:
    owners = block.owners
    for predicate in block.predicates:
        if not (isinstance(predicate, Call) and predicate.function == "or"):
            continue
        if len(inputs_of(predicate, owners)) < 2:
            continue
        arms = [tuple(conjuncts(arm)) for arm in predicate.args]
        for item in block.inputs:
            alone = frozenset({item.alias})
            parts = [
                tuple(p for p in arm if inputs_of(p, owners) == alone and not fallible(p) and not is_temporal(p))
                for arm in arms
            ]
            if all(parts):
                yield Call("or", tuple(dict.fromkeys(map(conjunction, parts))), BOOLEAN)
