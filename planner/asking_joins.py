"""Queries: the few rows of a join that ask for groups, or for rows of a subquery's join, by their keys.

In `FROM sold JOIN day ON ... JOIN shop ON ... WHERE day.d < ... AND shop.state = 'IL' AND sold.number IN (SELECT ...)`
the conditions on days and shops leave few rows, and so few numbers. Nothing tells them before the join is made. So the
join is made twice: once for the numbers that it asks for, and once with what it has asked for. This pays where it
begins with about as many rows as it saves, and leaves few of them.

The sizes are guesses. Where they are wrong, a join is made twice, and the answer is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from halfjoin.planner.estimates import Estimates, selectivity
from halfjoin.planner.linear import Filter as Test
from halfjoin.planner.linear import Linear
from halfjoin.sql.expr import Call, Column, Expr, columns_of, conjunction, conjuncts, is_temporal, substitute
from halfjoin.sql.functions.chance import draws
from halfjoin.sql.functions.fallible import fallible
from halfjoin.sql.relation import Filter, Join, Outer, Project, Relation, Scan, Semi, every_part

_SAVED = 16.0  # so many rows are there for each one that asks, at least
_LARGE = 10_000.0  # rows; to make the groups of fewer takes no time
_TWICE = 4.0  # so many more rows than it saves may the join begin with


@dataclass(frozen=True, slots=True)
class _Rows:
    """A join of tables. `meanings`: the columns of what it was found in."""

    scans: tuple[Scan, ...]
    conditions: tuple[Expr, ...]
    meanings: Mapping[str, Expr]


def few_that_ask(
    relation: Relation, key: Column, asked: str, wanted: Relation, estimates: Estimates
) -> Relation | None:  # fmt: skip
    """Rows that have all values of a column `key` of the relation, in their only column; None if they are not those of
    a join of tables, or not few beside those of `wanted`. `asked`: the column that they ask for."""
    found = _rows(relation)
    if found is None or not isinstance(meaning := found.meanings.get(key.name), Column):
        return None
    found = _without_idle(found, meaning)
    saved = max((estimates.rows(one.collection) for one in every_part(wanted) if isinstance(one, Scan)), default=0.0)
    many = _about(found, estimates)
    largest = max(estimates.rows(one.collection) for one in found.scans)
    if len(found.scans) < 2 or many is None or saved < max(_LARGE, _SAVED * many) or largest > _TWICE * saved:
        return None
    alias, _, bare = asked.rpartition(".")
    column = replace(key, name=f"{alias}#asked.{bare}")  # no alias of a relation
    return Project(Filter(Join(found.scans), conjunction(found.conditions)), ((column, meaning),))


def _rows(relation: Relation) -> _Rows | None:
    """The tables of a join, with the conditions on them that cannot fail: it has no row that these do not give."""
    match relation:
        case Scan(columns=columns):
            return _Rows((relation,), (), {column.name: column for column in columns})
        case Project(input, items):
            made = _rows(input)
            return None if made is None else replace(made, meanings={
                column.name: made.meanings[expr.name] for column, expr in items
                if isinstance(expr, Column) and expr.name in made.meanings})  # fmt: skip
        case Filter(input, predicate):
            made = _rows(input)
            return None if made is None else replace(made, conditions=(*made.conditions, *(
                substitute(one, made.meanings) for one in conjuncts(predicate)
                if columns_of(one) <= made.meanings.keys() and not (fallible(one) or is_temporal(one) or draws(one)))))
        case Semi(input) | Outer(input, full=False):
            return _rows(input)
        case Join(inputs):
            parts = [part for part in map(_rows, inputs) if part is not None]
            return None if not parts else _Rows(
                tuple(scan for part in parts for scan in part.scans),
                tuple(one for part in parts for one in part.conditions),
                {name: expr for part in parts for name, expr in part.meanings.items()})  # fmt: skip
        case _:
            return None


def _without_idle(rows: _Rows, key: Column) -> _Rows:
    """The same without tables that no condition but one equality concerns, since they drop few rows."""
    for scan in rows.scans:
        names = {column.name for column in scan.columns}
        about = [one for one in rows.conditions if columns_of(one) & names]
        if key.name not in names and (not about or (len(about) == 1 and not columns_of(about[0]) <= names)):
            return _without_idle(replace(rows, scans=tuple(one for one in rows.scans if one is not scan),
                                         conditions=tuple(one for one in rows.conditions if one not in about)), key)
    return rows


def _about(rows: _Rows, estimates: Estimates) -> float | None:
    """About how many rows they are; None where a table is not looked up by a unique key, who knows then."""
    first = max(rows.scans, key=lambda scan: (estimates.rows(scan.collection), scan.alias))
    if not all(_is_looked_up(scan, rows.conditions, estimates) for scan in rows.scans if scan is not first):
        return None
    return estimates.rows(first.collection) * prod(_share(scan, rows.conditions, estimates) for scan in rows.scans)


def _is_looked_up(scan: Scan, conditions: Sequence[Expr], estimates: Estimates) -> bool:
    names = {column.name: column.name[len(scan.alias) + 1 :] for column in scan.columns}
    equal = frozenset(names[side.name] for one in conditions if isinstance(one, Call) and one.function == "="
                      and not columns_of(one) <= names.keys()
                      for side in one.args if isinstance(side, Column) and side.name in names)  # fmt: skip
    return any(key <= equal for key in estimates.unique_keys(scan.collection))


def _share(scan: Scan, conditions: Sequence[Expr], estimates: Estimates) -> float:
    """The share of a table's rows that the conditions on it alone let through."""
    names = {column.name: (scan.collection, column.name[len(scan.alias) + 1 :]) for column in scan.columns}
    own = tuple(one for one in conditions if columns_of(one) and columns_of(one) <= names.keys())
    return selectivity(Linear((Test(own),)), estimates.values(names)) if own else 1.0
