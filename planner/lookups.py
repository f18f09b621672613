"""Chooses how the rows of a path look one input up: which equalities become the key of which arrangement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from halfjoin.planner.agenda import Agenda, through
from halfjoin.planner.block import Block, Input, Known
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.linear import Explode, Filter, Linear, Step
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column, Expr, Literal, columns_of, substitute
from halfjoin.sql.functions import cast, common_type, render
from halfjoin.sql.types import Kind

_FEW = 32.0  # rows; a lookup that finds no more than these does not need a longer key of its own
_MOST_SEARCHED = 6  # equalities of one lookup, up to which all subsets are tried


@dataclass(frozen=True, slots=True)
class Pair:
    """One equality as a part of a key: `key` over the collection's columns, `probe` over the stream's."""

    equality: int
    member: Expr  # the equality's member that becomes the key
    partner: Expr  # the member that becomes the probe
    key: Expr
    probe: Expr
    null_safe: bool


@dataclass(frozen=True, slots=True)
class LookupWay:
    """A way to look one input up."""

    input: Input
    arrangement: ArrangementKey
    pairs: tuple[Pair, ...]
    unique: bool
    exists: bool
    fan_out: float


class Lookups:
    """The ways to look up the inputs of one block.

    Paths ask the same questions again and again, so each answer is remembered with what it depends on. Planning n
    inputs takes n * n steps. Each step compares only the inputs that some equality connects with what is bound.
    """

    def __init__(self, block: Block, estimates: Estimates, chosen: set[ArrangementKey]) -> None:
        self._estimates, self._chosen = estimates, chosen
        self.sources = {item.alias: item.collection for item in block.inputs}
        unique = {column.name for item in block.inputs for column in item.columns
                  if frozenset({item.bare(column.name)}) in estimates.unique_keys(item.collection)}  # fmt: skip
        self._partners = [sorted(_plain(members), key=lambda m: _preference(m, unique)) for members in block.classes]
        self._own = {item.alias: _own(block, item) for item in block.inputs}
        self._found: dict[tuple[object, ...], LookupWay] = {}

    def choose(self, arrangement: ArrangementKey) -> None:
        """Prefer an arrangement from now on, because this plan has it anyway."""
        if arrangement not in self._chosen:
            self._chosen.add(arrangement)
            self._found.clear()

    def ways(self, agenda: Agenda, waiting: Iterable[Input], *, whole: bool = False) -> list[LookupWay]:
        """The best way to look each input up from what the agenda has bound. Inputs that no equality connects are left
        out while there are others. `whole`: by all equalities, even if a shorter key finds few rows on average."""
        partners = [self._partner(members, agenda) for members in self._partners]
        ways, apart = [], []
        for item in waiting:
            pairs = [(position, member, partner) for position, member in self._own[item.alias]
                     if (partner := partners[position]) is not None]  # fmt: skip
            if pairs:
                ways.append(self._remembered(agenda, item, pairs, whole))
            else:
                apart.append(item)
        return ways or [self._remembered(agenda, item, [], whole) for item in apart]

    @staticmethod
    def _partner(members: Sequence[Known], agenda: Agenda) -> Known | None:
        """The member of a class to probe with: the first that is bound, preferably one that cannot fail any more."""
        first = None
        for member in members:
            if agenda.usable(member):
                if not member.fallible or member.expr in agenda.computed:
                    return member
                first = first or member
        return first

    def _remembered(
        self, agenda: Agenda, item: Input, pairs: Sequence[tuple[int, Known, Known]], whole: bool
    ) -> LookupWay:
        # A computed member has its column's name, which another path may give to another member.
        probes = ((position, id(partner), agenda.computed.get(partner.expr)) for position, _, partner in pairs)
        asked = (item.alias, whole, *probes)
        if asked not in self._found:
            self._found[asked] = self._lookup(agenda, item, _pairs(agenda, item, pairs), whole)
        return self._found[asked]

    def _lookup(self, agenda: Agenda, item: Input, pairs: Sequence[Pair], whole: bool) -> LookupWay:
        """The best way to look `item` up by these equalities.

        If the equalities cover a unique key, that is the key. Otherwise it is the key of all equalities. If that one
        has no arrangement yet, a shorter key is used whose arrangement exists or is already chosen by this plan: the
        longest one that is measured to find not many more rows. A guess is not enough: a key of few values finds ever
        more rows as the collection grows. Equalities outside the key become filters after the lookup.
        """
        estimates = self._estimates

        def keyed(parts: Iterable[Pair], steps: Linear | None = None) -> tuple[ArrangementKey, tuple[Pair, ...]]:
            ordered = tuple(sorted(parts, key=lambda pair: render(pair.key)))
            return ArrangementKey(item.collection, tuple(pair.key for pair in ordered), steps, item.constant), ordered

        def exists(key: ArrangementKey) -> bool:
            return estimates.exists(key) or key in self._chosen

        def way(parts: Iterable[Pair], steps: Linear | None = None) -> LookupWay:
            key, ordered = keyed(parts, steps)
            return LookupWay(
                item, key, ordered, estimates.is_unique(key), exists(key),
                estimates.fan_out(key, [pair.probe for pair in ordered], self.sources),
            )  # fmt: skip

        plain = [pair for pair in pairs if columns_of(pair.member) <= {column.name for column in item.columns}]
        if not plain:
            return way(*_through(agenda, item, pairs)) if pairs else way(())
        by_name = {pair.key.name: pair for pair in plain if isinstance(pair.key, Column)}
        for unique in estimates.unique_keys(item.collection):
            if unique <= by_name.keys():
                return way(by_name[name] for name in unique)
        full = way(plain)
        if whole or full.exists or len(plain) > _MOST_SEARCHED:
            return full
        for size in range(len(plain) - 1, 0, -1):
            there = [parts for parts in combinations(plain, size) if exists(keyed(parts)[0])]
            found = [part for part in map(way, there) if estimates.is_measured(part.arrangement)]
            found = [part for part in found if part.fan_out <= max(_FEW, 4 * full.fan_out)]
            if found:
                return min(found, key=lambda part: (part.fan_out, _text(part.arrangement)))
        return full


def _text(key: ArrangementKey) -> str:
    return ", ".join(map(render, key.keys))


def _own(block: Block, item: Input) -> list[tuple[int, Known]]:
    """For each equality with a member that reads the input alone: its position, and the best such member as a key."""
    alone = frozenset({item.alias})
    bare = {column.name for column in item.columns}

    def rank(member: Known) -> tuple[bool, bool, str]:  # members that read a table function's columns come last
        return not member.columns <= bare, not isinstance(member.expr, Column), render(member.expr)

    own = ((position, [member for member in members if member.inputs == alone])
           for position, members in enumerate(block.classes))  # fmt: skip
    return [(position, min(members, key=rank)) for position, members in own if members]


def _plain(members: Iterable[Known]) -> list[Known]:
    """The members that are not constants. Constants are not probes."""
    return [member for member in members if not isinstance(member.expr, Literal)]


def _preference(member: Known, unique: Collection[str]) -> tuple[bool, bool, str]:
    """Columns first, unique ones before others: they say most about how many rows a lookup finds."""
    expr = member.expr
    return not isinstance(expr, Column), not (isinstance(expr, Column) and expr.name in unique), render(expr)


def _pairs(agenda: Agenda, item: Input, given: Iterable[tuple[int, Known, Known]]) -> list[Pair]:
    """The usable equalities between the input and the stream, one per key expression."""
    found: dict[Expr, Pair] = {}
    fixed: dict[Expr, Pair] = {}  # of classes with a constant: the filters of both sides do the work
    names = {column.name: Column(item.bare(column.name), column.type, column.nullable) for column in item.columns}
    for position, member, partner in given:
        equality = agenda.block.equalities[position]
        key, probe = aligned(substitute(member.expr, names), agenda.value(partner.expr))
        pair = Pair(position, member.expr, partner.expr, key, probe, equality.null_safe)
        into = fixed if any(isinstance(m, Literal) for m in equality.members) else found
        into.setdefault(pair.key, pair)
    return list((found or fixed).values())


def aligned(key: Expr, probe: Expr) -> tuple[Expr, Expr]:
    """Key and probe in one type. Only numerics of different digits differ, and equal values must have equal bytes.

    The key stays a plain column if it has all the decimals of the probe. If a probe has more digits before the point
    than the key can hold, its cast fails, so it finds nothing, as it should.
    """
    if key.type == probe.type or key.type.kind is not Kind.NUMERIC or probe.type.kind is not Kind.NUMERIC:
        return key, probe
    if (probe.type.scale or 0) > (key.type.scale or 0):
        key = cast(key, common_type((key.type, probe.type)))
    return key, cast(probe, key.type)


def _through(agenda: Agenda, item: Input, pairs: Sequence[Pair]) -> tuple[list[Pair], Linear]:
    """A key on a table function's columns: the pair, and the operator that computes those columns from the bare ones.

    Names are canonical, so views share the arrangement whatever they call the function.
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
                renamed.append(replace(step, alias=alias, args=args, outputs=outputs, ordinality=ordinality))
    key, probe = aligned(substitute(pair.member, names), pair.probe)
    return [replace(pair, key=key, probe=probe)], Linear(tuple(renamed))
