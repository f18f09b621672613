"""Equivalence classes: equalities merged with all that they make equal."""

from __future__ import annotations

from collections.abc import Iterable

from halfjoin.planner.block import Equality
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions import render


def merged(equalities: Iterable[Equality]) -> tuple[Equality, ...]:
    """`a = b` and `b = c` as one class of three; those that are null-safe stay by themselves, and come last."""
    classes: list[list[Expr]] = []
    null_safe: list[Equality] = []
    for equality in equalities:
        if equality.null_safe:
            null_safe.append(equality)
            continue
        touched = [known for known in classes if any(member in known for member in equality.members)]
        every = dict.fromkeys([*(member for known in touched for member in known), *equality.members])
        classes = [known for known in classes if known not in touched] + [list(every)]
    found = [Equality(tuple(sorted(members, key=_order))) for members in classes]
    return (*sorted(found, key=_text), *null_safe)


def _order(member: Expr) -> tuple[bool, str]:
    """Constants first: what is equal to one is compared with that."""
    return not isinstance(member, Literal), render(member)


def _text(equality: Equality) -> str:
    return " ".join(render(member) for member in equality.members)
