"""Plans `row_number() OVER (...) AS n ... WHERE n <= k` as the first k rows of each partition.

A top-k keeps up with a change near the front of a partition, whatever is behind it. The rows past the k-th are not
numbered. `rank() <= k` is a top-k with the rows that tie with the last one. If nothing but the condition reads the
number, it is not computed at all, and if only the first rows are there, it is 1; otherwise the first rows alone are
numbered, which gives them the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from halfjoin.sql.expr import Call, Column, Expr, Literal, columns_of, conjunction, conjuncts
from halfjoin.sql.relation import (
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Semi,
    TableFunction,
    TopK,
    Window,
    inputs_below,
    with_inputs,
)

_WITH_TIES = {"row_number": False, "rank": True}
_NUMBERS = ("row_number", "rank", "dense_rank")  # each depends on the rows before it only
_MIRRORED = {">=": "<=", ">": "<", "=": "="}


@dataclass(frozen=True)
class _Above:
    """What the operators above a relation do with its columns: they want rows where some are at most a number.

    `read`: the columns that they read in any other way. The others may go, if the conditions then hold for all rows.
    """

    most: dict[str, int]
    read: frozenset[str]

    def of(self, item: Relation, *reads: Expr) -> _Above:
        """The same for an input, below an operator that reads the expressions."""
        names = frozenset(column.name for column in item.columns)
        return _Above({name: most for name, most in self.most.items() if name in names},
                      names & self.read.union(*map(columns_of, reads)))


def first_rows(relation: Relation) -> Relation:
    """The relation with top-ks below or in place of the numbers that are compared with constants; it has the same
    rows and columns."""
    return _planned(relation, _Above({}, frozenset(column.name for column in relation.columns)))


def _planned(relation: Relation, above: _Above) -> Relation:
    match relation:
        case Filter(input=item, predicate=predicate):
            return _filtered(item, predicate, above)
        case Project(input=item, items=items):
            return _projected(item, items, above)
        case Window():
            return _numbered(relation, above)
        case Join(inputs=inputs):
            return Join(tuple(_planned(item, above.of(item)) for item in inputs))
        case TableFunction(input=item, args=args):
            return replace(relation, input=_planned(item, above.of(item, *args)))
        case Semi(input=item, other=other, on=on):
            return replace(relation, input=_planned(item, above.of(item, on)), other=first_rows(other))
        case Outer(left=left, right=right, on=on, full=False):
            return replace(relation, left=_planned(left, above.of(left, on)), right=first_rows(right))
        case _:
            return with_inputs(relation, first_rows)


def _filtered(item: Relation, predicate: Expr, above: _Above) -> Relation:
    """A filter without the conditions that a top-k below it makes true."""
    most, others, numbered = dict(above.most), [], _has_numbers(item)
    for part in conjuncts(predicate):
        found = _at_most(part) if numbered else None
        if found is not None:
            most[found.name] = min(found.most, most.get(found.name, found.most))
        if found is None or not found.whole:
            others.append(part)
    inner = _planned(item, _Above(most, above.read).of(item, *others))
    gone = _gone(item, inner)
    left = tuple(part for part in conjuncts(predicate) if gone.isdisjoint(columns_of(part)))
    return Filter(inner, conjunction(left)) if left else inner


def _has_numbers(relation: Relation) -> bool:
    """Whether there is something to be planned: otherwise no condition is looked at."""
    return isinstance(relation, Window) or any(map(_has_numbers, inputs_below(relation)))


class _AtMost(NamedTuple):
    """A condition that a column is at most a number. `whole`: it says no more than that of a number from 1."""

    name: str
    most: int
    whole: bool


def _at_most(part: Expr) -> _AtMost | None:
    """What a condition says, if it says that a column is at most a number."""
    if not isinstance(part, Call) or len(part.args) != 2:
        return None
    (left, right), operator = part.args, part.function
    if isinstance(left, Literal):
        left, right, operator = right, left, _MIRRORED.get(operator, "")
    if operator not in ("<=", "<", "=") or not isinstance(left, Column) or not isinstance(right, Literal):
        return None
    if not isinstance(right.value, int) or isinstance(right.value, bool):
        return None
    most = right.value - (operator == "<")
    return _AtMost(left.name, most, operator != "=" or most == 1)


def _projected(item: Relation, items: tuple[tuple[Column, Expr], ...], above: _Above) -> Relation:
    """A projection without the numbers that a top-k below it has made unnecessary."""
    most: dict[str, int] = {}
    reads = []
    for column, expr in items:
        if isinstance(expr, Column) and column.name in above.most:
            most[expr.name] = min(above.most[column.name], most.get(expr.name, above.most[column.name]))
            if column.name not in above.read:
                continue
        reads.append(expr)
    inner = _planned(item, _Above(most, frozenset()).of(item, *reads))
    gone = _gone(item, inner)
    return Project(inner, tuple((column, expr) for column, expr in items if gone.isdisjoint(columns_of(expr))))


def _gone(before: Relation, after: Relation) -> set[str]:
    return {column.name for column in before.columns} - {column.name for column in after.columns}


def _numbered(window: Window, above: _Above) -> Relation:
    """The first rows, with the numbers that are read."""
    inner = first_rows(window.input)
    ranks = {column.name: call.function for column, call in window.calls if call.function in _WITH_TIES}
    limits = [(most, name) for name, most in above.most.items() if name in ranks and most > 0]
    if not limits or any(call.function not in _NUMBERS for _, call in window.calls):
        return replace(window, input=inner)
    most, name = min(limits)
    top = TopK(inner, window.partition, window.order, most, with_ties=_WITH_TIES[ranks[name]])
    calls = [(column, call) for column, call in window.calls if column.name != name or name in above.read]
    ones = [column for column, call in calls if most == 1 and not (top.with_ties and call.function == "row_number")]
    left = tuple((column, call) for column, call in calls if column not in ones)
    numbered = Window(top, window.partition, window.order, left) if left else top
    if not ones:
        return numbered
    shown = (*top.columns, *(column for column, _ in calls))
    return Project(numbered, tuple((c, Literal(1, c.type) if c in ones else c) for c in shown))
