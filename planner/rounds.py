"""Gives the relations inside a loop their round, as one more column.

Loop law. Inside a loop a time is `(batch time, round)`, and the time of what several rows make is the maximum of
theirs, coordinate by coordinate. Batch times are the engine's. Rounds are a column of the collections: a join takes the
greatest of its inputs', a linear operator passes it on, and what enters the loop has round 0.

A binding's rows of the round before are its rows with the next round. The rows of the last round that is allowed are
not fed back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.plan import ROUND
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
    Relation,
    Scan,
    Semi,
    TableFunction,
    TopK,
    UnionAll,
    Values,
    Window,
    every_part,
)
from halfjoin.sql.types import BIGINT, BOOLEAN

START = Literal(0, BIGINT)


@dataclass(frozen=True, slots=True)
class Rounded:
    """A reduce inside a loop: it acts in each round. `input` is that of the relation, and one more column: the round of
    its rows. `column` is the round of the results."""

    relation: Aggregate | Window | TopK
    input: Project
    column: Column

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the reduce, and the round."""
        return (*self.relation.columns, self.column)


@dataclass
class Rounds:
    """Carries the rounds through the relations of one loop. `collections`: of its bindings."""

    loop: Loop
    collections: Sequence[str]
    aliases: Aliases = field(default_factory=Aliases)

    def carried(self, relation: Relation) -> tuple[Relation, Expr | None]:
        """The relation, and the round of its rows as an expression over it; None: it does not read the bindings."""
        match relation:
            case Scan() | Values():
                return relation, None
            case Fed(loop, number, before, alias, columns) if loop == self.loop.name:
                own = (*columns, Column(f"{alias}.{ROUND}", BIGINT, nullable=False))
                scan = Scan(self.collections[number], alias, own)
                if not before:
                    return scan, own[-1]
                later = Call("next round", (own[-1],), BIGINT)
                return Filter(scan, Call("<", (later, Literal(self.loop.limit, BIGINT)), BOOLEAN)), later
            case Loop() if not self._reads(relation):
                return relation, None
            case Loop() | Fed():
                raise UnsupportedSQL("a recursive query inside another one that it reads is not maintained yet",
                                     remedy="write both as bindings of one WITH MUTUALLY RECURSIVE")  # fmt: skip
            case Filter(input, predicate):
                below, round = self.carried(input)
                return Filter(below, predicate), round
            case Project(input, items):
                below, round = self.carried(input)
                if round is None:
                    return Project(below, items), None
                column = self._column()
                return Project(below, (*items, (column, round))), column
            case Once(input):
                rows, _ = self.carried(input)
                if self.loop.limit == 1:
                    return rows, START
                gone = TableFunction(rows, "repeat_row", self.aliases.fresh("repeat_row"), (Literal(-1, BIGINT),), ())
                column, one = self._column(), Literal(1, BIGINT)
                once = (self.shown(input.columns, rows, START), self.shown(input.columns, gone, one))
                return UnionAll(once, (*input.columns, column)), column
            case TableFunction(input):
                below, round = self.carried(input)
                return replace(relation, input=below), round
            case Join(inputs):
                parts = [self.carried(item) for item in inputs]
                return Join(tuple(part for part, _ in parts)), _greatest([round for _, round in parts])
            case UnionAll(inputs, columns):
                parts = [self.carried(item) for item in inputs]
                if all(round is None for _, round in parts):
                    return UnionAll(tuple(part for part, _ in parts), columns), None
                arms = tuple(self.shown(item.columns, *part) for item, part in zip(inputs, parts, strict=True))
                column = self._column()
                return UnionAll(arms, (*columns, column)), column
            case Aggregate() | Window() | TopK():
                below, round = self.carried(relation.input)
                if round is None:
                    return replace(relation, input=below), None
                plain = Project(below, tuple((column, column) for column in relation.input.columns))
                input = self.shown(plain.columns, below, round)
                made = Rounded(replace(relation, input=plain), input, self._column())
                return made, made.column  # type: ignore[return-value]  # the cutter takes it out at once
            case Semi(input, other, on, anti):
                left, first = self.carried(input)
                right, second = self.carried(other)
                if second is None:
                    return Semi(left, right, on, anti), first
                choices = (alternatives(on) if anti else [on]) or [on]
                for choice in choices:
                    pairs, round = self._matched(left, first, right, second, other.columns, choice)
                    if not anti:
                        return pairs, round
                    left, first = self._without(input.columns, left, first, pairs, round)
                return left, first
            case Outer(left, right, on, full=False):
                below, first = self.carried(left)
                side, second = self.carried(right)
                if second is None:
                    return Outer(below, side, on), first
                joined = Filter(Join((below, side)), on)
                pairs, round = self._matched(below, first, side, second, right.columns, on)
                lonely, last = self._without(left.columns, below, first, pairs, round)
                nulls = Project(lonely, (*((c, c) for c in left.columns),
                                         *((c, Literal(None, c.type)) for c in relation.columns[len(left.columns):]),
                                         (column := self._column(), last or START)))  # fmt: skip
                both = self.shown((*left.columns, *right.columns), joined, _greatest([first, second]))
                return UnionAll((both, nulls), (*relation.columns, column)), column
        raise UnsupportedSQL(f"{type(relation).__name__} of a recursive query is not maintained")

    def _matched(
        self, left: Relation, first: Expr | None, right: Relation, second: Expr, columns: Sequence[Column], on: Expr
    ) -> tuple[Relation, Expr]:
        """The left rows that have a partner: a join with the distinct keys of the right side."""
        asks = asked(on, Side(Scan("", "", tuple(columns)), (), {column.name: column for column in columns}))
        alias = self.aliases.fresh("=keys")
        keys = tuple((Column(f"{alias}.column{number}", match.key.type), match.key)
                     for number, match in enumerate(asks.matches, 1))  # fmt: skip
        rows = Filter(right, conjunction(asks.conditions)) if asks.conditions else right
        plain = tuple((column, column) for column in columns)
        only = Aggregate(Project(rows, plain), keys or ((Column(f"{alias}.any", BOOLEAN), TRUE),))
        distinct = Rounded(only, self.shown(columns, rows, second), self._column())
        same = [resolve("is not distinct from" if match.null_safe else "=", (match.probe, column))
                for match, (column, _) in zip(asks.matches, keys, strict=True)]  # fmt: skip
        pairs: Relation = Join((left, distinct))  # type: ignore[arg-type]
        if conditions := (*asks.own, *asks.rest, *same):
            pairs = Filter(pairs, conjunction(conditions))
        round = _greatest([first, distinct.column])
        assert round is not None
        return pairs, round

    def _without(
        self, columns: Sequence[Column], left: Relation, first: Expr | None, pairs: Relation, round: Expr
    ) -> tuple[Relation, Expr]:
        """The left rows, and once more each that has a partner, taken away."""
        gone = TableFunction(pairs, "repeat_row", self.aliases.fresh("repeat_row"), (Literal(-1, BIGINT),), ())
        column = self._column()
        arms = (self.shown(columns, left, first), self.shown(columns, gone, round))
        return UnionAll(arms, (*columns, column)), column

    def _reads(self, relation: Relation) -> bool:
        """Whether a relation, or a loop in it, reads the bindings."""
        return any(
            part.loop == self.loop.name if isinstance(part, Fed)
            else isinstance(part, Loop) and any(self._reads(binding.relation) for binding in part.bindings)
            for part in every_part(relation)
        )  # fmt: skip

    def _column(self) -> Column:
        return Column(f"{self.aliases.fresh('=round')}.{ROUND}", BIGINT, nullable=False)

    def shown(self, columns: Sequence[Column], relation: Relation, round: Expr | None) -> Project:
        """These columns of a carried relation, and last its round."""
        items = tuple((column, column) for column in columns)
        return Project(relation, (*items, (self._column(), START if round is None else round)))


def _greatest(rounds: Sequence[Expr | None]) -> Expr | None:
    known = [round for round in rounds if round is not None]
    return known[0] if len(known) == 1 else Call("greatest", tuple(known), BIGINT) if known else None
