"""Gives the relations inside loops their rounds, as more columns.

Loop law. Inside a loop a time is `(batch time, round)`, with one more round for each loop around it. The time of what
several rows make is the maximum of theirs, coordinate by coordinate. Batch times are the engine's. Rounds are columns
of the collections: a join takes the greatest of its inputs', a linear operator passes them on, and what enters a loop
has its round 0.

A binding's rows of the round before are its rows with the next round. The rows of the last round that is allowed are
not fed back.

A loop inside another one starts from nothing in each of its rounds. What reads none of its bindings has no round of its
own, so it is computed before it, in the loop around it if that is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.plan import round_names
from halfjoin.planner.rules.sides import Side, alternatives, asked
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.expr import TRUE, Call, Column, Expr, Literal, conjunction
from halfjoin.sql.functions import resolve
from halfjoin.sql.relation import (
    Aggregate,
    Fed,
    Filter,
    Join,
    Loop,
    Once,
    Outer,
    Project,
    Reduced,
    Relation,
    Scan,
    Semi,
    TableFunction,
    TopK,
    UnionAll,
    UserReduce,
    Values,
    Window,
    fed_by,
)
from halfjoin.sql.types import BIGINT, BOOLEAN

START = Literal(0, BIGINT)


@dataclass(frozen=True, slots=True)
class Rounded:
    """A reduce inside loops: it acts in each round. `input` is that of the relation, and more columns: the rounds of
    its rows. `rounds` are the columns of the results' rounds."""

    relation: Reduced
    input: Project
    rounds: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the reduce, and the rounds."""
        return (*self.relation.columns, *self.rounds)


@dataclass(frozen=True, slots=True)
class Nested(Loop):
    """A loop inside the loop of `around`. Its last columns are the rounds of that loop and of those around it."""

    around: Rounds


Of = Mapping[str, Expr]  # the rounds of rows, by the loops whose bindings they come from; in other loops they are 0


@dataclass
class Rounds:
    """Carries the rounds through the relations of one loop. `collections`: of its bindings. `around`: the loop around
    it, if it is inside one that it reads."""

    loop: Loop
    collections: Sequence[str]
    around: Rounds | None
    aliases: Aliases = field(default_factory=Aliases)

    @property
    def path(self) -> tuple[str, ...]:
        """The loops whose rounds its collections have, the outermost first."""
        return (*(self.around.path if self.around is not None else ()), self.loop.name)

    @property
    def nodes(self) -> tuple[str, ...]:
        """What the plan calls these loops: the collection of the first binding."""
        return (*(self.around.nodes if self.around is not None else ()), self.collections[0])

    def carried(self, relation: Relation) -> tuple[Relation, Of]:
        """The relation, and the rounds of its rows as expressions over it; none: it does not read the bindings."""
        match relation:
            case Scan() | Values():
                return relation, {}
            case Fed(loop):
                return next(one for one in self._inwards() if one.loop.name == loop).fed(relation)
            case Loop():
                around = next((one for one in self._inwards() if fed_by(relation, one.loop.name)), None)
                if around is None:
                    return relation, {}
                outer = self._columns(around.path)
                same = {item.name: getattr(relation, item.name) for item in fields(Loop)}
                return Nested(**{**same, "columns": (*relation.columns, *outer.values())}, around=around), outer
            case Filter(input, predicate):
                below, rounds = self.carried(input)
                return Filter(below, predicate), rounds
            case Project(input, items):
                below, rounds = self.carried(input)
                columns = self._columns(rounds)
                return Project(below, (*items, *((columns[loop], rounds[loop]) for loop in columns))), columns
            case Once(input):
                below, rounds = self.carried(input)
                own = self.loop.name
                arms: list[tuple[Relation, Of]] = [(below, {**rounds, own: START})]
                if self.loop.limit > 1:
                    alias = self.aliases.fresh("repeat_row")
                    gone = TableFunction(below, "repeat_row", alias, (Literal(-1, BIGINT),), ())
                    arms.append((gone, {**rounds, own: Literal(1, BIGINT)}))
                return self._sum(input.columns, arms)
            case TableFunction(input):
                below, rounds = self.carried(input)
                return replace(relation, input=below), rounds
            case Join(inputs):
                parts = [self.carried(item) for item in inputs]
                return Join(tuple(part for part, _ in parts)), _greatest([rounds for _, rounds in parts])
            case UnionAll(inputs, columns):
                return self._sum(columns, [self.carried(item) for item in inputs], [item.columns for item in inputs])
            case Aggregate() | Window() | TopK() | UserReduce():
                below, rounds = self.carried(relation.input)
                if not rounds:
                    return replace(relation, input=below), rounds
                plain = Project(below, tuple((column, column) for column in relation.input.columns))
                return self._reduced(replace(relation, input=plain), plain.columns, below, rounds)
            case Semi(input, other, on, anti):
                left, first = self.carried(input)
                right, second = self.carried(other)
                if not second:
                    return Semi(left, right, on, anti), first
                choices = (alternatives(on) if anti else [on]) or [on]
                for choice in choices:
                    pairs, rounds = self._matched(left, first, right, second, other.columns, choice)
                    if not anti:
                        return pairs, rounds
                    left, first = self._without(input.columns, left, first, pairs, rounds)
                return left, first
            case Outer(left, right, on, full=False):
                below, first = self.carried(left)
                side, second = self.carried(right)
                if not second:
                    return Outer(below, side, on), first
                joined = Filter(Join((below, side)), on)
                pairs, rounds = self._matched(below, first, side, second, right.columns, on)
                lonely, last = self._without(left.columns, below, first, pairs, rounds)
                items = (*((c, c) for c in left.columns),
                         *((c, Literal(None, c.type)) for c in relation.columns[len(left.columns):]))  # fmt: skip
                nulls = Project(lonely, (*items, *((column, column) for column in last.values())))
                return self._sum(relation.columns, [(joined, _greatest([first, second])), (nulls, last)])
        raise UnsupportedSQL(f"{type(relation).__name__} of a recursive query is not maintained",
                             remedy="compute it in a view over the recursive one")

    def fed(self, relation: Fed) -> tuple[Relation, Of]:
        """The rows of one of its bindings."""
        names = round_names(len(self.path))
        rounds = {loop: Column(f"{relation.alias}.{name}", BIGINT, nullable=False)
                  for loop, name in zip(self.path, names, strict=True)}  # fmt: skip
        scan = Scan(self.collections[relation.number], relation.alias, (*relation.columns, *rounds.values()))
        if not relation.before:
            return scan, rounds
        later = Call("next round", (rounds[self.loop.name],), BIGINT)
        allowed = Call("<", (later, Literal(self.loop.limit, BIGINT)), BOOLEAN)
        return Filter(scan, allowed), {**rounds, self.loop.name: later}

    def shown(self, columns: Sequence[Column], relation: Relation, rounds: Of, loops: Sequence[str] = ()) -> Project:
        """These columns of a carried relation, and last its rounds in these loops: if none are given, in all around."""
        items = tuple((column, column) for column in columns)
        own = self._columns(loops or self.path)
        return Project(relation, (*items, *((column, rounds.get(loop, START)) for loop, column in own.items())))

    def _matched(
        self, left: Relation, first: Of, right: Relation, second: Of, columns: Sequence[Column], on: Expr
    ) -> tuple[Relation, Of]:
        """The left rows that have a partner: a join with the distinct keys of the right side."""
        asks = asked(on, Side(Scan("", "", tuple(columns)), (), {column.name: column for column in columns}))
        alias = self.aliases.fresh("=keys")
        keys = tuple((Column(f"{alias}.column{number}", match.key.type), match.key)
                     for number, match in enumerate(asks.matches, 1))  # fmt: skip
        rows = Filter(right, conjunction(asks.conditions)) if asks.conditions else right
        plain = tuple((column, column) for column in columns)
        only = Aggregate(Project(rows, plain), keys or ((Column(f"{alias}.any", BOOLEAN), TRUE),))
        distinct, last = self._reduced(only, columns, rows, second)
        same = [resolve("is not distinct from" if match.null_safe else "=", (match.probe, column))
                for match, (column, _) in zip(asks.matches, keys, strict=True)]  # fmt: skip
        pairs: Relation = Join((left, distinct))
        if conditions := (*asks.own, *asks.rest, *same):
            pairs = Filter(pairs, conjunction(conditions))
        return pairs, _greatest([first, last])

    def _without(
        self, columns: tuple[Column, ...], left: Relation, first: Of, pairs: Relation, rounds: Of
    ) -> tuple[Relation, Mapping[str, Column]]:
        """The left rows, and once more each that has a partner, taken away."""
        gone = TableFunction(pairs, "repeat_row", self.aliases.fresh("repeat_row"), (Literal(-1, BIGINT),), ())
        return self._sum(columns, [(left, first), (gone, rounds)])

    def _reduced(
        self, relation: Reduced, columns: Sequence[Column], below: Relation, rounds: Of
    ) -> tuple[Relation, Mapping[str, Column]]:
        """A reduce over these columns of a carried relation."""
        own = self._columns(rounds)
        made = Rounded(relation, self.shown(columns, below, rounds, tuple(own)), tuple(own.values()))
        return made, own  # type: ignore[return-value]  # the cutter takes it out at once

    def _sum(
        self, columns: tuple[Column, ...], parts: Sequence[tuple[Relation, Of]],
        each: Sequence[tuple[Column, ...]] | None = None,
    ) -> tuple[Relation, Mapping[str, Column]]:  # fmt: skip
        """The sum of carried relations, whose columns are these, or `each` its own."""
        own = self._columns([loop for _, rounds in parts for loop in rounds])
        if not own:
            return UnionAll(tuple(part for part, _ in parts), columns), own
        names = each or [columns] * len(parts)
        arms = tuple(self.shown(name, *part, tuple(own)) for name, part in zip(names, parts, strict=True))
        return UnionAll(arms, (*columns, *own.values())), own

    def _columns(self, loops: Collection[str]) -> dict[str, Column]:
        """New columns for rounds in these loops, the outermost first."""
        own = [loop for loop in self.path if loop in loops]
        alias = self.aliases.fresh("=round")
        return {loop: Column(f"{alias}.{name}", BIGINT, nullable=False)
                for loop, name in zip(own, round_names(len(own)), strict=True)}  # fmt: skip

    def _inwards(self) -> Iterator[Rounds]:
        """The loop, then those around it."""
        one: Rounds | None = self
        while one is not None:
            yield one
            one = one.around


def _greatest(rounds: Sequence[Of]) -> Of:
    found: dict[str, Expr] = {}
    for loop in dict.fromkeys(loop for one in rounds for loop in one):
        known = [one[loop] for one in rounds if loop in one]
        found[loop] = known[0] if len(known) == 1 else Call("greatest", tuple(known), BIGINT)
    return found
