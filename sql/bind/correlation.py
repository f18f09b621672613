"""Takes the columns of outer queries out of a subquery, which is then computed once for all outer rows.

A condition `b.k = a.k` that equates a subquery's expression with an outer one moves out: the subquery keeps `b.k`,
grouped by it where it groups, and the outer query joins by the condition. Any other use of outer columns needs a
domain: the distinct values of these columns, to which the subquery is joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.expr import Call, Column, Expr, Literal, columns_of, conjunction, conjuncts, substitute, walk
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Scan,
    Semi,
    SortKey,
    TableFunction,
    TopK,
    UnionAll,
    Values,
    Window,
)
from halfjoin.sql.types import BIGINT


@dataclass(frozen=True)
class Inner:
    """A subquery that reads no outer columns. For an outer row it means the rows of `relation` for which `on` is true.

    `single`: it is an aggregate without GROUP BY, which has one row for each outer row, even if `relation` has none for
    it. `meanings` then computes the columns of this row, where those of `relation` are NULL if it has no row; the row
    is left out unless `having` is true.
    """

    relation: Relation
    on: tuple[Expr, ...] = ()
    single: bool = False
    meanings: Mapping[str, Expr] = field(default_factory=dict)
    having: tuple[Expr, ...] = ()


def outer_columns(relation: Relation) -> dict[str, Column]:
    """The columns of outer queries that a relation reads."""
    found: dict[str, Column] = {}
    for part in parts(relation):
        there = {column.name for below in _below(part) for column in below.columns}
        there |= {column.name for column in part.columns} if isinstance(part, TableFunction) else set()
        for expr in expressions(part):
            found |= {node.name: node for node in walk(expr) if isinstance(node, Column) and node.name not in there}
    inside = {column.name for part in parts(relation) for column in part.columns}
    return {name: column for name, column in found.items() if name not in inside}


def parts(relation: Relation) -> Iterator[Relation]:
    """The relation and all below it."""
    yield relation
    for below in _below(relation):
        yield from parts(below)


def _below(relation: Relation) -> tuple[Relation, ...]:
    match relation:
        case Join(inputs=inputs) | UnionAll(inputs=inputs):
            return inputs
        case Outer(left=left, right=other) | Semi(input=left, other=other):
            return (left, other)
        case Scan() | Values():
            return ()
        case _:
            return (relation.input,)


def expressions(relation: Relation) -> Iterator[Expr]:
    """The expressions of a relation itself."""
    found: list[Expr] = []

    def note(expr: Expr) -> Expr:
        found.append(expr)
        return expr

    changed(relation, note)
    yield from found


def changed(relation: Relation, change: Callable[[Expr], Expr]) -> Relation:
    """The relation with its own expressions changed, not those of its inputs."""

    def keys(order: Iterable[SortKey]) -> tuple[SortKey, ...]:
        return tuple(replace(key, expr=change(key.expr)) for key in order)

    match relation:
        case Values(rows=rows):
            return replace(relation, rows=tuple(tuple(map(change, row)) for row in rows))
        case TableFunction(args=args):
            return replace(relation, args=tuple(map(change, args)))
        case Filter(predicate=predicate):
            return replace(relation, predicate=change(predicate))
        case Project(items=items):
            return replace(relation, items=tuple((column, change(expr)) for column, expr in items))
        case Aggregate(keys=by, calls=calls):
            made = tuple((column, replace(call, args=tuple(map(change, call.args)), order=keys(call.order),
                                          condition=call.condition and change(call.condition)))
                         for column, call in calls)  # fmt: skip
            return replace(relation, keys=tuple((column, change(expr)) for column, expr in by), calls=made)
        case Window(partition=partition, order=order, calls=called):
            own = tuple((column, replace(call, args=tuple(map(change, call.args)),
                                         condition=call.condition and change(call.condition)))
                        for column, call in called)  # fmt: skip
            return replace(relation, partition=tuple(map(change, partition)), order=keys(order), calls=own)
        case TopK(partition=partition, order=order):
            return replace(relation, partition=tuple(map(change, partition)), order=keys(order))
        case Outer(on=on) | Semi(on=on):
            return replace(relation, on=change(on))
        case _:
            return relation


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
        if not outer_columns(relation):
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
                equal = self.equalities(below)
                self.refuse_outer(relation, below.relation)
                own = tuple(inner for _, inner in equal)
                return Inner(replace(relation, input=below.relation, partition=(*partition, *own)), below.on)
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
        raise _needs_domain()

    def several(self, relation: Relation) -> Inner:
        """A part of a subquery, which is no aggregate without GROUP BY, since that would have one row for no rows."""
        found = self.inner(relation)
        if found.single:
            raise _needs_domain()
        return found

    def filter(self, below: Inner, predicate: Expr) -> Inner:
        if below.single:
            return _filtered(below, predicate)
        there = {column.name for column in below.relation.columns}
        own = tuple(part for part in conjuncts(predicate) if columns_of(part) <= there)
        moved = tuple(part for part in conjuncts(predicate) if not columns_of(part) <= there)
        relation = Filter(below.relation, conjunction(own)) if own else below.relation
        return replace(below, relation=relation, on=(*below.on, *moved))

    def project(self, below: Inner, items: tuple[tuple[Column, Expr], ...]) -> Inner:
        if below.single:
            return _projected(below, items)
        there = {column.name: column for column in below.relation.columns}
        if any(not columns_of(expr) <= there.keys() for _, expr in items):
            raise _needs_domain()
        made = {column.name for column, _ in items}
        read = sorted(frozenset[str]().union(*map(columns_of, below.on)) & (there.keys() - made))
        return replace(below, relation=Project(below.relation, (*items, *((there[n], there[n]) for n in read))))

    def aggregate(self, below: Inner, keys: tuple[tuple[Column, Expr], ...],
                  calls: tuple[tuple[Column, AggregateCall], ...]) -> Inner:  # fmt: skip
        self.refuse_outer(Aggregate(below.relation, keys, calls), below.relation)
        added, on = self.as_columns(self.equalities(below))
        relation = Aggregate(below.relation, (*keys, *added), calls)
        if keys or not on:
            return Inner(relation, on)
        return Inner(relation, on, single=True, meanings=_over_nothing(relation))

    def union(self, arms: list[Inner], columns: tuple[Column, ...]) -> Inner:
        """Arms that equate the same outer expressions with their own, which become columns of the union."""
        found = [dict(self.equalities(arm)) for arm in arms]
        if any(one.keys() != found[0].keys() for one in found):
            raise _needs_domain()
        added, on = self.as_columns([(outer, found[0][outer]) for outer in found[0]])
        width = len(columns)
        made = tuple(
            Project(arm.relation, (
                *zip(columns, arm.relation.columns[:width], strict=True),
                *((column, functions.cast(one[outer], column.type))
                  for (column, _), outer in zip(added, found[0], strict=True)),
            ))
            for arm, one in zip(arms, found, strict=True)
        )  # fmt: skip
        return Inner(UnionAll(made, (*columns, *(column for column, _ in added))), on)

    def equalities(self, below: Inner) -> list[tuple[Expr, Expr]]:
        """The conditions as pairs of an outer expression and one of the subquery."""
        there = {column.name for column in below.relation.columns}
        return [_pair(condition, there) for condition in below.on]

    def as_columns(
        self, pairs: list[tuple[Expr, Expr]]
    ) -> tuple[tuple[tuple[Column, Expr], ...], tuple[Expr, ...]]:
        """A column for the subquery's side of each pair, and the conditions that equate them with the outer side."""
        alias = self.aliases.fresh("correlated")
        added = tuple((Column(f"{alias}.column{n}", inner.type), inner) for n, (_, inner) in enumerate(pairs, 1))
        on = (functions.resolve("=", (outer, column)) for (outer, _), (column, _) in zip(pairs, added, strict=True))
        return added, tuple(on)

    @staticmethod
    def refuse_outer(relation: Relation, *inputs: Relation) -> None:
        """Refuse outer columns in a relation's own expressions."""
        there = {column.name for item in inputs for column in item.columns}
        if any(not columns_of(expr) <= there for expr in expressions(relation)):
            raise _needs_domain()


