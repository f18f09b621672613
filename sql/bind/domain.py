"""Joins a subquery to its domain: the distinct values of the outer columns that it reads.

This serves a subquery that reads outer columns otherwise than in equalities with its own, such as `b.y < a.y`.

A recursive subquery is computed for all rows of the domain together. Its bindings have the domain's columns, too, and
what reads a binding reads the rows for its own row of the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

from halfjoin.sql import functions
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.bind.correlation import Inner, filtered, is_single, needs_domain, over_nothing, projected
from halfjoin.sql.bind.reading import changed, outer_columns
from halfjoin.sql.expr import Column, Expr, columns_of, conjunction, conjuncts, is_temporal, substitute
from halfjoin.sql.functions import fallible
from halfjoin.sql.functions.order import same_value
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
    Semi,
    TableFunction,
    TopK,
    UnionAll,
    UserReduce,
    Values,
    Window,
    fed_by,
    with_inputs,
)

Pairs: TypeAlias = tuple[tuple[Column, Column], ...]  # the columns of a domain, and of a copy of it


def in_domain(relation: Relation, domain: Aggregate, outer: Mapping[str, Column], aliases: Aliases) -> Inner:
    """The subquery, joined to the distinct values of the outer columns that it reads. `outer` has the domain's column
    for each of them. Columns of queries further out stay outer columns.
    """
    if is_single(relation):
        match relation:
            case Filter(input, predicate):
                return filtered(in_domain(input, domain, outer, aliases), predicate)
            case Project(input, items):
                return projected(in_domain(input, domain, outer, aliases), items)
    inside, values = _renamed(relation, outer), _Domain(domain, aliases)
    same = (same_value(functions.resolve, Column(name, column.type), column)
            for name, column in outer.items())  # fmt: skip
    on = tuple(part for one in same for part in conjuncts(one))  # of a row: one for each member
    if isinstance(inside, Aggregate) and not inside.keys:
        return Inner(values.grouped(inside), on, single=True, meanings=over_nothing(inside))
    return Inner(values.beside(inside), on)


def constant(relation: Relation) -> Inner:
    """A subquery that is the same for all rows here. It may read columns of queries further out."""
    if is_single(relation):
        match relation:
            case Filter(input, predicate):
                return filtered(constant(input), predicate)
            case Project(input, items):
                return projected(constant(input), items)
            case Aggregate(_, _, calls):
                return Inner(relation, single=True, meanings={column.name: column for column, _ in calls})
    return Inner(relation)


def _renamed(relation: Relation, names: Mapping[str, Column]) -> Relation:
    """The relation with these columns in place of others."""
    if isinstance(relation, Loop):
        return _with_bindings(relation, lambda below: _renamed(below, names))
    own = changed(relation, lambda expr: substitute(expr, names))
    return with_inputs(own, lambda below: _renamed(below, names))


def _with_bindings(loop: Loop, change: Callable[[Relation], Relation]) -> Loop:
    return replace(loop, bindings=tuple(replace(one, relation=change(one.relation)) for one in loop.bindings))


@dataclass(frozen=True)
class _Domain:
    """Distinct values of outer columns. Relations read the domain's columns as outer ones.

    `loops`: those whose bindings have the domain's columns, and what they are called then.
    """

    rows: Aggregate
    aliases: Aliases
    loops: Mapping[str, str] = field(default_factory=dict)

    def is_read(self, relation: Relation) -> bool:
        if any(fed_by(relation, loop) for loop in self.loops):
            return True
        return bool(outer_columns(relation).keys() & {column.name for column in self.rows.columns})

    def beside(self, relation: Relation) -> Relation:
        """The rows of a relation beside the row of the domain that they are for."""
        own = tuple((column, column) for column in self.rows.columns)
        if not self.is_read(relation):
            return Join((self.rows, relation))
        match relation:
            case Join(inputs):
                return self.joined(inputs)
            case UnionAll(inputs, columns):
                shown = tuple(
                    Project(self.beside(arm), (*own, *zip(columns, arm.columns, strict=True))) for arm in inputs
                )
                return UnionAll(shown, (*self.rows.columns, *columns))
            case Project(input, items):
                return Project(self.beside(input), (*own, *items))
            case Aggregate(keys=()):
                return self.single(relation)
            case Aggregate():
                return self.grouped(relation)
            case TopK(input, partition) | Window(input, partition):
                return replace(relation, input=self.beside(input), partition=(*self.rows.columns, *partition))
            case UserReduce(input, keys=keys):
                return replace(relation, input=self.beside(input), keys=(*own, *keys))
            case Filter(input) | TableFunction(input) | Once(input):
                return replace(relation, input=self.beside(input))
            case Fed(loop, alias=alias):
                more = self.keys(alias, len(relation.columns))
                return self.first(replace(relation, loop=self.loops[loop], columns=(*relation.columns, *more)), more)
            case Loop():
                return self.loop(relation)
            case Outer(left, right, on, full):
                return self.outer(left, right, on, full)
            case Semi(input, other, on):
                input = self.beside(input)
                if self.is_read(other):
                    other, pairs = self.again(other)
                    on = conjunction((_same(pairs), *conjuncts(on)))
                return replace(relation, input=input, other=other, on=on)
            case Values(columns=columns, rows=values):
                each = tuple(Project(self.rows, (*own, *zip(columns, row, strict=True))) for row in values)
                return UnionAll(each, (*self.rows.columns, *columns)) if len(each) != 1 else each[0]
        raise needs_domain()

    def loop(self, loop: Loop) -> Relation:
        """The loop for each row of the domain. Its name is new, since another domain may use the same loop."""
        name, alias = self.aliases.fresh(loop.name), self.aliases.fresh("domain")
        inner = replace(self, loops={**self.loops, loop.name: name})

        def keyed(below: Relation) -> Relation:
            return Project(inner.beside(below), tuple((c, c) for c in (*below.columns, *self.rows.columns)))

        many = len(loop.bindings[loop.number].relation.columns)  # it may show its rounds, too
        keys = self.keys(alias, many)
        made = _with_bindings(replace(loop, name=name), keyed)
        names = tuple(expr.name.rpartition(".")[2] if isinstance(expr, Column) else "key" for _, expr in self.rows.keys)
        told = tuple(replace(one, names=(*one.names, *names)) for one in made.bindings)
        shown = (*loop.columns[:many], *keys, *loop.columns[many:])
        return self.first(replace(made, bindings=told, columns=shown), keys)

    def keys(self, alias: str, many: int) -> tuple[Column, ...]:
        """The domain's columns, as they are called in a binding, after so many columns of its own."""
        return tuple(Column(f"{alias}.c{n}", column.type) for n, column in enumerate(self.rows.columns, many + 1))

    def first(self, relation: Relation, keys: Sequence[Column]) -> Project:
        """A relation with these columns as the domain's, which come first."""
        rest = tuple((column, column) for column in relation.columns if column not in keys)
        return Project(relation, (*zip(self.rows.columns, keys, strict=True), *rest))

    def joined(self, inputs: Sequence[Relation]) -> Relation:
        """A join, of which several inputs may read the domain."""
        readers = [number for number, item in enumerate(inputs) if self.is_read(item)]
        made, equal = list(inputs), list[Expr]()
        made[readers[0]] = self.beside(inputs[readers[0]])
        for number in readers[1:]:
            made[number], pairs = self.again(inputs[number])
            equal.append(_same(pairs))
        return Filter(Join(tuple(made)), conjunction(tuple(equal))) if equal else Join(tuple(made))

    def grouped(self, relation: Aggregate) -> Aggregate:
        """An aggregate of the rows for each row of the domain. It has no row where there are none."""
        keys = tuple((column, column) for column in self.rows.columns)
        return replace(relation, input=self.beside(relation.input), keys=(*keys, *relation.keys))

    def single(self, relation: Aggregate) -> Relation:
        """An aggregate without GROUP BY. It has a row for each row of the domain."""
        copy, pairs = self.copied()
        alias = self.aliases.fresh("single")
        calls = tuple((replace(column, name=f"{alias}.column{number}"), call)
                      for number, (column, call) in enumerate(relation.calls, 1))  # fmt: skip
        rows = copy.grouped(cast(Aggregate, _renamed(replace(relation, calls=calls), dict(_renaming(pairs)))))
        meanings = over_nothing(rows)
        shown = zip(relation.columns, (meanings[column.name] for column, _ in calls), strict=True)
        own = ((column, column) for column in self.rows.columns)
        return Project(Outer(self.rows, rows, _same(pairs)), (*own, *shown))

    def outer(self, left: Relation, right: Relation, on: Expr, full: bool) -> Relation:
        """LEFT or FULL JOIN. Of FULL, the row of the domain is that of the side that is there."""
        if not full and not self.is_read(right):
            return Outer(self.beside(left), right, on)
        rows, pairs = self.again(right)
        made = Outer(self.beside(left), rows, conjunction((_same(pairs), *conjuncts(on))), full)
        if not full:
            return made
        names = {column.name for pair in pairs for column in pair}
        either = ((pair[0], functions.resolve("coalesce", pair)) for pair in pairs)
        return Project(made, (*either, *((column, column) for column in made.columns if column.name not in names)))

    def again(self, relation: Relation) -> tuple[Relation, Pairs]:
        """A relation beside a copy of the domain, and the columns of both."""
        copy, pairs = self.copied()
        return copy.beside(_renamed(relation, dict(_renaming(pairs)))), pairs

    def copied(self) -> tuple[_Domain, Pairs]:
        alias = self.aliases.fresh("domain")
        copies = [replace(c, name=f"{alias}.column{number}") for number, c in enumerate(self.rows.columns, 1)]
        keys = tuple(zip(copies, (expr for _, expr in self.rows.keys), strict=True))
        pairs = tuple(zip(self.rows.columns, copies, strict=True))
        return replace(self, rows=replace(self.rows, keys=keys)), pairs


def _same(pairs: Pairs) -> Expr:
    """Whether two copies of the domain have the same row."""
    return conjunction(tuple(same_value(functions.resolve, *pair) for pair in pairs))


def _renaming(pairs: Pairs) -> Iterator[tuple[str, Column]]:
    return ((mine.name, copy) for mine, copy in pairs)


def supplier(relation: Relation, names: set[str]) -> Relation:
    """The least part of a relation that gives all of these columns, with the conditions on it alone."""
    match relation:
        case Filter(input, predicate):
            below = supplier(input, names)
            there = {column.name for column in below.columns}
            safe = tuple(part for part in conjuncts(predicate) if columns_of(part) <= there
                         and not fallible(part) and not is_temporal(part))  # fmt: skip
            return Filter(below, conjunction(safe)) if safe else below
        case Join(inputs):
            needed = tuple(item for item in inputs if _has(item, names))
            return supplier(needed[0], names) if len(needed) == 1 else relation
        case Outer(input, full=False) | Semi(input) | TableFunction(input) | Window(input):
            inside = {column.name for column in input.columns}
            return supplier(input, names) if names <= inside else relation
        case _:
            return relation


def _has(relation: Relation, names: set[str]) -> bool:
    return any(column.name in names for column in relation.columns)
