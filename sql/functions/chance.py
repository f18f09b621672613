"""Functions of chance: which they are, and whether an expression calls one."""

from __future__ import annotations

from halfjoin.sql.expr import Call, Expr, walk
from halfjoin.sql.types import DOUBLE, UUID

CHANCE = {"random": DOUBLE, "gen_random_uuid": UUID, "uuid_generate_v4": UUID}  # the last one is of uuid-ossp
CALLED = {"uuid_generate_v4": "gen_random_uuid"}  # another name: what it is


def draws(expr: Expr) -> bool:
    """Whether the value of an expression depends on chance."""
    return any(isinstance(part, Call) and part.function in CHANCE for part in walk(expr))
