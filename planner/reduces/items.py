"""The columns that the join below a reduce computes, and what a reduce is before its input has a name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.group_functions import OfGroups
from halfjoin.sql.expr import Column, Expr, Literal, columns_of, is_temporal
from halfjoin.sql.functions import render
from halfjoin.sql.functions.aggregates import filtered
from halfjoin.sql.relation import (
    AggregateCall,
    Project,
    Reduced,
    Relation,
    Scan,
    SortKey,
    TableFunction,
    inputs_below,
)
from halfjoin.sql.types import BOOLEAN, SqlType
from halfjoin.sql.user_aggregate import lift_of

Columns: TypeAlias = Sequence[Column]
Positions: TypeAlias = tuple[int, ...]
Args: TypeAlias = tuple[int | Expr, ...]  # the positions of columns; a constant is itself
Wanted = TypeVar("Wanted")
WORDS = {"count": "count", "bits": "bits"}  # of kinds of sums, for people; the others are sums
_STORED = re.compile(r"[ ,;{}()\n\t=.]")  # a Delta table has no such characters in the names of its columns


@dataclass(frozen=True, slots=True)
class Lowered:
    """A reduce before its input has a name.

    `input`: the relation below it. `keys`: how many of its first columns are keys. `function`, given the input's
    columns, is the function of a group. `above`, given a scan of the output, has the columns of the relation that was
    lowered. `passing`: the function needs only the changes of its input, so the input need not be kept.
    """

    input: Project
    keys: int
    function: Callable[[Columns], OfGroups]
    above: Callable[[Scan], Relation]
    passing: bool


@dataclass
class Items:
    """The columns that the join below computes; equal expressions share one."""

    input: Relation
    items: list[tuple[Column, Expr]] = field(default_factory=list)
    lifts: dict[tuple[str, tuple[Expr, ...]], TableFunction] = field(default_factory=dict)

    def lift(self, call: AggregateCall) -> tuple[Column, ...]:
        """The columns that the lift of a user's aggregate gives for each row. Equal lifts are one."""
        args = filtered(call)
        if any(map(is_temporal, args)):
            raise _temporal(args)
        wanted = call.function, args
        if wanted not in self.lifts:
            alias, nullable = f"=lift{len(self.lifts) + 1}", any(map(may_be_null, args))  # no user writes this name
            columns = tuple(Column(f"{alias}.{name}", type, nullable) for name, type in call.sums)
            self.lifts[wanted] = TableFunction(self.input, lift_of(call.function), alias, args, columns)
            self.input = self.lifts[wanted]
        return self.lifts[wanted].outputs

    def own(self, word: str, args: Iterable[Expr], others: Iterable[Column] = ()) -> str:
        """A name for a column that the reduce makes: `#max:v`. A reduce below it, whose columns it may show, has other
        names. `others`: the columns that it must differ from."""
        texts = (arg.name if isinstance(arg, Column) else render(arg) for arg in args)
        name = f"{'#' * (1 + _depth(self.input))}{word}:{_STORED.sub('_', '&'.join(texts) or '*')}"
        taken = {column.name for column in others}
        return next(one for one in (name, *(f"{name}#{n}" for n in range(2, len(taken) + 3))) if one not in taken)

    def add(self, expr: Expr) -> int:
        """The position of the column that computes an expression."""
        if is_temporal(expr):
            raise _temporal((expr,))
        for position, (_, known) in enumerate(self.items):
            if known == expr:
                return position
        return self._appended(expr)

    def _appended(self, expr: Expr) -> int:
        column = Column(f"group.{len(self.items)}", expr.type, not isinstance(expr, Column) or expr.nullable)
        self.items.append((column, expr))
        return len(self.items) - 1

    def add_all(self, exprs: Iterable[Expr]) -> Positions:
        """The positions of several expressions' columns."""
        return tuple(map(self.add, exprs))

    def args(self, exprs: Iterable[Expr]) -> Args:
        """Arguments: the positions of their columns, or themselves if they are constant."""
        return tuple(self.add(expr) if columns_of(expr) else expr for expr in exprs)

    def keys(self, exprs: Sequence[Expr]) -> tuple[int, Positions]:
        """How many distinct keys there are, and the position of each expression's column. Called first."""
        positions = self.add_all(exprs)
        return len(self.items), positions

    def project(self) -> Project:
        """The relation below the reduce. It has at least one column, as a collection needs one."""
        if not self.items:
            self._appended(Literal(True, BOOLEAN))
        return Project(self.input, tuple(self.items))


def _temporal(exprs: Sequence[Expr]) -> UnsupportedSQL:
    return UnsupportedSQL(f"{', '.join(map(render, exprs))} reads mz_now() in an aggregate, a window or an order",
                          remedy="compare mz_now() in WHERE")  # fmt: skip


def _depth(relation: Relation) -> int:
    """How many reduces lie on each other in a relation, at most."""
    below = max(map(_depth, inputs_below(relation)), default=0)
    return below + isinstance(relation, Reduced)


@dataclass(frozen=True, slots=True)
class Order:
    """Sort keys by the positions of their columns."""

    keys: tuple[tuple[int, SortKey], ...]

    @staticmethod
    def of(order: Sequence[SortKey], items: Items) -> Order:
        """An order, whose expressions become columns."""
        return Order(tuple((items.add(key.expr), key) for key in order))

    def over(self, columns: Columns) -> tuple[SortKey, ...]:
        """The order over the columns of the reduce's input."""
        return tuple(replace(key, expr=columns[position]) for position, key in self.keys)


def over(columns: Columns, args: Args) -> tuple[Expr, ...]:
    """Arguments over the columns of the reduce's input."""
    return tuple(columns[arg] if isinstance(arg, int) else arg for arg in args)


def may_be_null(expr: Expr) -> bool:
    """Whether an expression may be NULL, as far as its form tells."""
    return expr.nullable if isinstance(expr, Column) else not isinstance(expr, Literal) or expr.value is None


def place(known: dict[Wanted, SqlType], wanted: Wanted, type: SqlType) -> int:
    """The place of a part among those that are wanted so far."""
    known.setdefault(wanted, type)
    return list(known).index(wanted)
