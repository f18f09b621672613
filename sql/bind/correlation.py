"""Takes the columns of outer queries out of a subquery, which is then computed once for all outer rows.

A condition `b.k = a.k` that equates a subquery's expression with an outer one moves out: the subquery keeps `b.k`,
grouped by it where it groups, and the outer query joins by the condition. Any other use of outer columns needs a
domain: the distinct values of these columns, to which the subquery is joined.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.bind.reading import expressions, outer_columns
from halfjoin.sql.expr import (
    Call,
    Column,
    Expr,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
)
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Semi,
    TableFunction,
    TopK,
    UnionAll,
    UserReduce,
    Window,
)
from halfjoin.sql.types import BIGINT


@dataclass(frozen=True)
class Inner:
    """A subquery that reads no columns of the rows around it; it may read those of queries further out. For an outer
    row it means the rows of `relation` for which `on` is true.

    `single`: it is an aggregate without GROUP BY, which has one row for each outer row, even if `relation` has none for
    it. `meanings` then computes the columns of this row, where those of `relation` are NULL if it has no row; the row
    is left out unless `having` is true.
    """

    relation: Relation
    on: tuple[Expr, ...] = ()
    single: bool = False
    meanings: Mapping[str, Expr] = field(default_factory=dict)
    having: tuple[Expr, ...] = ()


def taken_out(relation: Relation, aliases: Aliases) -> Inner:
    """The subquery without outer columns.

    Raises:
        UnsupportedSQL: an outer column is used otherwise than in an equality with an expression of the subquery.
    """
    return _Decorrelator(aliases).inner(relation)


@dataclass(frozen=True)
class _Decorrelator:
    aliases: Aliases

    def inner(self, relation: Relation) -> Inner:
        if not outer_columns(relation) and not is_single(relation):
            return Inner(relation)
        match relation:
            case Filter(input, predicate):
                return self.filter(self.inner(input), predicate)
            case Project(input, items):
                return self.project(self.inner(input), items)
            case Join(inputs):
                every = [self.several(item) for item in inputs]
                return Inner(Join(tuple(one.relation for one in every)), tuple(c for one in every for c in one.on))
            case Aggregate(input, keys, calls):
                return self.aggregate(self.several(input), keys, calls)
            case TopK(input, partition) | Window(input, partition):
                below = self.several(input)
                self.refuse_outer(relation, below.relation)
                own = tuple(pair.mine for pair in self.equalities(below)[0])
                return Inner(replace(relation, input=below.relation, partition=(*partition, *own)), below.on)
            case UserReduce(input, keys=keys):
                below = self.several(input)
                self.refuse_outer(replace(relation, input=below.relation), below.relation)
                pairs, rest = self.equalities(below)
                added, on = self.as_columns(pairs)
                return Inner(replace(relation, input=below.relation, keys=(*keys, *added)), (*on, *rest))
            case UnionAll(inputs, columns):
                return self.union([self.several(item) for item in inputs], columns)
            case TableFunction(input):
                below = self.several(input)
                self.refuse_outer(relation, below.relation)
                return Inner(replace(relation, input=below.relation), below.on)
            case Outer(left, right, full=False) if not outer_columns(right):
                below = self.several(left)
                self.refuse_outer(relation, below.relation, right)
                return Inner(replace(relation, left=below.relation), below.on)
            case Semi(input, other) if not outer_columns(other):
                below = self.several(input)
                self.refuse_outer(relation, below.relation, other)
                return Inner(replace(relation, input=below.relation), below.on)
        raise needs_domain()

    def several(self, relation: Relation) -> Inner:
        """A part of a subquery, which is no aggregate without GROUP BY, since that would have one row for no rows."""
        if not outer_columns(relation):
            return Inner(relation)
        found = self.inner(relation)
        if found.single:
            raise needs_domain()
        return found

    def filter(self, below: Inner, predicate: Expr) -> Inner:
        if below.single:
            return filtered(below, predicate)
        there = {column.name for column in below.relation.columns}
        own = tuple(part for part in conjuncts(predicate) if columns_of(part) <= there)
        moved = tuple(part for part in conjuncts(predicate) if not columns_of(part) <= there)
        relation = Filter(below.relation, conjunction(own)) if own else below.relation
        return replace(below, relation=relation, on=(*below.on, *moved))

    def project(self, below: Inner, items: tuple[tuple[Column, Expr], ...]) -> Inner:
        if below.single:
            return projected(below, items)
        there = {column.name: column for column in below.relation.columns}
        if any(not columns_of(expr) <= there.keys() for _, expr in items):
            raise needs_domain()
        made = {column.name for column, _ in items}
        read = sorted(frozenset[str]().union(*map(columns_of, below.on)) & (there.keys() - made))
        return replace(below, relation=Project(below.relation, (*items, *((there[n], there[n]) for n in read))))

    def aggregate(self, below: Inner, keys: tuple[tuple[Column, Expr], ...],
                  calls: tuple[tuple[Column, AggregateCall], ...]) -> Inner:  # fmt: skip
        self.refuse_outer(Aggregate(below.relation, keys, calls), below.relation)
        pairs, rest = self.equalities(below)
        added, on = self.as_columns(pairs)
        on += rest
        relation = Aggregate(below.relation, (*keys, *added), calls)
        if keys:
            return Inner(relation, on)
        meanings = over_nothing(relation) if on else {column.name: column for column, _ in calls}
        return Inner(relation, on, single=True, meanings=meanings)

    def union(self, arms: list[Inner], columns: tuple[Column, ...]) -> Inner:
        """Arms that equate the same outer expressions with their own, which become columns of the union."""
        found = [self.equalities(arm) for arm in arms]
        sides = [{(pair.outer, pair.operator): pair.mine for pair in pairs} for pairs, _ in found]
        if any(one.keys() != sides[0].keys() for one in sides) or any(rest for _, rest in found):
            raise needs_domain()
        added, on = self.as_columns([Pair(outer, mine, operator) for (outer, operator), mine in sides[0].items()])
        width = len(columns)
        made = tuple(
            Project(arm.relation, (
                *zip(columns, arm.relation.columns[:width], strict=True),
                *((column, functions.cast(one[side], column.type))
                  for (column, _), side in zip(added, sides[0], strict=True)),
            ))
            for arm, one in zip(arms, sides, strict=True)
        )  # fmt: skip
        return Inner(UnionAll(made, (*columns, *(column for column, _ in added))), on)

    def equalities(self, below: Inner) -> tuple[list[Pair], tuple[Expr, ...]]:
        """The conditions that equate something with a part of the subquery, and those on outer columns alone."""
        there = {column.name for column in below.relation.columns}
        pairs, rest = list[Pair](), list[Expr]()
        for condition in below.on:
            pair = pair_of(condition, there)
            if pair is not None:
                pairs.append(pair)
            elif columns_of(condition) & there:
                raise needs_domain()
            else:
                rest.append(condition)
        return pairs, tuple(rest)

    def as_columns(self, pairs: list[Pair]) -> tuple[tuple[tuple[Column, Expr], ...], tuple[Expr, ...]]:
        """A column for the subquery's side of each pair, and the conditions that equate them with the outer side."""
        alias = self.aliases.fresh("correlated")
        added = tuple((Column(f"{alias}.column{n}", pair.mine.type), pair.mine) for n, pair in enumerate(pairs, 1))
        on = (functions.resolve(pair.operator, (pair.outer, column))
              for pair, (column, _) in zip(pairs, added, strict=True))  # fmt: skip
        return added, tuple(on)

    @staticmethod
    def refuse_outer(relation: Relation, *inputs: Relation) -> None:
        """Refuse outer columns in a relation's own expressions."""
        there = {column.name for item in inputs for column in item.columns}
        if any(not columns_of(expr) <= there for expr in expressions(relation)):
            raise needs_domain()


