"""Finds the inputs of a query of which few keys are known: `WHERE k = 5`, `k IN (1, 2)`, `k = ANY ($1)`, or
`j = 1 OR k = 2`.

The keys may be those of another table's few rows, too: `WHERE k IN (SELECT k FROM small)`, `EXISTS (...)`. These rows
are read first, and the path still asks whether a key is present.

A constant is one more changed row: it is looked up in an arrangement that exists, and what it finds goes down the
delta path of its input. So such a query does the work of a small batch, however many rows there are. Where no
arrangement fits, the input is scanned.

The operator of the path still tests every row that is found. So a key may find too many rows (it is rounded, or its
code is that of another one), and the answer is that of a scan. It must never find too few. Hence:

- only predicates and present inputs count that every row must meet before any expression can fail for it, since a
  scan reports the rows that fail;
- a cast around the key is looked through only if it keeps different values different.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TypeVar

from halfjoin.planner.cost import path_cost
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.fallibility import step_fallible
from halfjoin.planner.linear import Filter, Step
from halfjoin.planner.plan import (
    ArrangementKey,
    HalfJoin,
    InputKind,
    Known,
    KnownAny,
    KnownIn,
    KnownKeys,
    Path,
    Reduce,
    ViewPlan,
)
from halfjoin.planner.predicates import certain, fewest, renamed, told, without_casts
from halfjoin.planner.rules.sides import Side
from halfjoin.sql.expr import Call, Expr, Literal, columns_of
from halfjoin.sql.functions.chance import draws
from halfjoin.sql.relation import Scan

MOST_KEYS = 10_000  # combinations of the values of several columns
_SMALL = 1000.0  # rows; among so few a lookup is as good as a scan
SCANNED = 8.0  # rows that a scan reads in the time in which an index gets one
_LOOKED_UP, _FOUND = 0.75, 2.5  # entries that an index gets in the time of a lookup of many, and of a row that it finds
_ASKS = (InputKind.PRESENT, InputKind.ABSENT)  # they tell whether a key is there, however many rows have it
Arranged = Callable[[str], Iterable[ArrangementKey]]  # the arrangements of a collection
_Way = TypeVar("_Way", Known, Known | KnownAny)


def reads_by_key(plan: ViewPlan) -> bool:
    """Whether the query scans nothing: it begins with known keys and constants, and looks the rest up."""
    return not any(True for _ in scans(plan))


def lookups(plan: ViewPlan) -> Iterator[KnownKeys]:
    """Where a query begins with lookups."""
    for join in plan.joins:
        for branch in join.branches:
            for number, path in enumerate(branch.paths):
                if path.known is not None and (number == branch.fill or _reports(path)):
                    yield path.known


def scans(plan: ViewPlan) -> Iterator[str]:
    """The collections that a query reads whole: where it begins with one, where rows of one may be errors by
    themselves, and where one is looked up without a key."""
    own = {node.output for node in plan.below}
    for node in plan.nodes:
        if isinstance(node, Reduce):
            yield from [node.input] if node.input not in own else []
            continue
        for branch in node.branches:
            for number, path in enumerate(branch.paths):
                if (number == branch.fill or _reports(path)) and path.collection not in own and not path.constant:
                    yield from _scanned(path, own)
            for stage in branch.paths[branch.fill].stages:
                key = stage.half_join.arrangement
                if not key.keys and key.constant is None and key.collection not in own and not stage.half_join.within:
                    yield key.collection


def _scanned(path: Path, own: Collection[str]) -> Iterator[str]:
    """What is read whole to find the rows with which a path begins."""
    if path.known is None:
        yield path.collection
    elif isinstance(path.known, KnownIn):
        source = path.known.source
        yield from [source.collection] if source.constant is None and source.collection not in own else []


def _reports(path: Path) -> bool:
    """Whether rows of the path's input may be errors by themselves, so that all of them are tested."""
    return path.source.reports is not None and any(map(step_fallible, path.source.steps))


def beginning(collection: str, known: KnownKeys | None, estimates: Estimates) -> tuple[float, float]:
    """The rows with which a path begins to fill, and the work to find them, in rows scanned."""
    if known is None:
        return estimates.rows(collection), estimates.rows(collection)
    if isinstance(known, KnownIn):
        keys = estimates.rows(known.source.collection)
        rows = min(keys * fan_out(known.arrangement, estimates), estimates.rows(collection))
        return rows, keys + SCANNED * max(keys, rows)
    rows = _found(known, estimates)
    return rows, SCANNED * rows


def filling_cost(path: Path, own: Collection[str], estimates: Estimates) -> float:
    """The work to fill by a path, in rows scanned: those with which it begins, its lookups and what these find, and the
    indexes that are missing."""
    rows, begin = beginning(path.collection, path.known, estimates)
    missing = [stage.half_join.arrangement for stage in path.stages if stage.half_join.within is None]
    missing = [key for key in missing if key.constant is None and key.collection not in own
               and not (key.keys and estimates.facts.users(key) is not None)]  # fmt: skip
    cost = path_cost(path, estimates)
    found = sum(min(one.found, one.lookups) if stage.half_join.kind in _ASKS else one.found
                for one, stage in zip(cost.stages, path.stages, strict=True))  # fmt: skip
    return begin + SCANNED * (rows * (_LOOKED_UP * (cost.lookups - 1) + _FOUND * found)
                              + sum(estimates.rows(key.collection) for key in missing))  # fmt: skip


