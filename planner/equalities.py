"""Merges equalities into equivalence classes: expressions that are equal directly or through others."""

from __future__ import annotations

from collections.abc import Iterable

from halfjoin.planner.block import Equality
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions import render


def merged(equalities: Iterable[Equality]) -> tuple[Equality, ...]:
    """Merge `a = b` and `b = c` into one class of three. Null-safe equalities stay by themselves and come last."""
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
    """Constants first: the other members are compared with the constant."""
    return not isinstance(member, Literal), render(member)


def _text(equality: Equality) -> str:
    return " ".join(render(member) for member in equality.members)