def filtered(below: Inner, predicate: Expr) -> Inner:
    """A single row with one more condition."""
    return replace(below, having=(*below.having, substitute(predicate, below.meanings)))


def projected(below: Inner, items: tuple[tuple[Column, Expr], ...]) -> Inner:
    """A single row with columns computed from it."""
    return replace(below, meanings={column.name: substitute(expr, below.meanings) for column, expr in items})


def over_nothing(relation: Aggregate) -> dict[str, Expr]:
    """What the results of aggregates are, if the row that has them may be missing."""
    zero = Literal(0, BIGINT)
    return {
        column.name: functions.resolve("coalesce", (column, zero)) if call.function in COUNTS else column
        for column, call in relation.calls
    }


COUNTS = frozenset(("count", "regr_count"))  # they are 0 over no rows; other aggregates are NULL


@dataclass(frozen=True)
class Pair:
    """A condition that equates an outer expression with one of a subquery."""

    outer: Expr
    mine: Expr
    operator: str


def pair_of(condition: Expr, own: AbstractSet[str]) -> Pair | None:
    """The two sides of an equality between the columns `own` and outer ones, or a constant; None for another."""
    if isinstance(condition, Call) and condition.function in ("=", "is not distinct from"):
        for mine, outer in (condition.args, condition.args[::-1]):
            if columns_of(mine) and columns_of(mine) <= own and not columns_of(outer) & own:
                return Pair(outer, mine, condition.function)
    return None


def needs_domain() -> UnsupportedSQL:
    """The error for a subquery that reads outer columns in a way that is not supported."""
    return UnsupportedSQL(
        "a subquery that reads an outer column otherwise than in an equality with its own is not maintained here",
        remedy="write it as a join in FROM, or compare with = only",
    )


def is_single(relation: Relation) -> bool:
    """Whether it is an aggregate without GROUP BY, with conditions and expressions above it."""
    while isinstance(relation, (Filter, Project)):
        relation = relation.input
    return isinstance(relation, Aggregate) and not relation.keys