def known_of_path(path: Path, estimates: Estimates, arranged: Arranged) -> KnownKeys | None:
    """As `known_of`, of the input of a path; or the keys of a present input, if these find fewer rows."""
    bare = {name: column for column, name in path.fetch}
    known = known_of(path.collection, path.source.steps, bare, estimates, arranged)
    if path.kind is not InputKind.PLAIN or any(map(step_fallible, path.source.steps)):
        return known

    def work(one: KnownKeys | None) -> float:
        return beginning(path.collection, one, estimates)[1]

    def may_be_few(way: KnownIn) -> bool:
        """Whether conditions may leave so few keys that to read them costs less than to ask for the key of each row."""
        source = way.source
        return known is None and source.through is not None and estimates.rows(source.collection) < work(known)

    present = [stage.half_join for stage in path.stages if stage.half_join.kind is InputKind.PRESENT]
    ways = [way for half_join in present for way in _known_in(path, half_join, arranged)]
    good = [way for way in ways if estimates.rows(path.collection) > _SMALL
            and (work(way) < work(known) or may_be_few(way))]  # fmt: skip
    return min(good, key=lambda way: (work(way), str(way.arrangement)), default=known)


def found_by_keys(side: Side, estimates: Estimates, arranged: Arranged) -> bool:
    """Whether the conditions of a looked-up side tell the keys of few of the rows of a large collection."""
    source = side.source
    return isinstance(source, Scan) and estimates.facts.rows(source.collection) > _SMALL and are_few(
        side, estimates, arranged)  # fmt: skip


def are_few(side: Side, estimates: Estimates, arranged: Arranged) -> bool:
    """Whether the conditions of a side tell the keys of few rows of a collection."""
    source = side.source
    if not isinstance(source, Scan) or not side.conditions:
        return False
    if estimates.rows(source.collection) <= _SMALL:
        return any(map(told, side.conditions))
    bare = {column.name: column.name[len(source.alias) + 1 :] for column in source.columns}
    return known_of(source.collection, (Filter(side.conditions),), bare, estimates, arranged) is not None


def _known_in(path: Path, half_join: HalfJoin, arranged: Arranged) -> Iterator[KnownIn]:
    """The arrangements that find the rows of a path's input whose keys a present input has."""
    bare = {name: column for column, name in path.fetch}
    source, found, nulls = half_join.arrangement, dict[Expr, Expr](), set[Expr]()
    conditions = [one for step in (source.through.steps if source.through is not None else ())
                  if isinstance(step, Filter) for one in step.predicates]  # fmt: skip
    if any(map(draws, (*source.keys, *conditions))):  # what is drawn for a row is not drawn twice
        return
    for probe, theirs, null_safe in zip(half_join.probe, source.keys, half_join.null_safe, strict=True):
        if columns_of(probe) <= bare.keys():
            same = without_casts(renamed(probe, bare))
            found |= dict.fromkeys(same, theirs)
            nulls.update(same if null_safe else ())
    there = [key for key in (arranged(path.collection) if found else ()) if key.keys and key.through is None]
    for key in there:
        if found.keys() >= set(key.keys):
            keys = tuple(found[expr] for expr in key.keys)
            yield KnownIn(key, replace(source, keys=keys), not nulls.isdisjoint(key.keys))


def known_of(
    collection: str, steps: Sequence[Step], bare: Mapping[str, str], estimates: Estimates, arranged: Arranged
) -> Known | KnownAny | None:
    """The arrangements that find the fewest rows; None if there are none, or a scan is as good. The input's rows pass
    `steps`; `bare`: its columns by their names there."""
    predicates = list(certain(steps, bare))
    if not predicates:
        return None
    there = [key for key in arranged(collection) if key.keys and key.through is None]
    values = fewest(*map(told, predicates))
    ways: list[Known | KnownAny] = [*_ways(values, there)]
    for predicate in predicates:
        if isinstance(predicate, Call) and predicate.function == "or":
            each = [_fewest(_ways(fewest(values, told(part)), there), estimates) for part in predicate.args]
            found = [way for way in each if way is not None]
            ways += [KnownAny(tuple(found))] if len(found) == len(each) and _few_keys(found) else []
    rows, best = estimates.rows(collection), _fewest(ways, estimates)
    return best if best is not None and (rows <= _SMALL or _found(best, estimates) * SCANNED <= rows) else None


def _ways(values: Mapping[Expr, Sequence[Literal]], there: Iterable[ArrangementKey]) -> Iterator[Known]:
    """The arrangements that find all rows in which expressions have these values."""
    for key in there:
        if values.keys() >= set(key.keys):
            way = Known(key, tuple(tuple(values[expr]) for expr in key.keys))
            if _few_keys([way]):
                yield way


def _few_keys(ways: Iterable[Known]) -> bool:
    """Whether the values of several columns have few combinations. The text has those of one column."""
    return sum(prod(map(len, way.values)) for way in ways if len(way.values) > 1) <= MOST_KEYS


def _fewest(ways: Iterable[_Way], estimates: Estimates) -> _Way | None:
    """The one of them that finds the fewest rows; of several by the most keys."""

    def order(way: Known | KnownAny) -> tuple[float, int, list[str]]:
        each = [way] if isinstance(way, Known) else way.ways
        return _found(way, estimates), -len(each[0].values), [str(one.arrangement) for one in each]

    return min(ways, key=order, default=None)


def _found(way: Known | KnownAny, estimates: Estimates) -> float:
    """About how many rows are found."""
    if isinstance(way, KnownAny):
        return sum(_found(one, estimates) for one in way.ways)
    return prod(map(len, way.values)) * fan_out(way.arrangement, estimates)


def fan_out(key: ArrangementKey, estimates: Estimates) -> float:
    """About how many rows of an arrangement have one key."""
    return estimates.fan_out(key, [Literal(None, expr.type) for expr in key.keys], {})
