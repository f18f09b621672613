"""Which predicates tell that no row of a change concerns a path."""

from __future__ import annotations

from halfjoin.planner.guards import Among, Beside, guards
from halfjoin.planner.linear import Filter, Linear
from halfjoin.planner.plan import Path
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions import resolve
from halfjoin.sql.types import INTEGER

K, FIVE = Column("t.k", INTEGER), Literal(5, INTEGER)
EQUAL = resolve("=", (K, FIVE))
RISKY = resolve("=", (resolve("/", (FIVE, K)), FIVE))


def _path(*filters: tuple[Expr, ...]) -> Path:
    return Path(0, "t", "t", (("k", "t.k"),), Linear(tuple(map(Filter, filters))), (), Linear(()))


def test_constants_tell_what_a_row_must_have() -> None:
    bare = Column("k", INTEGER)
    assert guards(_path((EQUAL,))) == (Among(bare, (FIVE,)),)
    assert guards(_path((resolve("<", (FIVE, K)),))) == (Beside(bare, FIVE, low=True),)
    assert guards(_path((resolve(">=", (FIVE, K)),))) == (Beside(bare, FIVE, low=False),)
    assert guards(_path((resolve("=", (K, K)),))) == ()


def test_what_is_tested_after_a_predicate_that_may_fail_tells_nothing() -> None:
    """A row that fails there is an error, whatever comes later."""
    assert guards(_path((EQUAL, RISKY))) == guards(_path((EQUAL,)))  # together: what cannot fail is tested first
    assert guards(_path((RISKY,), (EQUAL,))) == ()
