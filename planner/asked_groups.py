"""Queries: rows that are joined to groups, or to a join, by their keys tell which groups and rows are asked for.

In `SELECT (SELECT count(*) FROM line WHERE line.o = orders.k) FROM orders WHERE orders.k = 5` and in a join with a view
that has GROUP BY, only the groups of few keys can have a partner. So the input of the groups is joined with the rows
that have these keys, as by `line.o IN (SELECT k FROM orders WHERE k = 5)`, and `planner.known` looks them up. The other
groups are not made. Where the keys are many, they are all made, as in a view. So it is with the rows of a join in a
subquery: `EXISTS (SELECT 1 FROM line JOIN part ON ... WHERE line.o = orders.k)`. The rows that ask may also be those of
a join, if they are few (`planner.asking_joins`).

Nothing may fail in the groups or in the rows that ask (as in `planner.below_groups`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import is_not

from halfjoin.planner.asking_joins import few_that_ask
from halfjoin.planner.below_groups import Checked, compares, in_join, is_safe, lowered
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.rules.find_equalities import comparable
from halfjoin.planner.rules.sides import Side, side_of
from halfjoin.sql.bind.domain import supplier
from halfjoin.sql.expr import Call, Column, Expr, columns_of, conjunction, conjuncts, substitute
from halfjoin.sql.functions import resolve
from halfjoin.sql.relation import Filter, Join, Outer, Project, Relation, Scan, Semi, every_part, with_inputs

Few = Callable[[Side], bool]  # whether its conditions tell the keys of few rows


def asked_groups(
    relation: Relation, checked: Checked, few: Few, estimates: Estimates, above: Sequence[Expr] = ()
) -> Relation:  # fmt: skip
    """The same query without groups that nothing asks for. `above`: conditions that each of the rows must meet."""

    def below(relation: Relation, above: Iterable[Expr] = ()) -> Relation:
        names = {column.name for column in relation.columns}
        return asked_groups(relation, checked, few, estimates, [one for one in above if columns_of(one) <= names])

    match relation:
        case Filter(_, predicate):
            return with_inputs(relation, lambda one: below(one, (*above, *conjuncts(predicate))))
        case Project(_, items):
            named = {column.name: expr for column, expr in items if isinstance(expr, Column)}
            meant = [substitute(one, named) for one in above if columns_of(one) <= named.keys()]
            return with_inputs(relation, lambda one: below(one, meant))
        case Outer(left, right, on, full=False):
            made, groups = below(left, above), below(right)
            groups = _asked(groups, [left], conjuncts(on), above, checked, few, estimates, joined=True)
            return relation if made is left and groups is right else replace(relation, left=made, right=groups)
        case Semi(left, right, on):
            made, groups = below(left, above), below(right)
            groups = _asked(groups, [left], conjuncts(on), above, checked, few, estimates, joined=True)
            return relation if made is left and groups is right else replace(relation, input=made, other=groups)
        case Join(inputs):
            others = [[other for other in inputs if other is not one] for one in inputs]
            now = tuple(_asked(below(one, above), rest, above, above, checked, few, estimates)
                        for one, rest in zip(inputs, others, strict=True))  # fmt: skip
            return Join(now) if any(map(is_not, now, inputs)) else relation
        case _:
            return with_inputs(relation, below)


def _asked(
    relation: Relation, others: Sequence[Relation], equalities: Iterable[Expr], above: Sequence[Expr], checked: Checked,
    few: Few, estimates: Estimates, *, joined: bool = False,
) -> Relation:  # fmt: skip
    """The relation without groups that have no partner in one of the others, to which the equalities join it. `joined`:
    nor are there joined rows that have none."""
    left = {column.name for column in relation.columns}  # columns whose values nothing has told
    joins = False  # whether a join has asked: one is enough
    for equality in equalities:
        if not (isinstance(equality, Call) and equality.function in ("=", "is not distinct from")):
            continue
        for theirs, ours in (equality.args, equality.args[::-1]):
            column, key = comparable(theirs), comparable(ours)
            if not isinstance(column, Column) or column.name not in left or not isinstance(key, Column):
                continue
            for asking in _askers(others, key, above, column.name, few, relation, None if joins else estimates):
                if not is_safe(asking, checked):
                    continue
                kept = _kept(equality.function, theirs, column.name, ours, key.name, asking)
                made = lowered(column.name, kept, relation, checked, whole=False)
                if made is None and joined and is_safe(relation, checked):
                    made = in_join(column.name, kept, relation)
                if made is not None:
                    relation, left = made, left - {column.name}
                    joins = joins or any(isinstance(part, Join) for part in every_part(asking))
                    break
    return relation


def _askers(
    others: Sequence[Relation], key: Column, above: Sequence[Expr], asked: str, few: Few, wanted: Relation,
    estimates: Estimates | None,
) -> Iterator[Relation]:  # fmt: skip
    """The rows that may ask for those of `wanted`: those of a table, or of the join of all others. None: of no join."""
    for other in others:
        found = _asking(other, key, above, asked)
        if found is not None and few(found[0]):
            yield found[1]
    if estimates is not None:
        made = few_that_ask(Filter(Join(tuple(others)), conjunction(tuple(above))), key, asked, wanted, estimates)
        yield from [] if made is None else [made]


def _asking(relation: Relation, key: Column, above: Iterable[Expr], asked: str) -> tuple[Side, Relation] | None:
    """Rows of one table that have all values of a column `key` of the relation, in their only column; None if they are
    not those of one table. Of the conditions only comparisons with constants count: they hold, or not, each time.

    No name in it is one of the relation, since both may be inputs of one join. `asked`: the column that they ask for.
    """
    if key.name not in {column.name for column in relation.columns}:
        return None
    named = {column.name for column in relation.columns}
    own = tuple(one for one in above if compares(one) and columns_of(one) <= named)
    side = side_of(supplier(Filter(relation, conjunction(own)) if own else relation, {key.name}))
    if side is None or not isinstance(side.source, Scan) or not isinstance(side.meanings[key.name], Column):
        return None
    alias, _, bare = asked.rpartition(".")
    side = replace(side, conditions=tuple(filter(compares, side.conditions))).renamed(f"={alias}#asking")
    if not side.conditions:
        return None
    column = replace(key, name=f"{alias}#asked.{bare}")  # no alias of a relation
    return side, Project(Filter(side.source, conjunction(side.conditions)), ((column, side.meanings[key.name]),))


def _kept(
    function: str, theirs: Expr, name: str, ours: Expr, key: str, asking: Relation
) -> Callable[[Relation, Expr], Relation]:  # fmt: skip
    """What leaves the rows of groups for which there is a row that asks. `theirs`, `ours`: the sides of the equality,
    over columns called `name` and `key`."""
    (column,) = asking.columns

    def restrict(relation: Relation, expr: Expr) -> Relation:
        same = resolve(function, (substitute(theirs, {name: expr}), substitute(ours, {key: column})))
        return Semi(relation, asking, same)

    return restrict
