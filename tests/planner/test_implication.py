"""One condition implies another exactly where every row that meets the one meets the other, by the engine's order."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from halfjoin.engine.scalar import compile, mask_of
from halfjoin.planner.implication import implies
from halfjoin.planner.linear import Atom
from halfjoin.planner.wants import ALL, EVERY, Want, together
from halfjoin.sql.expr import Call, Column, Expr, Literal
from halfjoin.sql.types import BIGINT, BOOLEAN, DATE, DOUBLE, REAL, TEXT, TIMESTAMP, TIMESTAMPTZ, SqlType, numeric

NUMERIC = numeric(10, 2)
DAY = date(2024, 1, 1)
COLUMNS: dict[str, tuple[SqlType, pa.DataType, list[Any]]] = {
    "bigint": (BIGINT, pa.int64(), list(range(7))),
    "numeric": (NUMERIC, pa.decimal128(10, 2), [Decimal(n) / 2 for n in range(7)]),
    "double": (DOUBLE, pa.float64(), [-1.0, -0.0, 0.5, 1.0, 2.0, float("inf"), float("nan")]),
    "date": (DATE, pa.date32(), [DAY + timedelta(days=n) for n in range(7)]),
    "timestamp": (TIMESTAMP, pa.timestamp("us"), [datetime(2024, 1, 1, n) for n in range(7)]),
    "timestamptz": (TIMESTAMPTZ, pa.timestamp("us", "UTC"), [datetime(2024, 1, 1, n, tzinfo=UTC) for n in range(7)]),
    "text": (TEXT, pa.string(), list("abcdefg")),
    "real": (REAL, pa.float32(), [0.1, 0.10000000001, 0.2, 0.3, 0.4, 0.5, 0.6]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_implied_is_what_is_true_of_each_row(kind: str) -> None:
    """Each constant is between two other values, so that no comparison is implied by chance."""
    type_, arrow, values = COLUMNS[kind]
    rows = {"x": pa.array([*values, None], arrow)}
    x, constants = Column("x", type_), [Literal(value, type_) for value in values[1::2]]
    conditions = [Call(op, args, BOOLEAN) for op in ("=", "<", "<=", ">", ">=")
                  for one in constants for args in ((x, one), (one, x))]  # fmt: skip

    @cache
    def met(condition: Expr) -> Any:
        return mask_of(compile(condition).evaluate(rows, len(values) + 1).values)

    for one, other in product(conditions, repeat=2):
        holds = not bool((met(one) & ~met(other)).any())
        known = one == other or kind not in ("text", "real")  # any condition implies itself
        assert implies(one, other) == (holds and known), (one, other)


def test_constants_that_have_no_order_imply_nothing() -> None:
    x, nan = Column("x", DOUBLE), Literal(float("nan"), DOUBLE)
    for value in (nan, Literal(None, DOUBLE)):
        assert implies(*[Call(">", (x, value), BOOLEAN)] * 2)
        assert not implies(Call(">", (x, value), BOOLEAN), Call(">=", (x, value), BOOLEAN))
    later = Call(">", (Column("x", TIMESTAMP), Literal(datetime(2024, 1, 2), TIMESTAMP)), BOOLEAN)
    assert not implies(later, Call(">", (Column("x", DATE), Literal(DAY, DATE)), BOOLEAN))


def _x(op: str, value: int) -> Expr:
    return Call(op, (Column("x", BIGINT), Literal(value, BIGINT)), BOOLEAN)


def _want(*conditions: Expr, until: int | None = None) -> Want:
    formulas = () if until is None else (Atom("<", Literal(until, BIGINT)),)
    return Want(frozenset(conditions), frozenset(formulas))


def test_the_widest_of_a_range_is_wanted() -> None:
    y = Call("=", (Column("y", BIGINT), Literal(1, BIGINT)), BOOLEAN)
    assert together(_want(_x(">", n)) for n in range(20)) == {_want(_x(">", 0))}
    assert together([_want(_x(">", 5)), _want(_x("=", 7), y)]) == {_want(_x(">", 5))}
    assert together([_want(_x(">", 5)), _want(_x("=", 5))]) == {_want(_x(">", 5)), _want(_x("=", 5))}
    assert together([_want(_x(">", 5)), _want(_x(">", 7), until=3)]) == {_want(_x(">", 5))}
    assert together([_want(_x(">", 5), until=3), _want(_x(">", 7))]) == {_want(_x(">", 5), until=3), _want(_x(">", 7))}


@pytest.mark.parametrize("many", [9, 65, 300])
def test_of_many_what_all_of_them_ask_is_wanted(many: int) -> None:
    days = [_want(_x(">=", n), _x("<", n + 1), until=3) for n in range(many)]
    assert together(days) == {_want(_x(">=", 0), _x("<", many), until=3)}
    assert together([*days, _want(_x("=", many - 1))]) == {_want(_x(">=", 0), _x("<", many))}
    assert together([*days, EVERY]) == ALL
    assert together(_want(_x("=", n)) for n in range(many)) == ALL
    assert together([]) == ALL
