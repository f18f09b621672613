"""Finds the nearest row without pairs: `WHERE r.k = t.k AND r.day <= t.day ORDER BY r.day DESC LIMIT 1`.

Such a LATERAL subquery pairs each row that asks with all earlier rows of its key, and takes the first. But the day of
the nearest row is the greatest one up to the row that asks, in the order of days: a running maximum over the days of
both. So it is one window over the rows that ask and those that answer, and the rows of that day are looked up. What is
kept is as much as both have, and a change reaches as far as the nearest row does.

Nothing may fail in what is compared, since it is computed of all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from halfjoin.planner.facts import Facts
from halfjoin.planner.reduces.unique import identified
from halfjoin.planner.rules.fold_constants import fold
from halfjoin.planner.rules.split_conjuncts import split
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.bind.reading import expressions
from halfjoin.sql.expr import (
    FLIPPED,
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    columns_of,
    conjunction,
    is_temporal,
    substitute,
)
from halfjoin.sql.functions import fallible, resolve, unify
from halfjoin.sql.functions.chance import draws
from halfjoin.sql.functions.coercion import MOMENTS
from halfjoin.sql.relation import (
    Bound,
    Filter,
    Frame,
    Join,
    Project,
    Relation,
    Semi,
    SortKey,
    TopK,
    UnionAll,
    Window,
    WindowCall,
    every_part,
    with_inputs,
)
from halfjoin.sql.types import FLOATS, INTEGER, INTEGERS, STRINGS, Kind

_ORDERED = (frozenset((*INTEGERS, *FLOATS, Kind.NUMERIC)), frozenset(MOMENTS), frozenset(STRINGS))
_KINDS = frozenset[Kind]().union(*_ORDERED, (Kind.TIME,))  # of values
_FRAME = Frame("rows", Bound("preceding"), Bound("current row"))


def with_nearest(relation: Relation, facts: Facts, aliases: Aliases, *, query: bool) -> Relation:
    """The same rows, where each top-k that finds the nearest row reads one. In a `query`, rows that ask may be told by
    their keys; these few are paired."""
    relation = with_inputs(relation, lambda one: with_nearest(one, facts, aliases, query=query))
    if not isinstance(relation, TopK) or relation.limit != 1 or relation.offset or relation.with_ties:
        return relation
    below = _below(relation.input)
    found = None if below is None else _nearest(relation, below, facts)
    if below is None or found is None or (query and any(isinstance(part, Semi) for part in every_part(found.asks))):
        return relation
    return replace(relation, input=_over(relation.input, _joined(below.join, found, aliases.fresh("nearest"))))


@dataclass(frozen=True, slots=True)
class _Below:
    """What is below a top-k: a join, the conditions above it, and what the columns of the top-k's input are."""

    join: Join
    conditions: tuple[Expr, ...]
    meanings: Mapping[str, Expr]


@dataclass(frozen=True, slots=True)
class _Nearest:
    """`asks` and `answers`: the inputs of the join. `keys`: pairs of equal expressions of both. An answer's `value` is
    compared with `bound`: the nearest is the greatest if it is `before`, and may be equal to the bound if `equal`."""

    asks: Relation
    answers: Relation
    keys: tuple[tuple[Expr, Expr], ...]
    bound: Expr
    value: Expr
    before: bool
    equal: bool


def _below(relation: Relation) -> _Below | None:
    match relation:
        case Join():
            return _Below(relation, (), {column.name: column for column in relation.columns})
        case Filter(input, predicate):
            below = _below(input)
            return below and replace(
                below, conditions=(*below.conditions, *split(fold(substitute(predicate, below.meanings)))))  # fmt: skip
        case Project(input, items):
            below = _below(input)
            return below and replace(
                below, meanings={column.name: substitute(expr, below.meanings) for column, expr in items})  # fmt: skip
        case _:
            return None


def _over(relation: Relation, join: Relation) -> Relation:
    """The relation over another join, with the same columns."""
    if isinstance(relation, Join):
        return Project(join, tuple((column, column) for column in relation.columns))
    return with_inputs(relation, lambda one: _over(one, join))


