"""Drops columns as soon as no later step needs them, and fetches only those that some step needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from halfjoin.planner.block import Function, Input, expressions
from halfjoin.planner.fallibility import step_fallible
from halfjoin.planner.linear import Explode, Extend, Filter, Keep, Linear, Reports, Step, Temporal
from halfjoin.planner.plan import Appearing, HalfJoin, InputKind, Path, Stage
from halfjoin.sql.expr import Literal, columns_of

Names: TypeAlias = frozenset[str]


@dataclass(frozen=True)
class DraftStage:
    """A stage before its needed columns are known. `otherwise`: see `planner.plan.Stage`. `unique`: the key that it
    looks up has one row at most."""

    half_join: HalfJoin
    then: Sequence[Step]
    otherwise: Sequence[Sequence[DraftStage]] = ()
    unique: bool = False


@dataclass(frozen=True)
class Draft:
    """A path before its needed columns are known: no `fetch`, no Keep.

    `alone` and `complete` tell failing rows apart in `source` and in `final`. `appearing` is set if the input is not
    plain: the half-join that asks for its keys, and the steps that follow `source`.
    """

    input: int
    source: Sequence[Step]
    stages: Sequence[DraftStage]
    final: Sequence[Step]
    alone: Reports
    complete: Reports
    appearing: tuple[HalfJoin, Sequence[Step]] | None = None
    dares: bool = False  # what fails in a stage is an error there


@dataclass(frozen=True)
class _Needing:
    """A stage with the columns that are needed before each of its steps (`then`), and before and after it."""

    half_join: HalfJoin
    then: list[tuple[Step, Names]]
    before: Names
    after: Names
    otherwise: list[list[_Needing]]


def finished(draft: Draft, inputs: Sequence[Input], outputs: Sequence[str]) -> Path:
    """The path that ends with exactly the columns `outputs`, and never carries a column that nothing later needs."""
    # Backwards: the columns needed before each step.
    final, complete = _needs(draft.final, frozenset(outputs), draft.complete)
    stages = _needing(draft.stages, complete, inputs)
    live = entering = stages[0].before if stages else complete
    item = inputs[draft.input]
    following: list[tuple[Step, Names]] = []
    if draft.appearing is not None:
        following, live = _needs(draft.appearing[1], live)
        live = live.union(*map(columns_of, draft.appearing[0].probe))
    made = live
    source, live = _needs(draft.source, live, draft.alone)
    own = _fetch(item, live)

    # Forwards: the columns present, without those not needed.
    first, present = _trimmed(source, [name for _, name in own])
    default: tuple[tuple[str, Literal], ...] = ()
    segment = first
    if draft.appearing is not None:
        present = _keep(first, present, made)
        default = tuple((name, value) for name, value in item.default_row.items() if name in present)
        segment, present = _trimmed(following, present)
    present = _keep(segment, present, entering)
    finished_stages, present = _kept(stages, present, draft.complete if draft.dares else None)
    last, present = _trimmed(final, present)
    if present != list(outputs):
        last.append(Keep(tuple(outputs)))
    return Path(
        draft.input, item.alias, item.collection, own,
        _reporting(first, draft.alone),
        finished_stages,
        _reporting(last, draft.complete),
        item.kind,
        Appearing(draft.appearing[0], default, Linear(tuple(segment))) if draft.appearing else None,
        constant=item.constant is not None,
    )  # fmt: skip


def _needing(stages: Sequence[DraftStage], live: Names, inputs: Sequence[Input]) -> list[_Needing]:
    """Stages with the columns that they need; `live` are those needed after the last. A column that some order needs is
    there for all of them."""
    found: list[_Needing] = []
    ends = [live]  # the columns needed after the last stage, after the one before it, ...
    for stage in reversed(stages):
        after, live = _needs(stage.then, ends[-1])
        item = inputs[stage.half_join.input]
        fetch = _fetch(item, live)
        live = (live - {name for _, name in fetch}).union(*map(columns_of, stage.half_join.probe))
        others = [_needing(order, ends[-len(order)], inputs) for order in stage.otherwise]
        live = live.union(*(order[0].before for order in others))
        found.append(_Needing(_fetching(stage.half_join, item, fetch), after, live, ends[-1], others))
        ends.append(live)
    return found[::-1]


def _kept(
    stages: Sequence[_Needing], present: list[str], told: Reports | None
) -> tuple[tuple[Stage, ...], list[str]]:
    """The stages of rows that begin with the columns `present`, and the columns at the end. `told`: of their errors."""
    made = []
    for stage in stages:
        others = tuple(_kept(order, present, told)[0] for order in stage.otherwise)
        steps, present = _trimmed(stage.then, [*present, *(name for _, name in stage.half_join.fetch)])
        present = _keep(steps, present, stage.after)
        then = Linear(tuple(steps)) if told is None else _reporting(steps, told)
        made.append(Stage(stage.half_join, then, others))
    return tuple(made), present


def _fetching(half_join: HalfJoin, item: Input, fetch: tuple[tuple[str, str], ...]) -> HalfJoin:
    padded = half_join.kind is InputKind.PADDED
    default = tuple(item.default_row[name] for _, name in fetch) if padded else ()
    return replace(half_join, fetch=fetch, default=default)


def _reporting(steps: Sequence[Step], told: Reports) -> Linear:
    """An operator that reports its failures, if it can fail."""
    return Linear(tuple(steps), told if any(map(step_fallible, steps)) else None)


def _fetch(item: Input, live: Names) -> tuple[tuple[str, str], ...]:
    return tuple((item.bare(column.name), column.name) for column in item.columns if column.name in live)


def _needs(
    steps: Sequence[Step], live: Names, told: Reports | None = None
) -> tuple[list[tuple[Step, Names]], Names]:
    """Each step with the columns needed before it; `live` are those needed after the last step."""
    needed = []
    for step in reversed(steps):
        live = (live - frozenset(makes(step))).union(reads(step))
        if told is not None and step_fallible(step):
            live = live.union(told.columns)
        needed.append((step, live))
    return needed[::-1], live


def _trimmed(steps: Iterable[tuple[Step, Names]], present: list[str]) -> tuple[list[Step], list[str]]:
    """The steps with a Keep before each step that would copy unneeded columns, and the columns at the end."""
    trimmed: list[Step] = []
    for step, needed in steps:
        if not isinstance(step, Extend) or (trimmed and isinstance(trimmed[-1], Explode)):
            present = _keep(trimmed, present, needed)
        last = trimmed[-1] if trimmed else None
        if isinstance(step, Filter) and isinstance(last, Filter):
            trimmed[-1] = Filter(last.predicates + step.predicates)
        else:
            trimmed.append(step)
        made = makes(step)
        present = [*(name for name in present if name not in made), *made]
    return trimmed, present


def _keep(steps: list[Step], present: list[str], needed: Names) -> list[str]:
    """Append a Keep if a present column is not needed."""
    kept = [name for name in present if name in needed]
    if len(kept) < len(present):
        steps.append(Keep(tuple(kept)))
    return kept


def makes(step: Step) -> tuple[str, ...]:
    """The columns that a step adds."""
    match step:
        case Extend(items):
            return tuple(column.name for column, _ in items)
        case Explode():
            return tuple(column.name for column in Function(step).columns)
        case _:
            return ()


def reads(step: Step) -> Names:
    """The columns that a step reads."""
    match step:
        case Filter(predicates):
            exprs = list(predicates)
        case Extend(items):
            exprs = [expr for _, expr in items]
        case Explode(args=args):
            exprs = list(args)
        case Temporal(formula):
            exprs = list(expressions(formula))
        case Keep(columns):
            return frozenset(columns)
    return frozenset[str]().union(*map(columns_of, exprs))
