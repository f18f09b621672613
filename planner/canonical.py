"""Gives a relation canonical names, so that two queries that differ only in names become the same.

A scan takes the name of its collection, and an output column the name of the column that it shows. So equal parts of
two views have equal plans, and a row that fails in them is reported in the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.expr import Cast, Column, Expr, substitute
from halfjoin.sql.relation import (
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Scan,
    Semi,
    TableFunction,
    UnionAll,
    Values,
    inputs_below,
)


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
    """The names given so far.

    What reads a relation finds its renamed columns by their places: two relations may have columns of one name, if
    nothing reads both. So have the rows of a query, and the copy of them that is the domain of a subquery.
    """

    aliases: Aliases = field(default_factory=Aliases)

    def inputs(self, relations: Iterable[Relation]) -> tuple[Relation, ...]:
        return tuple(map(self.relation, relations))

    def relation(self, relation: Relation) -> Relation:
        match relation:
            case Scan(collection, alias, columns):
                own = self.aliases.fresh(collection)
                bare = [column.name[len(alias) + 1 :] for column in columns]
                return Scan(collection, own, _named(columns, own, bare))
            case Values(_, columns, rows):
                own = self.aliases.fresh("values")
                return Values(own, _named(columns, own, _numbered(columns)), rows)
            case UnionAll(inputs, columns):
                arms = self.inputs(inputs)
                return UnionAll(arms, _named(columns, self.aliases.fresh("union"), _union_names(arms)))
        now = self.inputs(inputs_below(relation))
        pairs = (zip(old.columns, new.columns, strict=True)
                 for old, new in zip(inputs_below(relation), now, strict=True))  # fmt: skip
        known: dict[str, Expr] = {old.name: new for old, new in chain.from_iterable(pairs)}
        match relation:
            case Join():
                return Join(now)
            case TableFunction(_, function, _, args, outputs, ordinality, calls):
                own, args = self.aliases.fresh(function), _exprs(args, known)
                made = _named(outputs, own, _numbered(outputs))
                last = _named((ordinality,), own, ("ordinality",))[0] if ordinality else None
                return TableFunction(now[0], function, own, args, made, last, calls)
            case Filter(_, predicate):
                return Filter(now[0], substitute(predicate, known))
            case Project(_, items):
                exprs = _exprs((expr for _, expr in items), known)
                shown = [column for column, _ in items]
                named = _named(shown, self.aliases.fresh("project"), _names_of(exprs))
                return Project(now[0], tuple(zip(named, exprs, strict=True)))
            case Outer(_, _, on, full):
                return Outer(now[0], now[1], substitute(on, known), full)
            case Semi(_, _, on, anti):
                return Semi(now[0], now[1], substitute(on, known), anti)
            case _:
                raise ValueError(f"{type(relation).__name__} is not a part of a join")  # it is cut out


def _exprs(exprs: Iterable[Expr], known: Mapping[str, Expr]) -> tuple[Expr, ...]:
    return tuple(substitute(expr, known) for expr in exprs)


def _named(columns: Sequence[Column], alias: str, names: Iterable[str]) -> tuple[Column, ...]:
    return tuple(replace(column, name=f"{alias}.{name}") for column, name in zip(columns, names, strict=True))


def _numbered(columns: Sequence[Column]) -> list[str]:
    return [f"column{number}" for number in range(1, len(columns) + 1)]
