"""Drop the joins that never give a row: those with a predicate that is never true."""

from __future__ import annotations

from halfjoin.planner.block import Blocks
from halfjoin.sql.expr import Literal


def drop_empty(blocks: Blocks) -> Blocks:
    """The blocks that do not have a predicate FALSE or NULL."""
    return tuple(
        block for block in blocks if not any(isinstance(p, Literal) and p.value is not True for p in block.predicates)
    )
