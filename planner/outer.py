"""Brings outer and semi-joins into a form in which their right side is an input that is looked up.

- FULL is LEFT, plus the right rows without a partner.
- `a LEFT JOIN (b LEFT JOIN c)` is `(a LEFT JOIN b) LEFT JOIN c` if c's ON rejects a missing b.
- An ON that is more than equalities and conditions on one side alone, such as `a.x < b.y`, is an inner join, plus the
  left rows that have no partner. Whether a row has one depends on the columns of it that ON reads. So the distinct
  combinations of these columns in the inner join are kept, and looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.nulls import rejects
from halfjoin.planner.rules.fold_constants import fold
from halfjoin.planner.rules.sides import Side, alternatives, asked, side_of
from halfjoin.planner.rules.split_conjuncts import split
from halfjoin.sql.bind.domain import supplier
from halfjoin.sql.expr import (
    FALSE,
    TRUE,
    Column,
    Expr,
    Literal,
    columns_of,
    conjunction,
    is_temporal,
    substitute,
)
from halfjoin.sql.functions import fallible, render, resolve
from halfjoin.sql.functions.chance import draws
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Scan,
    Semi,
    UnionAll,
    Values,
    inputs_below,
    with_inputs,
)
from halfjoin.sql.types import BIGINT

_MOST_SCANS = 10_000  # that this form of joins may have beyond those that were written


def simplified(relation: Relation) -> Relation:
    """The same rows, where every ON is one that `sides.asked` takes apart without a rest.

    Raises:
        UnsupportedSQL: mz_now() is in an ON, and not in a condition on the looked-up side alone; or it becomes too
            large. FULL, NOT IN and other conditions in ON read one of their sides several times, so each of them over
            another one doubles it at least.
    """
    made = _simplified(relation)
    if made is not relation and _scans(made, {}) > _scans(relation, {}) + _MOST_SCANS:
        raise UnsupportedSQL(
            "FULL JOINs, NOT INs, or outer joins with more than equalities in ON, over one another read more than "
            f"{_MOST_SCANS:,} tables, counting each use",
            remedy="make a part of them a materialized view of its own",
        )
    return made


def _simplified(relation: Relation) -> Relation:
    match below := with_inputs(relation, _simplified):
        case Outer():
            return _outer(below)
        case Semi():
            return _semi(below)
        case _:
            return below


def _scans(relation: Relation, known: dict[int, int]) -> int:
    """How many scans a relation has. Each part is counted once, and known by its `id`, however often it is used."""
    if id(relation) not in known:
        below = inputs_below(relation)
        known[id(relation)] = sum(_scans(one, known) for one in below) if below else 1
    return known[id(relation)]


def _outer(join: Outer) -> Relation:
    left, right, on = join.left, join.right, join.on
    if join.full:
        rows = _outer(Outer(left, right, on))
        lonely = _semi(Semi(right, left, on, anti=True))
        return UnionAll((rows, _shown(lonely, join.columns)), join.columns)
    if (row := _constant_row(right)) is not None:
        there, values = row
        matched = resolve("is true", (substitute(resolve("and", (there, on)), values),))
        items = [(c, resolve("case", (matched, values[c.name], Literal(None, c.type)))) for c in right.columns]
        return Project(left, (*((column, column) for column in left.columns), *items))
    if isinstance(right, Outer) and not right.full and _can_regroup(on, right):
        return _outer(Outer(_outer(Outer(left, right.left, on)), right.right, right.on))
    on, right = _narrowed(on, right)
    if not _rest(on, right):
        return Outer(left, right, on)
    both = Filter(Join((left, right)), on)
    lonely = Semi(left, *_matched(left, right, on), anti=True)
    return UnionAll((_shown(both, join.columns), _shown(lonely, join.columns)), join.columns)


def _semi(semi: Semi) -> Relation:
    if (row := _constant_row(semi.other)) is not None:
        there, values = row
        matched = substitute(resolve("and", (there, semi.on)), values)
        return Filter(semi.input, resolve("is not true" if semi.anti else "is true", (matched,)))
    on, other = _narrowed(substitute(semi.on, _constants(semi.other)), semi.other)
    choices = alternatives(on) if semi.anti else [on]
    if choices is None or any(_rest(choice, other) for choice in choices):
        return Semi(semi.input, *_matched(semi.input, other, on), semi.anti)
    if any(asked(choice, _stored(other)).matches for choice in choices):
        return _without_scans(semi.input, other, on, choices) if semi.anti else replace(semi, other=other, on=on)
    return Semi(semi.input, _counted(other, "any"), _own(on, other), semi.anti)


def _without_scans(input: Relation, other: Relation, on: Expr, choices: Sequence[Expr]) -> Relation:
    """An anti-join that asks several questions. Those without a key, as of `x NOT IN (SELECT y ...)`, ask whether there
    is any row, or a row with a NULL: a count of them is kept, so that they need not be counted again and again."""
    keyed = [choice for choice in choices if asked(choice, _stored(other)).matches]
    if len(keyed) == len(choices) or len(keyed) > 1:
        return Semi(input, other, on, anti=True)
    found = Semi(input, other, keyed[0], anti=True)
    for number, choice in enumerate(one for one in choices if one is not keyed[0]):
        own, rows = _narrowed(choice, other)
        found = Semi(found, _counted(rows, f"any{number}"), _own(own, other), anti=True)
    return found


def _own(on: Expr, other: Relation) -> Expr:
    """An ON that reads no more of the other side than constants, without its columns."""
    return conjunction(asked(on, _stored(other)).own)


def _counted(relation: Relation, name: str) -> Relation:
    """One row if the relation has rows, none if it has none."""
    alias = f"{relation.columns[0].name.rpartition('.')[0]}#{name}" if relation.columns else name
    count = Column(f"{alias}.count", BIGINT, nullable=False)
    rows = Aggregate(relation, (), ((count, AggregateCall("count", (), BIGINT)),))
    return Filter(rows, resolve(">", (count, Literal(0, BIGINT))))


def _constants(relation: Relation) -> dict[str, Expr]:
    """The columns that have the same value in all rows."""
    match relation:
        case Filter(input):
            return _constants(input)
        case Project(_, items) | Aggregate(_, items):
            below = _constants(relation.input)
            shown = ((column, substitute(expr, below)) for column, expr in items)
            return {column.name: expr for column, expr in shown
                    if not (columns_of(expr) or fallible(expr) or draws(expr))}  # fmt: skip
        case _:
            return {}


def _constant_row(relation: Relation) -> tuple[Expr, Mapping[str, Expr]] | None:
    """A relation of at most one constant row: whether it is there, and its values; None for others."""
    match relation:
        case Values(_, columns, rows) if len(rows) < 2:
            row = rows[0] if rows else tuple(Literal(None, column.type) for column in columns)
            return TRUE if rows else FALSE, {column.name: value for column, value in zip(columns, row, strict=True)}
        case Filter(input, predicate):
            if is_temporal(predicate) or (below := _constant_row(input)) is None:
                return None
            return resolve("and", (below[0], substitute(predicate, below[1]))), below[1]
        case Project(input, items):
            below = None if any(draws(expr) for _, expr in items) else _constant_row(input)
            return below and (below[0], {column.name: substitute(expr, below[1]) for column, expr in items})
        case _:
            return None


def _can_regroup(on: Expr, right: Outer) -> bool:
    """Whether `on` reads only the left side of `right`, whose own ON rejects a row of NULLs there."""
    names = frozenset(column.name for column in right.left.columns)
    others = {column.name for column in right.right.columns}
    return not columns_of(on) & others and rejects(right.on, names)


def _narrowed(on: Expr, side: Relation) -> tuple[Expr, Relation]:
    """ON without the conditions on the looked-up side alone, and that side with them."""
    names = {column.name for column in side.columns}
    parts = [part for part in split(fold(on)) if part != TRUE]
    alone = [part for part in parts if columns_of(part) and columns_of(part) <= names]
    rest = conjunction(tuple(part for part in parts if part not in alone))
    return rest, Filter(side, conjunction(tuple(alone))) if alone else side


def _rest(on: Expr, side: Relation) -> tuple[Expr, ...]:
    """The conditions of ON for which the side cannot be looked up."""
    found = asked(on, _stored(side)).rest
    for condition in found:
        if is_temporal(condition):
            raise UnsupportedSQL(
                f"{render(condition)} in the condition of an outer or semi-join is not maintained",
                remedy="write mz_now() in WHERE, or in a subquery in FROM",
            )
    return found


def _stored(side: Relation) -> Side:
    """The side as it is, or as it will be once it is a node."""
    return side_of(side) or Side(Scan("", "", side.columns), (), {column.name: column for column in side.columns})


def _matched(left: Relation, right: Relation, on: Expr) -> tuple[Relation, Expr]:
    """The combinations of left values that have a partner, and the condition that a left row's are among them."""
    names = columns_of(on)
    read = [column for column in left.columns if column.name in names]
    alias = f"{right.columns[0].name.rpartition('.')[0]}#on" if right.columns else "on"
    keys = [Column(f"{alias}.column{n}", column.type, column.nullable) for n, column in enumerate(read, 1)]
    pairs = Filter(Join((supplier(left, {column.name for column in read}), right)), on)
    found = Aggregate(pairs, tuple(zip(keys, read, strict=True)))
    same = (resolve("is not distinct from", pair) for pair in zip(read, keys, strict=True))
    return found, conjunction(tuple(same))


def _shown(relation: Relation, columns: Iterable[Column]) -> Project:
    """The relation with these columns; NULLs for those that it does not have."""
    there = {column.name: column for column in relation.columns}
    return Project(relation, tuple((c, there.get(c.name, Literal(None, c.type))) for c in columns))