def _filtered(below: Inner, predicate: Expr) -> Inner:
    return replace(below, having=(*below.having, substitute(predicate, below.meanings)))


def _projected(below: Inner, items: tuple[tuple[Column, Expr], ...]) -> Inner:
    return replace(below, meanings={column.name: substitute(expr, below.meanings) for column, expr in items})


def _over_nothing(relation: Aggregate) -> dict[str, Expr]:
    """What the results of aggregates are, if the row that has them may be missing."""
    zero = Literal(0, BIGINT)
    return {
        column.name: functions.resolve("coalesce", (column, zero)) if call.function in COUNTS else column
        for column, call in relation.calls
    }


COUNTS = frozenset(("count", "regr_count"))  # they are 0 over no rows; other aggregates are NULL


def _pair(condition: Expr, there: set[str]) -> tuple[Expr, Expr]:
    if isinstance(condition, Call) and condition.function == "=":
        for inner, outer in (condition.args, condition.args[::-1]):
            if columns_of(inner) and columns_of(inner) <= there and not columns_of(outer) & there:
                return outer, inner
    raise _needs_domain()


def _needs_domain() -> UnsupportedSQL:
    return UnsupportedSQL(
        "a subquery that reads an outer column otherwise than in an equality with its own is not maintained here",
        remedy="write it as a join in FROM, or compare with = only",
    )


