"""Leaves out rows of large inputs that a fill need not read, by the ends of their blocks (`engine.scalar.ends`).

What tells of an input's rows that they make nothing:

- its own conditions, `WHERE d BETWEEN a AND b`;
- the keys of a small input that it is joined with: in `inventory JOIN date_dim ON inv_date_sk = d_date_sk WHERE
  d_year = 2000` the days of the year are few, and so are the blocks of `inventory` that have one of them.

Rows that are left out would have been dropped, and nothing would have been told of them: the keys of an input do not
count where an operator may report an error before that input is looked up. All rows that are left are tested as ever,
so it does not matter whether rows that cancel are left together.

Only an input that would be read as a whole is sifted. Where an index is there, it finds the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.arrange import blocks
from halfjoin.engine.arrange.part import Part, present
from halfjoin.engine.join.closing import RunsOf
from halfjoin.engine.join.path import CompiledPath
from halfjoin.engine.linear.operators import LinearOperator, compile_linear
from halfjoin.engine.linear.tables import NO_FUNCTIONS
from halfjoin.engine.scalar.ends import EndsOf, Sieve, all_of, among, any_of, sieve_of
from halfjoin.engine.scalar.threshold import threshold_of
from halfjoin.engine.scalar.values import mask_of
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.consolidate import distinct
from halfjoin.engine.updates.updates import Mask, indices_of
from halfjoin.planner.linear import Filter, Keep, Linear, Step
from halfjoin.planner.plan import ArrangementKey, HalfJoin, InputKind, Stage, Version
from halfjoin.planner.wants import want_of
from halfjoin.sql.expr import Column, Expr, columns_of, rewrite
from halfjoin.sql.functions import fallible
from halfjoin.sql.functions.chance import draws

_SMALL = 8  # an input is small beside another that has so many times its rows
_FEW = 1 << 12  # rows, whose keys are worth a look without any condition
_MATCHING = frozenset((InputKind.PLAIN, InputKind.PRESENT))  # a row without a partner in these makes nothing


class Link(NamedTuple):
    """An equality of a column of this input with a column of another one, which has a number."""

    column: str
    other: int
    its: str


@dataclass(frozen=True, slots=True)
class Side:
    """An input of a path. `key`: the arrangement that is looked up; None: the path begins with its rows.

    `meets` drops rows that do not meet the conditions of this input, which read the columns `reads`. `silent`: no
    operator reports errors of what is there with this input, before the next one is looked up.
    """

    collection: str
    kind: InputKind
    key: ArrangementKey | None
    meets: LinearOperator
    reads: frozenset[str]
    sieve: Sieve | None
    silent: bool
    links: list[Link] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sifting:
    """How the inputs of a path that fills are sifted. `whole`: collections that are needed as they are."""

    sides: Sequence[Side]
    whole: frozenset[str]

    def __call__(self, lookup: RunsOf, closed: int) -> RunsOf:
        """The same runs, without rows that need not be read. Updates below `closed` may be added up."""

        @cache
        def sifted(name: str, version: Version) -> Sequence[Part]:
            parts = lookup(name, version)
            large = [part for part in parts if len(part) >= blocks.FEW]
            sides = [number for number, side in enumerate(self.sides) if side.collection == name]
            if not large or name in self.whole or not all(_is_scanned(self.sides[one].key, large) for one in sides):
                return parts
            most = sum(map(len, parts)) // _SMALL
            sieves = [_Keys(self.sides, one, lookup, closed, most).sieve() for one in sides]
            known = [one for one in sieves if one is not None]
            if len(known) < len(sieves):
                return parts
            return [one for part in parts for one in part.sifted(any_of(known))]

        return sifted


def _is_scanned(key: ArrangementKey | None, large: Sequence[Part]) -> bool:
    """Whether all rows of large parts are read: a path begins with them, or an index is made of them."""
    return key is None or all(part.lacks(key) for part in large)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys that small inputs, of at most so many rows, have for the input of a number."""

    sides: Sequence[Side]
    number: int
    lookup: RunsOf
    closed: int
    most: int

    def sieve(self) -> Sieve | None:
        """What is known of the rows of the input that make something; None: nothing."""
        side = self.sides[self.number]
        found = [] if side.sieve is None else [side.sieve]
        found += [self._lazily(link) for link in side.links if self._counts(link.other)]
        return all_of(found) if found else None

    def _counts(self, other: int) -> bool:
        """Whether rows make nothing without a row of another input, and nothing is told of them."""
        if self.sides[other].kind not in _MATCHING:
            return False
        between = self.sides[self.number : other]
        return not between or (between[0].kind is InputKind.PLAIN and all(side.silent for side in between))

    def _lazily(self, link: Link) -> Sieve:
        """The sieve of a link. Keys are read once it is known that they may leave something out."""

        @cache
        def made() -> Sieve | None:
            keys = self._of(link, (self.number,))
            return None if keys is None else among(link.column, keys)

        def run(ends_of: EndsOf) -> Mask | None:
            sieve = None if ends_of(link.column) is None else made()
            return None if sieve is None else sieve(ends_of)

        return run

    def _of(self, link: Link, seen: tuple[int, ...]) -> pa.Array | None:
        """The values at the other end of a link, or more; None: there are too many, or nothing restricts them."""
        side, seen = self.sides[link.other], (*seen, link.other)
        parts = self.lookup(side.collection, Version.AFTER)
        if sum(map(len, parts)) > self.most:
            return None
        links = [one for one in side.links if one.other not in seen and self._counts(one.other)]
        each = [(one.column, self._of(one, seen)) for one in links]
        within = [(name, keys) for name, keys in each if keys is not None]
        if not within and side.sieve is None and not side.meets.steps and sum(map(len, parts)) > _FEW:
            return None
        names, found = {link.its, *side.reads, *(name for name, _ in within)}, list[pa.Array]()
        for rows in present(parts, self.closed, names, apart=True):
            left = side.meets(rows.select(names), [])
            for name, keys in within if len(left) else ():
                left = left.filter(_among(left.columns[name], keys))
            if len(left):
                column = left.columns[link.its]
                found.append(column.take(indices_of(distinct([column], len(column)))))
        return pa.concat_arrays(found) if found else pa.nulls(0)


