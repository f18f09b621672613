"""Queries: what a condition on a column says of the columns that are equal to it, in the same join.

In `FROM sold LEFT JOIN returned ON returned.year = sold.year WHERE sold.year = 2000` rows of `returned` matter in one
year only. So `returned.year = 2000`, too, may go below the groups of `returned`. The rows with other years are without
partner then, and their own condition drops them. Where an expression may fail, a row that goes might fail before with
the partner that it has lost; nothing is implied there.

An ON tells something of the looked-up side alone: its other rows have no partner. Rows of the left side stay, whatever
they are equal to. And a default row meets `IS NULL`, so that implies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from halfjoin.sql.expr import Call, Column, Expr, columns_of, conjuncts, substitute
from halfjoin.sql.functions.fallible import fallible
from halfjoin.sql.relation import Filter, Join, Outer, Relation, Semi

_Pair: TypeAlias = tuple[Column, Column]  # what is true of the first is true of the second


def implied(relation: Filter, told: Iterable[Expr]) -> Iterator[Expr]:
    """The conditions on other columns of a join that follow from conditions on single columns, `told`, of the same
    filter."""
    tests = [(one, frozenset[str]()) for one in conjuncts(relation.predicate)] + [*_tests(relation.input)]
    if any(fallible(one) for one, _ in tests):
        return
    pairs = [pair for one, looked_up in tests for pair in _pairs(one, looked_up)]
    for condition in told:
        if isinstance(condition, Call) and condition.function == "is null":
            continue
        (name,) = columns_of(condition)
        reached, due = {name}, [name]
        while due:
            here = due.pop()
            for first, second in pairs:
                if first.name == here and second.name not in reached:
                    reached.add(second.name)
                    due.append(second.name)
                    yield substitute(condition, {name: second})


def _tests(relation: Relation) -> Iterator[tuple[Expr, frozenset[str]]]:
    """The conditions of a join and of those in it; for those of an ON, with the columns of the looked-up side."""
    match relation:
        case Filter(input, predicate):
            yield from ((one, frozenset[str]()) for one in conjuncts(predicate))
            yield from _tests(input)
        case Outer(left, right, on, full=False) | Semi(left, right, on):
            names = frozenset(column.name for column in right.columns)
            yield from ((one, names) for one in conjuncts(on))
            yield from _tests(left)
            yield from _tests(right)
        case Join(inputs):
            for one in inputs:
                yield from _tests(one)


def _pairs(test: Expr, looked_up: frozenset[str]) -> Iterator[_Pair]:
    """The columns that a condition makes equal."""
    match test:
        case Call("=", (Column() as first, Column() as second)) if first.type == second.type:
            for ours, theirs in ((first, second), (second, first)):
                if not looked_up or (theirs.name in looked_up and ours.name not in looked_up):
                    yield ours, theirs
