"""Finds how a query reads few rows to ask whether keys are there, where the arrangement that it asks does not exist.

`EXISTS (SELECT 1 FROM t WHERE t.id = o.id AND t.g = 0)` asks an arrangement by `id` of the rows with `g = 0`. If it
does not exist, a query would make it of the whole table. But an arrangement of all rows by `id` finds a few rows among
which all partners are; only these are arranged. So it is where conditions tell the keys: `LEFT JOIN t ON t.id = 5`.

The conditions are tested for each row that is found, so there may be too many of them, as in `planner.known`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from halfjoin.planner.estimates import Estimates
from halfjoin.planner.known import Arranged, fan_out, known_of
from halfjoin.planner.linear import Extend, Filter, Keep, Step
from halfjoin.planner.liveness import reads
from halfjoin.planner.plan import ArrangementKey, HalfJoin, InputKind, Known, KnownAny, Path, Stage
from halfjoin.sql.expr import Column, Expr, columns_of
from halfjoin.sql.functions.chance import draws


def narrowed(path: Path, own: Collection[str], estimates: Estimates, arranged: Arranged) -> Path:
    """A path whose half-joins say `within` which rows their partners are. `own`: the nodes of the query."""
    stages = list[Stage]()
    for stage in path.stages:
        found = _within(stage.half_join, own, estimates, arranged)
        stages.append(stage if found is None else replace(stage, half_join=replace(stage.half_join, within=found)))
    return path if stages == [*path.stages] else replace(path, stages=tuple(stages))


def _within(
    half_join: HalfJoin, own: Collection[str], estimates: Estimates, arranged: Arranged
) -> ArrangementKey | Known | KnownAny | None:
    """What finds the rows among which all partners are: an arrangement by some of the keys that are looked up, or known
    keys; None if there is none, or the half-join needs none."""
    key = half_join.arrangement
    if half_join.kind is InputKind.PLAIN or key.constant is not None or key.collection in own:
        return None
    steps = () if key.through is None else key.through.steps
    if estimates.facts.users(key) is not None or not all(map(_is_plain, steps)):
        return None
    made = _computed(steps)
    there = {expr for expr in key.keys if isinstance(expr, Column) and expr.name not in made}
    ways = [one for one in arranged(key.collection) if one.keys and one.through is None and there >= set(one.keys)]
    if ways:
        return min(ways, key=lambda way: (fan_out(way, estimates), str(way)))
    return known_of(key.collection, steps, {name: name for name in needed(key)}, estimates, arranged)


def needed(key: ArrangementKey) -> frozenset[str]:
    """The columns of the collection that an arrangement's keys and conditions read."""
    steps, made = () if key.through is None else key.through.steps, frozenset[str]()
    found = frozenset[str]()
    for step in steps:
        found |= reads(step) - made
        made |= _computed([step])
    return found | (frozenset[str]().union(*map(columns_of, key.keys)) - made)


def _computed(steps: Collection[Step]) -> frozenset[str]:
    """The names of the columns that steps compute, which may be those of columns of the collection."""
    return frozenset(column.name for step in steps if isinstance(step, Extend) for column, _ in step.items)


def _is_plain(step: Step) -> bool:
    """Whether a step gives one row for a row or none, each time it is asked."""
    return isinstance(step, (Filter, Extend, Keep)) and not any(map(draws, _expressions(step)))


def _expressions(step: Filter | Extend | Keep) -> Iterator[Expr]:
    if isinstance(step, Filter):
        yield from step.predicates
    elif isinstance(step, Extend):
        yield from (expr for _, expr in step.items)