def in_domain(relation: Relation, domain: Relation, outer: Mapping[str, Column]) -> Inner:
    """The subquery, joined to the distinct values of the outer columns that it reads. `outer` has the domain's column
    for each of them.

    Raises:
        UnsupportedSQL: two parts of a join read them, or the right side of an outer or semi-join does.
    """
    if _is_single(relation):
        match relation:
            case Filter(input, predicate):
                return _filtered(in_domain(input, domain, outer), predicate)
            case Project(input, items):
                return _projected(in_domain(input, domain, outer), items)
    inside = _renamed(relation, outer)
    on = tuple(
        functions.resolve("is not distinct from", (Column(name, column.type), column)) for name, column in outer.items()
    )
    found = Inner(_with_domain(inside, domain), on)
    if isinstance(relation, Aggregate) and not relation.keys:
        return replace(found, single=True, meanings=_over_nothing(relation))
    return found


def _is_single(relation: Relation) -> bool:
    """Whether it is an aggregate without GROUP BY, with conditions and expressions above it."""
    while isinstance(relation, (Filter, Project)):
        relation = relation.input
    return isinstance(relation, Aggregate) and not relation.keys


def _renamed(relation: Relation, names: Mapping[str, Column]) -> Relation:
    """The relation with these columns in place of others."""
    own = changed(relation, lambda expr: substitute(expr, names))
    match own:
        case Join(inputs) | UnionAll(inputs):
            return replace(own, inputs=tuple(_renamed(item, names) for item in inputs))
        case Outer(left, right):
            return replace(own, left=_renamed(left, names), right=_renamed(right, names))
        case Semi(input, other):
            return replace(own, input=_renamed(input, names), other=_renamed(other, names))
        case Scan() | Values():
            return own
        case _:
            return replace(own, input=_renamed(own.input, names))


def _with_domain(relation: Relation, domain: Relation) -> Relation:
    """The rows of a subquery beside the row of the domain that they are for. It reads the domain's columns as outer
    ones.
    """
    names = {column.name for column in domain.columns}
    own = tuple((column, column) for column in domain.columns)

    def reads(one: Relation) -> bool:
        return bool(outer_columns(one).keys() & names)

    if not reads(relation):
        return Join((domain, relation))
    match relation:
        case Join(inputs) if sum(map(reads, inputs)) == 1:
            return Join(tuple(_with_domain(item, domain) if reads(item) else item for item in inputs))
        case UnionAll(inputs, columns):
            arms = (_with_domain(item, domain) for item in inputs)
            shown = tuple(
                Project(arm, (*own, *zip(columns, item.columns, strict=True)))
                for arm, item in zip(arms, inputs, strict=True)
            )
            return UnionAll(shown, (*domain.columns, *columns))
        case Project(input, items):
            return Project(_with_domain(input, domain), (*own, *items))
        case Aggregate(input, keys):
            return replace(relation, input=_with_domain(input, domain), keys=(*own, *keys))
        case TopK(input, partition) | Window(input, partition):
            return replace(relation, input=_with_domain(input, domain), partition=(*domain.columns, *partition))
        case Filter(input) | TableFunction(input):
            return replace(relation, input=_with_domain(input, domain))
        case Outer(left, right, full=False) if not reads(right):
            return replace(relation, left=_with_domain(left, domain))
        case Semi(input, other) if not reads(other):
            return replace(relation, input=_with_domain(input, domain))
        case Values(columns=columns, rows=rows) if len(rows) == 1:
            return Project(domain, (*own, *zip(columns, rows[0], strict=True)))
    raise _needs_domain()
