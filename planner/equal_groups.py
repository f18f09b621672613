"""Queries: groups that a join reads several times are made once, so what is asked of all of them goes below them.

In `WITH y AS (SELECT k, year, sum(x) AS x FROM t GROUP BY k, year) SELECT ... FROM y a JOIN y b USING (k) WHERE
a.year = 2001 AND b.year = 2002` both inputs are the same groups, and only those of two years are asked for. So
`year IN (2001, 2002)` goes below the groups of both: they stay equal, and each input still has its own condition above
them. A column that one of the inputs has no condition on tells nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from halfjoin.planner.nameless import nameless
from halfjoin.sql.expr import Call, Column, Expr, columns_of, conjunction, substitute
from halfjoin.sql.functions.resolve import resolve
from halfjoin.sql.relation import Filter, Join, Outer, Reduced, Relation, Scan, Semi, every_part


def equals(relation: Relation) -> tuple[tuple[Relation, ...], ...]:
    """The inputs of a join that have groups, each with those that differ from it in names only; not those without."""
    alike = defaultdict[object, list[Relation]](list)
    for one in _inputs(relation):
        parts = list(every_part(one))
        if any(isinstance(part, Reduced) for part in parts):
            alike[_shape(parts)].append(one)
    found = defaultdict[object, list[Relation]](list)
    for one in chain.from_iterable(inputs for inputs in alike.values() if len(inputs) > 1):
        found[nameless(one)].append(one)  # takes long of a large relation
    return tuple(tuple(same) for same in found.values() if len(same) > 1)


def _shape(parts: Iterable[Relation]) -> object:
    """What relations of equal parts have in common, and is quickly compared."""
    return tuple((type(part), part.collection if isinstance(part, Scan) else len(part.columns)) for part in parts)


def _inputs(relation: Relation) -> Iterator[Relation]:
    match relation:
        case Join(inputs):
            for one in inputs:
                yield from _inputs(one)
        case Filter(input):
            yield from _inputs(input)
        case Outer(left, right):
            yield from _inputs(left)
            yield from _inputs(right)
        case Semi(input, other):
            yield from _inputs(input)
            yield from _inputs(other)
        case _:
            yield relation


def asked_of_all(same: Sequence[Relation], conditions: Iterable[Expr]) -> Iterator[list[Expr]]:
    """What is true of all rows of equal inputs that conditions on single columns leave: for a column of the first input
    and those in its place in the others, a condition on each."""
    by_column = defaultdict[str, list[Expr]](list)
    for condition in conditions:
        (name,) = columns_of(condition)
        by_column[name].append(condition)
    for columns in zip(*(one.columns for one in same), strict=True):
        if all(column.name in by_column for column in columns):
            yield [_any([*dict.fromkeys(
                substitute(conjunction(tuple(by_column[one.name])), {one.name: column}) for one in columns
            )]) for column in columns]  # fmt: skip


def _any(conditions: list[Expr]) -> Expr:
    """That one of the conditions is true: one list of values, if they all tell values of a column."""
    if len(conditions) == 1:
        return conditions[0]
    values = [one.args[1] for one in conditions if isinstance(one, Call) and one.function == "="
              and isinstance(one.args[0], Column)]  # fmt: skip
    if len(values) == len(conditions) and len({value.type for value in values}) == 1:
        (column,) = {one.args[0] for one in conditions if isinstance(one, Call)}
        return resolve("in", (column, *values))
    return resolve("or", conditions)
