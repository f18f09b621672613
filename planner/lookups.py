"""The ways to look one input up from the rows of a path: which equalities become the key of which arrangement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from halfjoin.planner.agenda import Agenda, through
from halfjoin.planner.block import Input, inputs_of
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.linear import Explode, Filter, Linear, Step
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column, Expr, Literal, columns_of, substitute
from halfjoin.sql.functions import cast, common_type, fallible, render
from halfjoin.sql.types import Kind

_FEW = 32.0  # rows that a lookup may find without a longer key of its own
_MOST_SEARCHED = 6  # equalities of one lookup of which all subsets are tried


@dataclass(frozen=True, slots=True)
class Pair:
    """One equality as a part of a key: `key` over the collection's columns, `probe` over the stream's."""

    equality: int
    member: Expr  # the equality's member that the key is
    partner: Expr  # the one that the probe is
    key: Expr
    probe: Expr
    null_safe: bool


@dataclass(frozen=True, slots=True)
class Lookup:
    """A way to look one input up."""

    input: Input
    arrangement: ArrangementKey
    pairs: tuple[Pair, ...]
    unique: bool
    exists: bool
    fan_out: float


def lookup(agenda: Agenda, item: Input, sources: dict[str, str], estimates: Estimates,
           chosen: Collection[ArrangementKey]) -> Lookup:
    """The best way to look `item` up from what the agenda has bound.

    A unique key, if the equalities cover one; else the longest key of an arrangement that exists, or that this plan has
    `chosen` already, unless it finds many more rows than the key of all equalities; else that key.
    Equalities that are not in the key are filters after the lookup.
    """
    pairs = _pairs(agenda, item, estimates)

    def way(parts: Iterable[Pair], steps: Linear | None = None) -> Lookup:
        ordered = tuple(sorted(parts, key=lambda pair: render(pair.key)))
        key = ArrangementKey(item.collection, tuple(pair.key for pair in ordered), steps)
        return Lookup(
            item, key, ordered, estimates.is_unique(key), estimates.exists(key) or key in chosen,
            estimates.fan_out(key, [pair.probe for pair in ordered], sources),
        )  # fmt: skip

    plain = [pair for pair in pairs if columns_of(pair.member) <= {column.name for column in item.columns}]
    if not plain:
        return way(*_through(agenda, item, pairs)) if pairs else way(())
    by_name = {pair.key.name: pair for pair in plain if isinstance(pair.key, Column)}
    for unique in estimates.unique_keys(item.collection):
        if unique <= by_name.keys():
            return way(by_name[name] for name in unique)
    full = way(plain)
    if full.exists or len(plain) > _MOST_SEARCHED:
        return full
    for size in range(len(plain) - 1, 0, -1):
        found = [part for part in map(way, combinations(plain, size)) if part.exists]
        found = [part for part in found if part.fan_out <= max(_FEW, 4 * full.fan_out)]
        if found:
            return min(found, key=lambda part: (part.fan_out, _text(part.arrangement)))
    return full


def _text(key: ArrangementKey) -> str:
    return ", ".join(map(render, key.keys))


def _pairs(agenda: Agenda, item: Input, estimates: Estimates) -> list[Pair]:
    """The usable equalities between the input and the stream, one per key expression."""
    found: dict[Expr, Pair] = {}
    fixed: dict[Expr, Pair] = {}  # of classes with a constant, where the filters of both sides do the work
    alone = frozenset({item.alias})
    names = {column.name: Column(item.bare(column.name), column.type, column.nullable) for column in item.columns}
    for position, equality in enumerate(agenda.block.equalities):
        own = [m for m in equality.members if inputs_of(m, agenda.owners) == alone]
        partners = [m for m in equality.members if not isinstance(m, Literal) and _usable(m, agenda)]
        if not own or not partners:
            continue
        member = min(own, key=lambda m: (_is_made(m, item), not isinstance(m, Column), render(m)))
        partner = min(partners, key=lambda m: _preference(m, agenda, estimates))
        key, probe = _aligned(substitute(member, names), agenda.value(partner))
        pair = Pair(position, member, partner, key, probe, equality.null_safe)
        into = fixed if any(isinstance(m, Literal) for m in equality.members) else found
        into.setdefault(pair.key, pair)
    return list((found or fixed).values())


def _usable(member: Expr, agenda: Agenda) -> bool:
    inputs = inputs_of(member, agenda.owners)
    return inputs <= agenda.bound and agenda.available(member)


def _is_made(member: Expr, item: Input) -> bool:
    """Whether it reads a column that a table function makes."""
    return not columns_of(member) <= {column.name for column in item.columns}


def _preference(member: Expr, agenda: Agenda, estimates: Estimates) -> tuple[bool, bool, bool, str]:
    """Columns first, of those unique ones, since they say most about how many rows a lookup finds."""
    unique = False
    if isinstance(member, Column):
        for item in agenda.block.inputs:
            if member in item.columns:
                unique = frozenset({item.bare(member.name)}) in estimates.unique_keys(item.collection)
    safe = not fallible(member) or member in agenda.computed
    return not safe, not isinstance(member, Column), not unique, render(member)


def _aligned(key: Expr, probe: Expr) -> tuple[Expr, Expr]:
    """Key and probe in one type. Only numerics of different digits differ: equal values must have equal bytes.

    The key stays a plain column where it has the decimals of the probe. A probe that has more digits before the point
    than the key can hold fails to be cast, and so finds nothing, as it should.
    """
    if key.type == probe.type or key.type.kind is not Kind.NUMERIC or probe.type.kind is not Kind.NUMERIC:
        return key, probe
    if (probe.type.scale or 0) > (key.type.scale or 0):
        key = cast(key, common_type((key.type, probe.type)))
    return key, cast(probe, key.type)


def _through(agenda: Agenda, item: Input, pairs: Sequence[Pair]) -> tuple[list[Pair], Linear]:
    """A key on a table function's columns: the pair, and the operator that computes them from the bare columns.

    Names are canonical, so that views share the arrangement whatever they call the function.
    """
    pair = min(pairs, key=lambda p: render(p.key))
    steps = through(agenda.block, item, pair.member)
    names: dict[str, Expr] = {c.name: Column(item.bare(c.name), c.type, c.nullable) for c in item.columns}
    renamed: list[Step] = []
    for number, step in enumerate(steps, 1):
        match step:
            case Filter(predicates):
                renamed.append(Filter(tuple(substitute(predicate, names) for predicate in predicates)))
            case Explode():
                alias = f"{step.function}#{number}"
                args = tuple(substitute(arg, names) for arg in step.args)
                outputs = tuple(replace(c, name=f"{alias}.{i}") for i, c in enumerate(step.outputs, 1))
                names |= {old.name: new for old, new in zip(step.outputs, outputs, strict=True)}
                ordinality = None
                if step.ordinality is not None:
                    ordinality = replace(step.ordinality, name=f"{alias}.ordinality")
                    names[step.ordinality.name] = ordinality
                renamed.append(Explode(step.function, alias, args, outputs, ordinality))
    key, probe = _aligned(substitute(pair.member, names), pair.probe)
    return [replace(pair, key=key, probe=probe)], Linear(tuple(renamed))