def _among(column: pa.Array, keys: pa.Array) -> Mask:
    """Which values are among the keys, or may be."""
    if is_exact([keys]) and is_exact([column]):
        return np.isin(codes([column], len(column)), codes([keys], len(keys)))
    if column.type == keys.type and not pa.types.is_floating(keys.type):
        return mask_of(pc.is_in(column, keys.drop_null()))
    return np.full(len(column), len(keys) > 0)


def sifting_of(path: CompiledPath) -> Sifting | None:
    """How the inputs of a path are sifted when it fills; None: nothing is known of any."""
    first = {name: column for column, name in path.spec.fetch}
    sides = [_side(path.spec.collection, InputKind.PLAIN, None, _first(path.spec.source.steps, first), path.source)]
    sources, whole = {name: (0, column) for name, column in first.items()}, set[str]()
    whole |= {path.spec.collection} if path.known is not None or path.spec.kind is not InputKind.PLAIN else set()
    for number, (stage, compiled) in enumerate(zip(path.spec.stages, path.stages, strict=True), 1):
        if stage.otherwise:  # the rest may come in another order
            whole |= {one.half_join.arrangement.collection for one in path.spec.every_stage[number - 1 :]}
            break
        key = stage.half_join.arrangement
        sides.append(_side(key.collection, stage.half_join.kind, key, _asked(stage), compiled.then))
        for column, (other, its) in _links(stage.half_join, sources):
            sides[number].links.append(Link(column, other, its))
            sides[other].links.append(Link(its, number, column))
        sources |= {name: (number, column) for column, name in stage.half_join.fetch}
    return Sifting(tuple(sides), frozenset(whole)) if any(side.sieve or side.links for side in sides) else None


def _side(
    collection: str, kind: InputKind, key: ArrangementKey | None, conditions: Iterable[Expr], then: LinearOperator
) -> Side:
    """`conditions`: over the columns of the collection; all rows that make something meet them, and none fails."""
    own = tuple(one for one in conditions if not draws(one))
    sieves = [one for one in map(sieve_of, own) if one is not None]
    return Side(collection, kind, key, compile_linear(Linear((Filter(own),) if own else ()), NO_FUNCTIONS),
                frozenset[str]().union(*map(columns_of, own)), all_of(sieves) if sieves else None,
                then.reports is None)  # fmt: skip


def _links(half_join: HalfJoin, sources: Mapping[str, tuple[int, str]]) -> Iterator[tuple[str, tuple[int, str]]]:
    """The columns that are looked up by columns of inputs that come before, whose values are the same."""
    key = half_join.arrangement
    if key.through is not None and not all(isinstance(step, Filter | Keep) for step in key.through.steps):
        return
    for own, probe, null_safe in zip(key.keys, half_join.probe, half_join.null_safe, strict=True):
        if isinstance(own, Column) and isinstance(probe, Column) and not null_safe and probe.name in sources:
            yield own.name, sources[probe.name]


def _first(steps: Sequence[Step], bare: Mapping[str, str]) -> Iterator[Expr]:
    """What the first filters ask of rows with columns of these names, over the columns of the collection. A row that is
    dropped by a condition that cannot fail is no error, whatever the others of the same filter say."""
    for step in steps:
        if isinstance(step, Keep):
            continue
        if not isinstance(step, Filter):
            return
        certain = [one for one in step.predicates if threshold_of(one) is not None or not fallible(one)]
        for predicate in certain:
            if columns_of(predicate) <= bare.keys():
                yield rewrite(predicate, lambda node: replace(node, name=bare[node.name])
                              if isinstance(node, Column) else node)  # fmt: skip
        if len(certain) < len(step.predicates):
            return


def _asked(stage: Stage) -> Iterator[Expr]:
    """What rows that are looked up meet, if they make something."""
    through = stage.half_join.arrangement.through
    steps = () if through is None else through.steps
    if all(isinstance(step, Filter | Keep) for step in steps):
        names = {name: name for step in steps for one in _expressions(step) for name in columns_of(one)}
        yield from _first(steps, names)
        yield from want_of(stage).conditions


def _expressions(step: Step) -> Sequence[Expr]:
    return step.predicates if isinstance(step, Filter) else ()
