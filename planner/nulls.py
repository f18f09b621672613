"""What a condition can be, true, false or NULL, if certain columns are NULL, as in the default row of an outer join.

A condition above an outer join that can never be true for a default row makes the join inner. One that can be true
leaves it an outer join. `coalesce(b.x, 0) = 0` can; `b.x = 0` and `b.x = 0 AND a.y = 1` cannot.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import reduce
from typing import TypeAlias

from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal
from halfjoin.sql.types import Kind

Outcomes: TypeAlias = frozenset[bool | None]  # a value that is not boolean counts as true or false

_NULL: Outcomes = frozenset((None,))
_ANY: Outcomes = frozenset((True, False, None))
_SOME: Outcomes = frozenset((True, False))
_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))
# Functions that are NULL if an argument is. `||` is not one for arrays.
_STRICT = _COMPARISONS | frozenset((
    "+", "-", "*", "/", "%", "neg", "^", "||", "abs", "round", "floor", "ceil", "sign", "sqrt", "power", "exp", "ln",
    "like", "ilike", "~", "~*", "!~", "!~*", "lower", "upper", "length", "btrim", "ltrim", "rtrim", "left", "right",
    "substring", "strpos", "replace", "starts_with", "extract", "date_trunc",
))  # fmt: skip
_TESTS: dict[str, tuple[bool | None, bool]] = {  # the value that is asked for, and the answer if it is there
    "is null": (None, True), "is not null": (None, False), "is true": (True, True), "is not true": (True, False),
    "is false": (False, True), "is not false": (False, False), "is unknown": (None, True),
    "is not unknown": (None, False),
}  # fmt: skip


def is_null(expr: Expr, nulls: AbstractSet[str]) -> bool:
    """Whether an expression is certainly NULL if these columns are NULL."""
    return outcomes(expr, nulls) == _NULL


def never_null(expr: Expr) -> bool:
    """Whether an expression is certainly not NULL."""
    return None not in outcomes(expr, frozenset())


def rejects(predicate: Expr, nulls: AbstractSet[str]) -> bool:
    """Whether a predicate is certainly not true if these columns are NULL."""
    return True not in outcomes(predicate, nulls)


def outcomes(expr: Expr, nulls: AbstractSet[str]) -> Outcomes:
    """What an expression can be if these columns are NULL.

    >>> from halfjoin.sql.types import INTEGER, BOOLEAN
    >>> positive = Call(">", (Column("b.x", INTEGER), Literal(0, INTEGER)), BOOLEAN)
    >>> sorted(outcomes(positive, {"b.x"}), key=str), sorted(outcomes(positive, set()), key=str)
    ([None], [False, None, True])
    """
    match expr:
        case Column(name, _, nullable):
            return _NULL if name in nulls else _ANY if nullable else _SOME
        case Literal(value):
            return frozenset((value,)) if value is None or value is True or value is False else _SOME
        case Cast(arg):
            found = outcomes(arg, nulls)
            return found if found == _NULL else _SOME | (found & _NULL)
        case Call("case", args):
            return _chosen(args, nulls)
        case Call(name, args):
            return _called(name, args, [outcomes(arg, nulls) for arg in args])
        case _:
            return _ANY


def _called(name: str, args: tuple[Expr, ...], found: list[Outcomes]) -> Outcomes:
    match name:
        case "and":
            return reduce(lambda a, b: frozenset(_and(x, y) for x in a for y in b), found)
        case "or":
            return _negated(reduce(lambda a, b: frozenset(_and(x, y) for x in a for y in b), map(_negated, found)))
        case "not":
            return _negated(found[0])
        case "coalesce":
            rest = frozenset[bool | None]().union(*found)
            return rest if all(None in one for one in found) else rest - _NULL
        case "in":
            return _NULL if found[0] == _NULL else _ANY
        case _ if name in _TESTS:
            asked, answer = _TESTS[name]
            if args[0].type.kind is not Kind.BOOLEAN and asked is not None:
                return _SOME
            return frozenset(answer if one is asked else not answer for one in found[0])
        case _ if name in _STRICT and not any(arg.type.kind is Kind.ARRAY for arg in args):
            if _NULL in found:
                return _NULL
            certain = name in _COMPARISONS and all(None not in one for one in found)
            return _SOME if certain else _ANY
    return _ANY


def _chosen(args: tuple[Expr, ...], nulls: AbstractSet[str]) -> Outcomes:
    """The values of CASE that some condition lets through."""
    result: Outcomes = frozenset()
    for condition, value in zip(args[:-1:2], args[1::2], strict=True):
        tested = outcomes(condition, nulls)
        if True in tested:
            result |= outcomes(value, nulls)
        if tested == {True}:
            return result
    return result | outcomes(args[-1], nulls)


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _negated(found: Outcomes) -> Outcomes:
    return frozenset(None if one is None else not one for one in found)
