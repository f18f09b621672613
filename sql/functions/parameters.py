"""Infers the types of a statement's parameters: the type that the first place gives a `$1` is the parameter's type.

To learn the types, a statement is bound once with a mark in the place of each parameter of no given type. A mark is a
literal of no type, so the binder gives it a type as it does for `'abc'`; `cast` notes which, and goes on with NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from halfjoin.sql.expr import Literal
from halfjoin.sql.types import UNKNOWN, Kind, SqlType

_MARK = "\0$"  # no SQL text has the character 0
_FOUND: ContextVar[dict[int, SqlType] | None] = ContextVar("types of parameters", default=None)


@contextmanager
def inferring() -> Iterator[dict[int, SqlType]]:
    """The types of the parameters of what is bound inside, by number; those that no place gives a type are missing."""
    found: dict[int, SqlType] = {}
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


def is_inferring() -> bool:
    """Whether a statement is bound to describe it, not to run it."""
    return _FOUND.get() is not None


def mark(number: int) -> str:
    """The text that stands for a parameter."""
    return f"{_MARK}{number}"


def untyped(text: str) -> Literal:
    """The literal of a text without a type; that of a parameter's mark has the parameter's type, once it is known."""
    if not text.startswith(_MARK):
        return Literal(text, UNKNOWN)
    found = (_FOUND.get() or {}).get(int(text.removeprefix(_MARK)))
    return Literal(text, UNKNOWN) if found is None else Literal(None, found)


def is_parameter(literal: Literal) -> bool:
    """Whether a literal is a parameter's mark."""
    value = literal.value
    return type(value) is str and literal.type.kind is Kind.UNKNOWN and value.startswith(_MARK)


def typed(literal: Literal, type: SqlType) -> Literal:
    """A parameter's mark in a place that gives it a type: NULL of that type."""
    found = _FOUND.get()
    if found is not None and type.kind is not Kind.UNKNOWN:
        found.setdefault(int(str(literal.value).removeprefix(_MARK)), bare(type))
    return Literal(None, type)


def bare(type: SqlType) -> SqlType:
    """The type without its length or digits, which a parameter does not have."""
    if type.kind is Kind.ARRAY and type.element is not None:
        return SqlType(Kind.ARRAY, element=bare(type.element))
    return type if type.named else SqlType(type.kind)
