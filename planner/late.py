"""Puts off what a path computes until it has fewer rows: a column that cannot fail need not be there earlier.

A lookup by a unique key finds at most one partner for a row, and many rows find none or lose theirs to a filter. So a
column that is computed after such lookups is computed for fewer rows, and lookups in a row with nothing between them
are one call of a kernel. Before a step that may multiply rows it is computed. So are columns made of texts or arrays,
as they may be far smaller than what they are made of.
"""

from __future__ import annotations

from dataclasses import replace

from halfjoin.planner.linear import Explode, Extend, Step, Temporal
from halfjoin.planner.liveness import Draft, DraftStage
from halfjoin.planner.plan import InputKind
from halfjoin.sql.expr import Column, Expr, walk
from halfjoin.sql.types import FLOATS, INTEGERS, Kind

_SMALL = (*INTEGERS, *FLOATS, Kind.BOOLEAN, Kind.NUMERIC, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def computing_late(draft: Draft) -> Draft:
    """The path with the columns that it computes where it has few rows. One with a choice of orders stays as it is:
    rows of all orders must have the same columns where they meet."""
    if any(stage.otherwise for stage in draft.stages):
        return draft
    parts, waiting = list[list[Step]](), list[Step]()
    for number, steps in enumerate((draft.source, *(stage.then for stage in draft.stages))):
        movable = [step for step in steps if _can_wait(step)] if number or draft.appearing is None else []
        part = [step for step in steps if step not in movable]
        waiting += movable
        if any(map(_multiplies, draft.stages[number : number + 1])):
            part, waiting = [*part, *waiting], []
        parts.append(part)
    stages = [replace(stage, then=part) for stage, part in zip(draft.stages, parts[1:], strict=True)]
    return replace(draft, source=parts[0], stages=stages, final=[*waiting, *draft.final])


def _can_wait(step: Step) -> bool:
    """Whether a step computes outputs, of columns with small values."""
    return isinstance(step, Extend) and not step.members and all(_is_small(expr) for _, expr in step.items)


def _is_small(expr: Expr) -> bool:
    return all(node.type.kind in _SMALL for node in walk(expr) if isinstance(node, Column))


def _multiplies(stage: DraftStage) -> bool:
    """Whether a row may become several."""
    asks = stage.half_join.kind in (InputKind.PRESENT, InputKind.ABSENT)
    return not (stage.unique or asks) or any(isinstance(step, Explode | Temporal) for step in stage.then)
