"""Bound scalar expressions: a closed set of immutable nodes, each with its SQL type."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import is_not
from typing import TypeAlias

from halfjoin.sql.types import BOOLEAN, MZ_TIMESTAMP, SqlType
from halfjoin.sql.unseen import is_unseen

Comparison: TypeAlias = typing.Literal["=", "<>", "<", "<=", ">", ">="]
# `a < b` is `b > a`: the other way round of each comparison.
FLIPPED: Mapping[str, Comparison] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Column:
    """A column; its name is unique within the view: `alias.column`, or the bare name within one collection."""

    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `value` is the Python value for its type (None for NULL).

    Values are int, float, bool, str, bytes, Decimal, date, time, datetime (UTC for timestamptz), list, for
    interval the triple (months, days, microseconds), and `calendar.Far` for what Python has no date for.
    """

    value: object
    type: SqlType

    def __hash__(self) -> int:
        return hash((repr(self.value), self.type))

    def __eq__(self, other: object) -> bool:  # 1, 1.0 and True are different literals, as are 1.0 and 1.00
        if not isinstance(other, Literal) or type(self.value) is not type(other.value):
            return False
        if not is_unseen(self.value) and isinstance(self.value, (int, str)):
            return self.value == other.value and self.type == other.type
        return repr(self.value) == repr(other.value) and self.type == other.type


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function or operator of the function table; the arguments have exactly the types it declares.

    Special forms are calls too: `and`, `or` (any number of arguments), `not`, `case` (condition, value, ...,
    default), `coalesce`, `in` (value, then literals), `is null`, `is distinct from`, ...
    """

    function: str
    args: tuple[Expr, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class Cast:
    """`arg::type`, explicit in the text or implicit."""

    arg: Expr
    type: SqlType


@dataclass(frozen=True, slots=True)
class Now:
    """`mz_now()`: the time at which the view is read. Only a temporal filter may contain it."""

    type: SqlType = MZ_TIMESTAMP


Expr: TypeAlias = Column | Literal | Call | Cast | Now

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands."""
    match expr:
        case Call(args=args):
            return args
        case Cast(arg=arg):
            return (arg,)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all its subexpressions, parents first."""
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Call):
            waiting.extend(reversed(node.args))
        elif isinstance(node, Cast):
            waiting.append(node.arg)


def depth_of(expr: Expr) -> int:
    """The levels of calls and casts; none of a column or a literal."""
    depth, level = 0, [expr]
    while level := [child for node in level for child in children(node)]:
        depth += 1
    return depth


def columns_of(expr: Expr) -> frozenset[str]:
    """The names of the columns that the expression reads."""
    if isinstance(expr, Column):  # as most that the planner asks about
        return frozenset((expr.name,))
    return frozenset(node.name for node in walk(expr) if isinstance(node, Column))


def is_temporal(expr: Expr) -> bool:
    """Whether the expression contains mz_now()."""
    return any(isinstance(node, Now) for node in walk(expr))


def rewrite(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Apply `change` to every node, children first. What it leaves as it is is not copied."""
    if isinstance(expr, Call):
        args = tuple([rewrite(arg, change) for arg in expr.args])
        if any(map(is_not, args, expr.args)):
            expr = replace(expr, args=args)
    elif isinstance(expr, Cast):
        arg = rewrite(expr.arg, change)
        if arg is not expr.arg:
            expr = replace(expr, arg=arg)
    return change(expr)


def substitute(expr: Expr, mapping: Mapping[str, Expr]) -> Expr:
    """Replace columns by name; columns that are not in `mapping` stay."""
    return rewrite(expr, lambda node: mapping.get(node.name, node) if isinstance(node, Column) else node)


def replaced(expr: Expr, by: Mapping[Expr, Expr]) -> Expr:
    """Replace whole subexpressions, the largest first. Literals stay."""
    if not isinstance(expr, Literal) and expr in by:
        return by[expr]
    match expr:
        case Call(args=args):
            return replace(expr, args=tuple(replaced(arg, by) for arg in args))
        case Cast(arg=arg):
            return replace(expr, arg=replaced(arg, by))
    return expr


def conjuncts(expr: Expr) -> Iterator[Expr]:
    """The operands of a chain of AND; none for TRUE."""
    if isinstance(expr, Call) and expr.function == "and":
        for arg in expr.args:
            yield from conjuncts(arg)
    elif expr != TRUE:
        yield expr


def conjunction(parts: tuple[Expr, ...]) -> Expr:
    """The parts joined by AND; TRUE if there are no parts."""
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else Call("and", parts, BOOLEAN)
