"""Gives a relation canonical names, so that two queries that differ only in names become the same.

A scan takes the name of its collection, and an output column the name of the column that it shows. So equal parts of
two views have equal plans, and a row that fails in them is reported in the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.expr import Cast, Column, Expr, substitute
from halfjoin.sql.relation import Filter, Join, Outer, Project, Relation, Scan, Semi, TableFunction, UnionAll, Values


def canonical(union: UnionAll) -> UnionAll:
    """The same rows under canonical names; the output columns have bare names."""
    inputs = _Names().inputs(union.inputs)
    names = _column_names(inputs[0])
    columns = tuple(replace(column, name=name) for column, name in zip(union.columns, names, strict=True))
    return UnionAll(inputs, columns)


def _column_names(relation: Relation) -> Sequence[str]:
    """A name for each column: the name of the column that it shows, if it shows one."""
    return _names_of(_exprs_of(relation))


def _union_names(arms: Sequence[Relation]) -> Sequence[str]:
    """A name for each column of a union, from the first arm that shows a column there."""
    shown = zip(*(map(_uncast, _exprs_of(arm)) for arm in arms), strict=True)
    return _names_of(next((one for one in each if isinstance(one, Column)), each[0]) for each in shown)


def _exprs_of(relation: Relation) -> Sequence[Expr]:
    return [expr for _, expr in relation.items] if isinstance(relation, Project) else relation.columns


def _names_of(exprs: Iterable[Expr]) -> Sequence[str]:
    """A name for each expression: that of the column that it is. No two differ only in case."""
    taken = Aliases()
    names = []
    for number, expr in enumerate(map(_uncast, exprs), 1):
        bare = expr.name.rpartition(".")[2] if isinstance(expr, Column) else f"column{number}"
        names.append(taken.fresh(bare.lower()).replace("#", "_"))
    return names if len(set(names)) == len(names) else [f"column{number}" for number in range(1, len(names) + 1)]


def _uncast(expr: Expr) -> Expr:
    return _uncast(expr.arg) if isinstance(expr, Cast) else expr


@dataclass
class _Names:
    """The names given so far, and the renamed columns by their old names."""

    aliases: Aliases = field(default_factory=Aliases)
    columns: dict[str, Expr] = field(default_factory=dict)

    def inputs(self, relations: Iterable[Relation]) -> tuple[Relation, ...]:
        return tuple(map(self.relation, relations))

    def relation(self, relation: Relation) -> Relation:
        match relation:
            case Scan(collection, alias, columns):
                own = self.aliases.fresh(collection)
                bare = [column.name[len(alias) + 1 :] for column in columns]
                return Scan(collection, own, self._named(columns, own, bare))
            case Values(_, columns, rows):
                own = self.aliases.fresh("values")
                return Values(own, self._named(columns, own, _numbered(columns)), rows)
            case Join(inputs):
                return Join(self.inputs(inputs))
            case TableFunction(input, function, _, args, outputs, ordinality, calls):
                below = self.relation(input)
                own, args = self.aliases.fresh(function), self._exprs(args)
                made = self._named(outputs, own, _numbered(outputs))
                last = self._named((ordinality,), own, ("ordinality",))[0] if ordinality else None
                return TableFunction(below, function, own, args, made, last, calls)
            case Filter(input, predicate):
                below = self.relation(input)
                return Filter(below, substitute(predicate, self.columns))
            case Project(input, items):
                below = self.relation(input)
                exprs = self._exprs(expr for _, expr in items)
                shown = [column for column, _ in items]
                named = self._named(shown, self.aliases.fresh("project"), _names_of(exprs))
                return Project(below, tuple(zip(named, exprs, strict=True)))
            case UnionAll(inputs, columns):
                arms = self.inputs(inputs)
                return UnionAll(arms, self._named(columns, self.aliases.fresh("union"), _union_names(arms)))
            case Outer(left, right, on, full):
                sides = self.relation(left), self.relation(right)
                joined = Outer(*sides, substitute(on, self.columns), full)
                for old, new in zip(relation.columns, joined.columns, strict=True):
                    self.columns[old.name] = new  # it may be nullable from here on
                return joined
            case Semi(input, other, on, anti):
                sides = self.relation(input), self.relation(other)
                return Semi(*sides, substitute(on, self.columns), anti)
            case _:
                raise ValueError(f"{type(relation).__name__} is not a part of a join")  # it is cut out

    def _exprs(self, exprs: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(substitute(expr, self.columns) for expr in exprs)

    def _named(self, columns: Sequence[Column], alias: str, names: Iterable[str]) -> tuple[Column, ...]:
        named = tuple(replace(column, name=f"{alias}.{name}") for column, name in zip(columns, names, strict=True))
        self.columns.update((old.name, new) for old, new in zip(columns, named, strict=True))
        return named


def _numbered(columns: Sequence[Column]) -> list[str]:
    return [f"column{number}" for number in range(1, len(columns) + 1)]
