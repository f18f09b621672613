"""Make an outer join inner if a condition above it is never true for its default row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from halfjoin.planner.block import Block, Blocks, Input, Match
from halfjoin.planner.nulls import rejects
from halfjoin.planner.plan import InputKind
from halfjoin.planner.rules.sides import unguarded
from halfjoin.sql.expr import Expr, Literal, columns_of, substitute
from halfjoin.sql.functions import fallible, resolve


def make_inner(blocks: Blocks) -> Blocks:
    """The same blocks with such padded inputs plain: `a LEFT JOIN b ON b.k = a.k WHERE b.x = 3` is `a JOIN b`.

    What a plain input is joined by is a condition again, so it may make other inputs plain. An input stays padded if a
    condition on it alone may fail: over a plain input it would be computed for rows without a partner, too. What reads
    several inputs, and outputs, are computed for joined rows.
    """
    return tuple(_inner(block) for block in blocks)


def _inner(block: Block) -> Block:
    while (found := _first(block)) is not None:
        columns = {column.name: column for column in found.columns}  # without what the default row may be
        tests = (test for match in found.on for test in _tests(match))
        predicates = dict.fromkeys([*block.predicates, *found.conditions, *tests])
        plain = replace(found, kind=InputKind.PLAIN, on=(), conditions=(), default=())
        block = replace(
            block,
            inputs=tuple(plain if item is found else item for item in block.inputs),
            functions=tuple(
                replace(one, step=replace(one.step, args=tuple(substitute(arg, columns) for arg in one.step.args)))
                for one in block.functions
            ),
            predicates=tuple(substitute(predicate, columns) for predicate in predicates),
            outputs=tuple((column, substitute(expr, columns)) for column, expr in block.outputs),
        )
    return block


def _tests(match: Match) -> list[Expr]:
    condition, plain = unguarded(match)
    equal = resolve("is not distinct from" if match.null_safe else "=", (plain.key, plain.probe))
    return [equal] if condition is None else [condition, equal]


def _first(block: Block) -> Input | None:
    """A padded input whose default row some condition rejects."""
    for item in block.inputs:
        if item.kind is InputKind.PADDED and not _may_fail(block, item):
            row = item.default_row
            nulls = {name for name, value in row.items() if value.value is None}
            if any(rejects(_over(predicate, row), nulls) for predicate in block.predicates):
                return item
    return None


def _may_fail(block: Block, item: Input) -> bool:
    """Whether what may be computed before the input's rows have their partners may fail."""
    own = {column.name for column in item.columns}
    alone = (predicate for predicate in block.predicates if columns_of(predicate) <= own)
    keys = (part for match in item.on for part in (match.key, match.probe))
    args = (arg for function in block.functions for arg in function.step.args)
    return any(fallible(expr) and columns_of(expr) & own for expr in (*alone, *item.conditions, *keys, *args))


def _over(predicate: Expr, row: Mapping[str, Literal]) -> Expr:
    """A predicate over a default row."""
    return substitute(predicate, {name: value for name, value in row.items() if value.value is not None})
