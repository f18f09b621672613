"""Finds what predicates tell of the rows that meet them: which constants an expression of theirs must equal.

A cast around a key is looked through only if it keeps different values different.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from halfjoin.planner.fallibility import step_fallible
from halfjoin.planner.linear import Filter, Keep, Step
from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal, rewrite
from halfjoin.sql.functions import fallible
from halfjoin.sql.types import Kind, SqlType, innermost
from halfjoin.sql.unseen import is_unseen

_KEYS = frozenset((
    Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.TEXT, Kind.VARCHAR, Kind.CHAR,
    Kind.BYTEA, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.UUID, Kind.ENUM,
))  # fmt: skip
_EXACT: Mapping[Kind, frozenset[Kind]] = {  # casts that keep different values different
    Kind.SMALLINT: frozenset((Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.DOUBLE)),
    Kind.INTEGER: frozenset((Kind.BIGINT, Kind.NUMERIC, Kind.DOUBLE)),
    Kind.BIGINT: frozenset((Kind.NUMERIC,)),
    Kind.DATE: frozenset((Kind.TIMESTAMP,)),
    Kind.VARCHAR: frozenset((Kind.TEXT,)),
}


def certain(steps: Sequence[Step], bare: Mapping[str, str]) -> Iterator[Expr]:
    """Predicates over the collection's columns that each row must meet before any expression can fail for it. `bare`:
    these columns by their names in the steps."""
    for step in steps:
        if isinstance(step, Keep):
            continue
        if not isinstance(step, Filter):
            break
        yield from (renamed(predicate, bare) for predicate in step.predicates if not fallible(predicate))
        if step_fallible(step):  # for rows that a later step drops, an expression may have failed here
            break


def renamed(expr: Expr, bare: Mapping[str, str]) -> Expr:
    """The expression with its columns by the collection's own names."""
    return rewrite(expr, lambda node: replace(node, name=bare[node.name]) if isinstance(node, Column) else node)


def told(predicate: Expr) -> Mapping[Expr, tuple[Literal, ...]]:
    """The expressions that a predicate compares with constants, and those constants other than NULL: each row that
    meets it has one of them. Also without casts."""
    match predicate:
        case Call("and", parts):
            return fewest(*map(told, parts))
        case Call("or", parts):
            each = [told(part) for part in parts]
            shared = [key for key in each[0] if all(key in one for one in each)]
            return {key: tuple(dict.fromkeys(value for one in each for value in one[key])) for key in shared}
        case Call():
            found = _compared(predicate)
            return {} if found is None else dict.fromkeys(without_casts(found[0]), found[1])
        case _:
            return {}


def fewest(*each: Mapping[Expr, tuple[Literal, ...]]) -> dict[Expr, tuple[Literal, ...]]:
    """What expressions may be if all of these say so: of several the one that says most."""
    found: dict[Expr, tuple[Literal, ...]] = {}
    for one in each:
        for expr, values in one.items():
            if expr not in found or len(values) < len(found[expr]):
                found[expr] = values
    return found


def without_casts(key: Expr) -> Iterator[Expr]:
    """The expression, and what it is without casts that keep different values different, where these can be keys."""
    while True:
        if key.type.kind in _KEYS:
            yield key
        if not isinstance(key, Cast) or not _exact(key.arg.type, key.type):
            return
        key = key.arg


def _exact(before: SqlType, after: SqlType) -> bool:
    """Whether a cast keeps different values different."""
    if before.kind is after.kind is Kind.NUMERIC:
        return before.scale is not None and before.scale <= (after.scale or 0)
    return after.kind in _EXACT.get(before.kind, ()) and (after.kind is Kind.NUMERIC or after.precision is None)


def _compared(predicate: Call) -> tuple[Expr, tuple[Literal, ...]] | None:
    """The expression that must equal one of some constants, and the constants other than NULL."""
    match predicate.function, predicate.args:
        case ("=", (one, other)):
            key, value = (other, _literal(one)) if _literal(one) is not None else (one, _literal(other))
            return None if value is None else (key, _there([value]))
        case ("in", (key, *values)) if all(isinstance(one, Literal) for one in values):
            return key, _there([one for one in values if isinstance(one, Literal)])
        case ("= any", (key, array)):
            elements = _elements(array)
            return None if elements is None else (key, elements)
    return None


def _literal(expr: Expr) -> Literal | None:
    """The constant that an expression is, without casts that keep different values different; None if it is not one."""
    while isinstance(expr, Cast) and _exact(expr.arg.type, expr.type):
        expr = expr.arg
    return expr if isinstance(expr, Literal) else None


def _elements(array: Expr) -> tuple[Literal, ...] | None:
    """The elements of a constant array, other than NULL; None if it is not one."""
    while isinstance(array, Cast) and _exact(innermost(array.arg.type), innermost(array.type)):
        array = array.arg
    if not isinstance(array, Literal) or array.type.element is None:
        return None
    if array.value is None:
        return ()
    assert isinstance(array.value, list | tuple)
    if any(not is_unseen(one) and isinstance(one, list | tuple) for one in array.value):
        return None
    return _there([Literal(one, array.type.element) for one in array.value])


def _there(values: Iterable[Literal]) -> tuple[Literal, ...]:
    return tuple(dict.fromkeys(value for value in values if value.value is not None))
