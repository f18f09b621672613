"""Fold `coalesce(a.k, b.k)` to `a.k` where b is looked up by `b.k = a.k`, as the merged column of FULL JOIN ... USING.

`b.k` is `a.k`, or NULL in a default row, and where `a.k` is NULL nothing matches. So a join by the merged column is a
join by `a.k`, which can be looked up.
"""

from __future__ import annotations

from dataclasses import replace

from halfjoin.planner.block import Block, Blocks
from halfjoin.planner.plan import InputKind
from halfjoin.planner.rules.find_equalities import comparable
from halfjoin.planner.rules.sides import unguarded
from halfjoin.sql.expr import Call, Column, Expr, Literal, rewrite
from halfjoin.sql.functions import cast


def fold_merged(blocks: Blocks) -> Blocks:
    """The same blocks with such calls folded, and NULLs left out of others."""
    return tuple(_folded(block) for block in blocks)


def _folded(block: Block) -> Block:
    matched = dict[str, Expr]()  # what a padded input's column is equal to where it is not NULL
    for item in block.inputs:
        for match in item.on if item.kind is InputKind.PADDED else ():
            key, probe = comparable(match.key), comparable(unguarded(match)[1].probe)
            if isinstance(key, Column) and not match.null_safe:
                matched[key.name] = probe

    def change(expr: Expr) -> Expr:
        if not (isinstance(expr, Call) and expr.function == "coalesce"):
            return expr
        kept: list[Expr] = []
        for arg in expr.args:
            bare = comparable(arg)
            equal = matched.get(bare.name) if isinstance(bare, Column) else None
            if not (isinstance(arg, Literal) and arg.value is None) and equal not in [comparable(one) for one in kept]:
                kept.append(arg)
        if not kept:
            return Literal(None, expr.type)
        return cast(kept[0], expr.type) if len(kept) == 1 else replace(expr, args=tuple(kept))

    def fold(expr: Expr) -> Expr:
        return rewrite(expr, change)

    return replace(
        block,
        inputs=tuple(
            replace(item, on=tuple(replace(match, probe=fold(match.probe)) for match in item.on)) if item.on else item
            for item in block.inputs
        ),
        functions=tuple(
            replace(one, step=replace(one.step, args=tuple(map(fold, one.step.args)))) for one in block.functions
        ),
        predicates=tuple(map(fold, block.predicates)),
        outputs=tuple((column, fold(expr)) for column, expr in block.outputs),
    )