def _nearest(top: TopK, below: _Below, facts: Facts) -> _Nearest | None:
    """What a top-k asks, if it finds the nearest row."""
    partition = [below.meanings.get(expr.name) if isinstance(expr, Column) else None for expr in top.partition]
    names = [expr.name for expr in partition if isinstance(expr, Column)]
    asks = next((one for one in below.join.inputs if names and {*names} <= {c.name for c in one.columns}), None)
    if asks is None or len(names) < len(partition) or not top.order or not identified(asks, names, facts):
        return None
    others = tuple(one for one in below.join.inputs if one is not asks)
    if not others:
        return None
    mine, theirs = {c.name for c in asks.columns}, {c.name for one in others for c in one.columns}
    read = [*below.conditions, *(expr for one in others for part in every_part(one) for expr in expressions(part))]
    if any(fallible(one) or draws(one) or is_temporal(one) for one in read):
        return None
    apart = [one for one in below.conditions if columns_of(one) & mine and columns_of(one) & theirs]
    alone = tuple(one for one in below.conditions if columns_of(one) & theirs and not columns_of(one) & mine)
    keys = [found for one in apart for found in [_sides(one, ("=",), mine)] if found is not None]
    bounds = [found for one in apart for found in [_sides(one, ("<", "<=", ">", ">="), mine)] if found is not None]
    if len(bounds) != 1 or len(keys) + 1 < len(apart):
        return None
    (operator, bound, value), (first, *_) = bounds[0], top.order
    before = operator in (">", ">=")  # bound > value
    by = substitute(first.expr, below.meanings)
    if _ordering(by) != _ordering(value) or first.descending != before:
        return None
    pairs = [_alike(ours, other) for ours, other in ((bound, value), *((ours, other) for _, ours, other in keys))]
    if value.type.kind not in _KINDS or any(fallible(one) for pair in pairs for one in pair):
        return None
    answers, equal = others[0] if len(others) == 1 else Join(others), operator in ("<=", ">=")
    if alone:
        answers = Filter(answers, conjunction(alone))
    return _Nearest(asks, answers, tuple(pairs[1:]), *pairs[0], before, equal)


def _ordering(expr: Expr) -> Expr:
    """The expression without outer casts that keep the order."""
    while isinstance(expr, Cast) and any({expr.type.kind, expr.arg.type.kind} <= kinds for kinds in _ORDERED):
        expr = expr.arg
    return expr


def _alike(ours: Expr, other: Expr) -> tuple[Expr, Expr]:
    """Both sides of a comparison, as values of one type."""
    if ours.type == other.type:
        return ours, other
    ours, other = unify((ours, other))
    return ours, other


def _sides(condition: Expr, operators: Iterable[str], mine: set[str]) -> tuple[str, Expr, Expr] | None:
    """A comparison as the operator, the side of these columns, and the other side."""
    if not isinstance(condition, Call) or condition.function not in operators:
        return None
    left, right = condition.args
    if columns_of(left) <= mine and not columns_of(right) & mine:
        return condition.function, left, right
    if columns_of(right) <= mine and not columns_of(left) & mine:
        return FLIPPED[condition.function], right, left
    return None


def _joined(join: Join, found: _Nearest, alias: str) -> Relation:
    """The join of the rows that ask, with the nearest value of each, and the answers that have it."""
    kinds = (*(key for key, _ in found.keys), found.bound)
    keys = [Column(f"={alias}.key{number}", key.type) for number, key in enumerate(kinds, 1)]
    value, own = Column(f"={alias}.value", found.value.type), Column(f"={alias}.asks", INTEGER, nullable=False)
    asking = [replace(column, name=f"={alias}.column{number}", nullable=True)
              for number, column in enumerate(found.asks.columns, 1)]  # fmt: skip
    columns = (*keys, value, own, *asking)
    last = Literal(1 if found.equal else 0, INTEGER)  # of equal values the answers come first, or the rows that ask
    first = Literal(0 if found.equal else 1, INTEGER)
    of_asks = (*kinds, Literal(None, value.type), last, *found.asks.columns)
    of_answers = (*(key for _, key in found.keys), found.value, found.value, first,
                  *(Literal(None, column.type) for column in asking))  # fmt: skip
    there = Filter(found.answers, resolve("is not null", (found.value,)))
    rows = UnionAll((Project(found.asks, tuple(zip(columns, of_asks, strict=True))),
                     Project(there, tuple(zip(columns, of_answers, strict=True)))), columns)  # fmt: skip
    nearest = Column(f"={alias}.nearest", value.type)
    call = WindowCall("max" if found.before else "min", (value,), value.type, _FRAME)
    order = (SortKey(keys[-1], not found.before), SortKey(own))
    window = Window(rows, tuple(keys[:-1]), order, ((nearest, call),))
    reached = Filter(window, resolve("and", (resolve("=", (own, last)), resolve("is not null", (nearest,)))))
    asks = Project(reached, (*zip(found.asks.columns, asking, strict=True), (nearest, nearest)))
    inputs = tuple(asks if one is found.asks else one for one in join.inputs)
    return Filter(Join(inputs), resolve("=", (found.value, nearest)))
