"""Leaves out rows of large inputs that a fill need not read, by the ends of their blocks (`engine.scalar.ends`).

What tells of an input's rows that they make nothing:

- its own conditions, `WHERE d BETWEEN a AND b`;
- a comparison with the row of another input: `WHERE d > (SELECT max(d) FROM t) - 7`;
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
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.ends import EndsOf, Sieve, all_of, among, any_of, ordered, rising, sieve_of
from halfjoin.engine.scalar.threshold import threshold_of
from halfjoin.engine.scalar.values import mask_of
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.consolidate import distinct
from halfjoin.engine.updates.updates import Mask, indices_of
from halfjoin.planner.linear import Filter, Keep, Linear, Step
from halfjoin.planner.plan import ArrangementKey, HalfJoin, InputKind, Stage, Version
from halfjoin.planner.wants import want_of
from halfjoin.sql.expr import FLIPPED, Call, Column, Expr, columns_of, rewrite
from halfjoin.sql.functions import fallible
from halfjoin.sql.functions.chance import draws

_SMALL = 8  # an input is small beside another that has so many times its rows
_FEW_VALUES = 16  # rows; with more of them nothing is compared
_FEW = 1 << 12  # rows, whose keys are worth a look without any condition
_MATCHING = frozenset((InputKind.PLAIN, InputKind.PRESENT))  # a row without a partner in these makes nothing


class Link(NamedTuple):
    """An equality of a column of this input with a column of another one, which has a number."""

    column: str
    other: int
    its: str


class Bound(NamedTuple):
    """A comparison of a rising expression over this input with an expression over another one."""

    left: Expr
    function: str
    other: int
    right: Expr


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
    bounds: list[Bound] = field(default_factory=list)


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
        found += [one for one in map(self._bounded, side.bounds) if one is not None]
        return all_of(found) if found else None

    def _bounded(self, bound: Bound) -> Sieve | None:
        """The sieve of a comparison with another input of one row, or of few."""
        parts, names = self.lookup(self.sides[bound.other].collection, Version.AFTER), columns_of(bound.right)
        if sum(map(len, parts)) > _FEW_VALUES:
            return None
        scalar, found = compile(bound.right), list[pa.Array]()
        for rows in present(parts, self.closed, names):
            made = scalar.evaluate(rows.columns, len(rows))
            if made.failures is not None:
                return None
            found.append(made.values)
        return ordered(bound.left, bound.function, pa.concat_arrays(found), bound.right.type) if found else None

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
    sources = {name: (0, column) for column, name in path.spec.fetch}
    certain, rest = _first(path.spec.source.steps)
    here = {name: column for name, (_, column) in sources.items()}
    own = [_renamed(one, here) for one in certain if columns_of(one) <= here.keys()]
    alone = [sieve_of(_renamed(one, here)) for one in rest if len(rest) == 1 and _is_rising(one)]
    sides = [_side(path.spec.collection, InputKind.PLAIN, None, own, alone, path.source)]
    whole = {path.spec.collection} if path.known is not None or path.spec.kind is not InputKind.PLAIN else set[str]()
    for number, (stage, compiled) in enumerate(zip(path.spec.stages, path.stages, strict=True), 1):
        if stage.otherwise:  # the rest may come in another order
            whole |= {one.half_join.arrangement.collection for one in path.spec.every_stage[number - 1 :]}
            break
        key = stage.half_join.arrangement
        sides.append(_side(key.collection, stage.half_join.kind, key, _asked(stage), (), compiled.then))
        for column, (other, its) in _links(stage.half_join, sources):
            sides[number].links.append(Link(column, other, its))
            sides[other].links.append(Link(its, number, column))
        sources |= {name: (number, column) for column, name in stage.half_join.fetch}
        _note_bounds(sides, number, stage.then, sources)
    else:
        _note_bounds(sides, len(sides), path.spec.final, sources)
    known = any(side.sieve or side.links or side.bounds for side in sides)
    return Sifting(tuple(sides), frozenset(whole)) if known else None


def _side(
    collection: str, kind: InputKind, key: ArrangementKey | None, conditions: Iterable[Expr],
    alone: Iterable[Sieve | None], then: LinearOperator,
) -> Side:  # fmt: skip
    """`conditions`: over the columns of the collection. All rows that make something meet them, and none fails.
    `alone`: the sieves of others."""
    own = tuple(one for one in conditions if not draws(one))
    sieves = [one for one in (*map(sieve_of, own), *alone) if one is not None]
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


def _note_bounds(sides: Sequence[Side], number: int, then: Linear, sources: Mapping[str, tuple[int, str]]) -> None:
    """Note the comparisons that an operator makes after the lookup of so many inputs."""
    for mine, bound in _bounds(then, sources):
        plain = all(sides[one].kind is InputKind.PLAIN for one in (mine, bound.other))
        if plain and all(side.silent for side in sides[mine:number]):
            sides[mine].bounds.append(bound)


def _bounds(then: Linear, sources: Mapping[str, tuple[int, str]]) -> Iterator[tuple[int, Bound]]:
    """The comparisons of two inputs that the first filter of an operator makes, and the input of each left side."""
    certain, rest = _first(then.steps)
    for predicate in (*certain, *(rest if len(rest) == 1 else ())):
        match predicate:
            case Call(function, (left, right)) if function in FLIPPED:
                for one, sign, other in ((left, function, right), (right, FLIPPED[function], left)):
                    column = rising(one)
                    owners = {sources[name][0] for name in columns_of(other) if name in sources}
                    if column is None or column.name not in sources or len(owners) != 1:
                        continue
                    here = {name: source for name, (_, source) in sources.items()}
                    mine, (its,) = sources[column.name][0], owners
                    if mine != its and columns_of(other) <= sources.keys() and not draws(other):
                        yield mine, Bound(_renamed(one, here), sign, its, _renamed(other, here))


def _first(steps: Sequence[Step]) -> tuple[list[Expr], list[Expr]]:
    """What the first filter asks: the predicates that cannot fail, and the others.

    A row that is dropped by one that cannot fail is no error, whatever the others say. Nor is a row for which the only
    other one is false or NULL.
    """
    for step in steps:
        if isinstance(step, Filter):
            certain = [one for one in step.predicates if threshold_of(one) is not None or not fallible(one)]
            return certain, [one for one in step.predicates if one not in certain]
        if not isinstance(step, Keep):
            break
    return [], []


def _is_rising(predicate: Expr) -> bool:
    """Whether a comparison fails for no row between two for which it does not."""
    return isinstance(predicate, Call) and predicate.function in FLIPPED and any(map(rising, predicate.args))


def _asked(stage: Stage) -> Iterator[Expr]:
    """What rows that are looked up meet, if they make something; none of it can fail."""
    through = stage.half_join.arrangement.through
    yield from () if through is None else _first(through.steps)[0]
    yield from want_of(stage).conditions if through is None else ()


def _renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """An expression over the columns of a collection, from one over those of a stream."""
    return rewrite(expr, lambda node: replace(node, name=names[node.name]) if isinstance(node, Column) else node)
