"""The rows at a place of a query, and how a subquery is joined to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind import select as bind_select  # the two modules call each other
from halfjoin.sql.bind.correlation import Inner, pair_of, taken_out
from halfjoin.sql.bind.domain import constant, in_domain, supplier
from halfjoin.sql.bind.quantified import Quantified
from halfjoin.sql.bind.reading import outer_columns
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.selected import Selected, known
from halfjoin.sql.expr import TRUE, Column, Expr, columns_of, conjunction, substitute
from halfjoin.sql.functions.chance import draws
from halfjoin.sql.relation import Aggregate, AggregateCall, Filter, Join, Outer, Project, Relation, TopK
from halfjoin.sql.types import BOOLEAN


class BothSides(Exception):
    """A subquery in the condition of an outer join reads both sides, so it can be joined to neither."""


@dataclass(frozen=True)
class Found:
    """A subquery without outer columns, and its outputs over its columns and outer ones."""

    inner: Inner
    values: tuple[Expr, ...]


@dataclass
class Rows:
    """The rows at a place of a query, and the binder of expressions over them.

    An outer join's ON has two relations. A subquery is joined to the one whose columns it reads.
    """

    relations: list[Relation]
    scalars: Scalars

    def place(self, names: Iterable[str]) -> int:
        """The relation that has all of these columns that any of them has."""
        inside = [{column.name for column in relation.columns} for relation in self.relations]
        read = set[str]().union(*inside).intersection(names)
        for number, columns in enumerate(inside):
            if read <= columns:
                return number
        raise BothSides

    def found(self, query: exp.Expr, *, loose: bool = False, distinct: bool = False, joined: bool = False) -> Found:
        """A subquery, bound, without outer columns.

        `distinct`: its duplicates do not matter. `loose`: only whether it has rows matters. `joined`: any condition may
        correlate it, not only an equality to group by.
        """
        selected = self.selected(query)
        relation = selected.input
        while loose and isinstance(relation, TopK) and relation.limit != 0 and not relation.offset:
            relation = relation.input
        if (loose or distinct) and isinstance(relation, Aggregate) and relation.keys and not relation.calls:
            relation = Project(relation.input, relation.keys)
        inner = self.inner(relation, joined=joined)
        values = tuple(substitute(known(value), inner.meanings) for _, value in selected.items)
        return self._drawn(inner, values) if any(map(draws, values)) else Found(inner, values)

    def _drawn(self, inner: Inner, values: Sequence[Expr]) -> Found:
        """A subquery whose outputs depend on chance, as columns of its rows: they are drawn for each of its rows."""
        alias, own = self.scalars.context.aliases.fresh("drawn"), {column.name for column in inner.relation.columns}
        items = {value: Column(f"{alias}.column{number}", value.type) for number, value in enumerate(values, 1)
                 if draws(value) and columns_of(value) <= own}  # fmt: skip
        kept = ((column, column) for column in inner.relation.columns)
        drawn = Project(inner.relation, (*kept, *((column, value) for value, column in items.items())))
        return Found(replace(inner, relation=drawn), tuple(items.get(value, value) for value in values))

    def selected(self, query: exp.Expr, *, ordered: bool = False) -> Selected:
        """A subquery, bound, with outer columns. `ordered`: the order of its rows matters."""
        while isinstance(query, exp.Paren):
            query = query.this
        context = replace(self.scalars.context, ordered=ordered)
        return bind_select.select(query, context, None, self.scalars.scopes)

    def members(self, asked: Quantified, found: Found) -> tuple[Expr, ...]:
        """What is compared with the outputs of the subquery."""
        left = self.scalars.values(asked.members)
        if len(left) != len(found.values):
            more = "many" if len(left) < len(found.values) else "few"
            raise self.scalars.context.wrong(asked.query, f"subquery has too {more} columns")
        return left

    def inner(self, relation: Relation, *, joined: bool) -> Inner:
        """A subquery without outer columns; `joined` as in `found`."""
        try:
            inner = taken_out(relation, self.scalars.context.aliases)
            own = {column.name for column in inner.relation.columns}
            if joined or all(_groups(part, own) for part in inner.on):
                return inner
        except UnsupportedSQL:
            pass
        return self.domain(relation)

    def domain(self, relation: Relation) -> Inner:
        """A subquery beside the distinct values of the columns here that it reads. Those of queries further out stay
        outer columns."""
        outer, aliases = outer_columns(relation), self.scalars.context.aliases
        source = self.relations[self.place(outer)]
        there = {column.name for column in source.columns}
        read = {name: column for name, column in outer.items() if name in there}
        if not read:
            return constant(relation)
        alias = aliases.fresh("domain")
        names = {name: Column(f"{alias}.column{number}", column.type, column.nullable)
                 for number, (name, column) in enumerate(read.items(), 1)}  # fmt: skip
        keys = tuple((names[name], column) for name, column in read.items())
        return in_domain(relation, Aggregate(supplier(source, set(read)), keys), names, aliases)

    def join(self, inner: Inner) -> None:
        """Join the rows with a subquery that has at most one row for each. It has one if nothing correlates it."""
        place = self.place(name for part in inner.on for name in columns_of(part))
        left = self.relations[place]
        if inner.on:
            self.relations[place] = Outer(left, inner.relation, conjunction(inner.on))
        else:
            self.relations[place] = Join((*left.inputs, inner.relation) if isinstance(left, Join)
                                         else (left, inner.relation))  # fmt: skip

    def grouped(self, inner: Inner, calls: Sequence[AggregateCall]) -> list[Column]:
        """Join the rows with aggregates of the subquery's rows for each of them. Returns the results' columns, which
        may be NULL where there are no rows."""
        alias = self.scalars.context.aliases.fresh("subquery")
        own = {column.name for column in inner.relation.columns}
        keys, on, alone = list[tuple[Column, Expr]](), list[Expr](), list[Expr]()
        for condition in inner.on:
            if (pair := pair_of(condition, own)) is not None:
                column = Column(f"{alias}.key{len(keys) + 1}", pair.mine.type)
                keys.append((column, pair.mine))
                on.append(functions.resolve(pair.operator, (pair.outer, column)))
            else:
                (alone if columns_of(condition) & own else on).append(condition)
        below = Filter(inner.relation, conjunction(tuple(alone))) if alone else inner.relation
        columns = [Column(f"{alias}.{call.function}{number}", call.type) for number, call in enumerate(calls, 1)]
        self.join(Inner(Aggregate(below, tuple(keys), tuple(zip(columns, calls, strict=True))), tuple(on)))
        return columns

    def only(self, relation: Relation, on: Sequence[Expr]) -> Relation:
        """The relation with only the columns that `on` reads."""
        read = frozenset[str]().union(*map(columns_of, on))
        items: list[tuple[Column, Expr]] = [(column, column) for column in relation.columns if column.name in read]
        if not items:
            alias = self.scalars.context.aliases.fresh("exists")
            items = [(Column(f"{alias}.there", BOOLEAN, nullable=False), TRUE)]
        return Project(relation, tuple(items))


def _groups(condition: Expr, own: set[str]) -> bool:
    """Whether a subquery can be grouped by what the condition asks of its columns."""
    read = columns_of(condition)
    return not read & own or read <= own or pair_of(condition, own) is not None
