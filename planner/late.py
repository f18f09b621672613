"""Puts off what a path computes until it has fewer rows: a column that cannot fail need not be there earlier.

A lookup by a unique key finds at most one partner for a row, and many rows find none or lose theirs to a filter. So a
column that is computed after such lookups is computed for fewer rows, and lookups in a row with nothing between them
are one call of a kernel. Before a step that may multiply rows it is computed. So are columns made of texts or arrays,
as they may be far smaller than what they are made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from halfjoin.planner.linear import Explode, Extend, Step, Temporal
from halfjoin.planner.liveness import Draft, DraftStage
from halfjoin.planner.plan import InputKind
from halfjoin.sql.expr import Column, Expr, walk
from halfjoin.sql.types import FLOATS, INTEGERS, Kind

Item: TypeAlias = tuple[Column, Expr]  # a column, and what it is computed from

_SMALL = (*INTEGERS, *FLOATS, Kind.BOOLEAN, Kind.NUMERIC, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def computing_late(draft: Draft) -> Draft:
    """The path with the columns that it computes where it has few rows. One with a choice of orders stays as it is:
    rows of all orders must have the same columns where they meet."""
    if any(stage.otherwise for stage in draft.stages):
        return draft
    parts, waiting = list[list[Step]](), list[Item]()
    for number, steps in enumerate((draft.source, *(stage.then for stage in draft.stages))):
        if number or draft.appearing is None:
            steps, later = _parted(steps)
            waiting += later
        if any(map(_multiplies, draft.stages[number : number + 1])):
            steps, waiting = [*steps, *_extend(waiting)], []
        parts.append([*steps])
    stages = [replace(stage, then=part) for stage, part in zip(draft.stages, parts[1:], strict=True)]
    return replace(draft, source=parts[0], stages=stages, final=[*_extend(waiting), *draft.final])


def _parted(steps: Sequence[Step]) -> tuple[list[Step], list[Item]]:
    """The steps without the outputs that can wait, and these."""
    left, waiting = list[Step](), list[Item]()
    for step in steps:
        if isinstance(step, Extend) and not step.members:
            waiting += [item for item in step.items if _is_small(item[1])]
            left += _extend([item for item in step.items if not _is_small(item[1])])
        else:
            left.append(step)
    return left, waiting


def _extend(items: Sequence[Item]) -> list[Step]:
    return [Extend(tuple(items))] if items else []


def _is_small(expr: Expr) -> bool:
    """Whether all columns that it reads have small values."""
    return all(node.type.kind in _SMALL for node in walk(expr) if isinstance(node, Column))


def _multiplies(stage: DraftStage) -> bool:
    """Whether a row may become several."""
    asks = stage.half_join.kind in (InputKind.PRESENT, InputKind.ABSENT)
    return not (stage.unique or asks) or any(isinstance(step, Explode | Temporal) for step in stage.then)
