"""Functions of chance: which they are, and whether an expression calls one."""

from __future__ import annotations

from halfjoin.sql.expr import Call, Expr, walk
from halfjoin.sql.types import DOUBLE, UUID

CHANCE = {"random": DOUBLE, "gen_random_uuid": UUID}


def draws(expr: Expr) -> bool:
    """Whether the value of an expression depends on chance."""
    return any(isinstance(part, Call) and part.function in CHANCE for part in walk(expr))
