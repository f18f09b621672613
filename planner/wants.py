"""Says which rows of an arrangement a node looks for, so that a large index may leave out all others.

A half-join drops the partners that do not meet the first conditions of its stage (`leading`). An index without these
partners gives the same result. So does an index without the rows of which a temporal filter makes nothing any more:
whatever arrives now comes after their window.

A node that asks whether keys are there wants every row, and so does a reduce.

Users of one arrangement often differ in a constant only: of `x > 5` and `x > 7` an index has the rows with `x > 5`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from halfjoin.planner.block import expressions
from halfjoin.planner.implication import all_implied, comparison, is_narrower
from halfjoin.planner.linear import Atom, Combination, Filter, Formula, Keep, Linear, Static, Step, Temporal
from halfjoin.planner.plan import ArrangementKey, InputKind, Join, Node, Stage
from halfjoin.sql.expr import Column, Expr, columns_of, rewrite
from halfjoin.sql.functions import fallible

_MOST = 8  # wants of one arrangement; to test rows for more costs more than to keep them
_COMPARED = 64  # wants; to compare each of more with each takes too long


@dataclass(frozen=True, slots=True)
class Want:
    """The rows that meet all conditions, over the collection's columns. None of them can fail for any row.

    `until`: of these only the rows for which each of the temporal formulas is true, or fails, at some time from now on.
    """

    conditions: frozenset[Expr] = frozenset()
    until: frozenset[Formula] = frozenset()
    _hash: int = field(init=False, repr=False, compare=False)  # each lookup asks for it

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.conditions, self.until)))

    def __hash__(self) -> int:
        return self._hash

    def within(self, other: Want) -> bool:
        """Whether every row that this wants is one that the other wants."""
        if not other.until <= self.until:
            return False
        return other.conditions <= self.conditions or all_implied(other.conditions, self.conditions)

    @property
    def lasting(self) -> Want:
        """The same rows, whatever the time: what somebody wants who reads history."""
        return Want(self.conditions) if self.until else self

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it reads."""
        exprs = (*self.conditions, *(expr for formula in self.until for expr in expressions(formula)))
        return frozenset[str]().union(*map(columns_of, exprs))


EVERY = Want()
Wants = frozenset[Want]
ALL: Wants = frozenset((EVERY,))


def together(wants: Iterable[Want]) -> Wants:
    """The rows that at least one of them wants, and perhaps others, in few words."""
    return _together(frozenset(wants))


@lru_cache(maxsize=64)  # a definition asks several times, also of collections that it does not change
def _together(each: Wants) -> Wants:
    if EVERY in each or not each:
        return ALL
    most = _widest(each) if len(each) <= _COMPARED else each
    return frozenset(most) if len(most) <= _MOST else frozenset((_in_common(most),))


def _widest(each: Iterable[Want]) -> list[Want]:
    """These wants without those within another."""
    found: list[Want] = []
    for one in each:
        if not any(one.within(other) for other in found):
            found = [*(other for other in found if not other.within(one)), one]
    return found


def _in_common(each: Collection[Want]) -> Want:
    """What all of them ask for: ten days of a year are between the first and the last."""
    asked = frozenset[Expr]().union(*(one.conditions for one in each))
    common, left = list[Expr](), [[(own, comparison(own)) for own in one.conditions] for one in each]
    for that in asked:
        wide = comparison(that)
        lacks = next((place for place, own in enumerate(left)
                      if not any(one == that or is_narrower(narrow, wide) for one, narrow in own)), None)  # fmt: skip
        if lacks is None:
            common.append(that)
        else:  # what does not ask for one condition most often does not ask for the next
            left.insert(0, left.pop(lacks))
    return Want(frozenset(common), frozenset.intersection(*(one.until for one in each)))


def wants(node: Node, *, lasting: bool = False) -> Mapping[ArrangementKey, Wants]:
    """What a node looks for in each arrangement that it looks up. `lasting`: also what only its past needs."""
    if not isinstance(node, Join):
        return dict.fromkeys(node.arrangements, ALL)
    found = {key: set[Want]() for key in node.arrangements}
    for path in (path for branch in node.branches for path in branch.paths):
        for stage in path.every_stage:
            want = want_of(stage)
            found[stage.half_join.arrangement].add(want.lasting if lasting or node.loops else want)
        if path.appearing is not None and path.appearing.half_join.arrangement in found:
            found[path.appearing.half_join.arrangement].add(EVERY)
    return {key: together(some) for key, some in found.items()}


def all_wants(nodes: Iterable[Node]) -> Mapping[ArrangementKey, Wants]:
    """What the nodes of a plan look for in each arrangement."""
    found: dict[ArrangementKey, list[Want]] = {}
    for node in nodes:
        for key, some in wants(node).items():
            found.setdefault(key, []).extend(some)
    return {key: together(some) for key, some in found.items()}


def want_of(stage: Stage) -> Want:
    """The rows of a stage's input that may change its result."""
    if stage.half_join.kind is not InputKind.PLAIN:
        return EVERY
    bare = {name: column for column, name in stage.half_join.fetch}

    def named(node: Expr) -> Expr:
        return replace(node, name=bare[node.name]) if isinstance(node, Column) else node

    _, asked = leading(stage.then.steps, bare.keys())
    until = (_rewritten(one, named) for one in _temporal(stage.then, frozenset(bare)))
    return Want(frozenset(rewrite(one, named) for one in asked), frozenset(until))


def leading(steps: Sequence[Step], fetched: Iterable[str]) -> tuple[list[Step], list[Expr]]:
    """The steps, and apart from them the predicates of the first filters that read only fetched columns and cannot
    fail."""
    own = frozenset(fetched)
    left: list[Step] = []
    asked: list[Expr] = []
    for number, step in enumerate(steps):
        match step:
            case Filter(predicates):
                mine = [p for p in predicates if not fallible(p) and columns_of(p) <= own]
                asked += mine
                rest = tuple(predicate for predicate in predicates if predicate not in mine)
                left += [Filter(rest)] if rest else []
            case Keep():
                left.append(step)
            case _:
                return [*left, *steps[number:]], asked
    return left, asked


def _temporal(operator: Linear, own: frozenset[str]) -> Iterator[Formula]:
    """The temporal formulas over some columns that every row must meet. A row for which one fails is not dropped from
    an index. It would be dropped here without a word: the path of its own input reports it."""
    if operator.reports is None:
        for step in operator.steps:
            if isinstance(step, Temporal):
                yield from (one for one in _conjuncts(step.formula)
                            if all(columns_of(expr) <= own for expr in expressions(one)))  # fmt: skip


def _rewritten(formula: Formula, change: Callable[[Expr], Expr]) -> Formula:
    match formula:
        case Static(expr):
            return Static(rewrite(expr, change))
        case Atom(op, bound):
            return Atom(op, rewrite(bound, change))
        case Combination(op, args):
            return Combination(op, tuple(_rewritten(arg, change) for arg in args))


def _conjuncts(formula: Formula) -> Iterator[Formula]:
    match formula:
        case Combination("and", args):
            for arg in args:
                yield from _conjuncts(arg)
        case _:
            yield formula
