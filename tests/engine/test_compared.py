"""Numerics and integers, compared with one number and with each other, as Python does it; integers stay integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from unittest.mock import Mock, patch

import pyarrow as pa
import pytest

from halfjoin.engine.scalar import comparison
from halfjoin.engine.scalar.comparison import COMPARISON
from halfjoin.engine.scalar.evaluate import compile
from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal
from halfjoin.sql.types import BIGINT, BOOLEAN, INTEGER, SMALLINT, Kind, SqlType
from tests.support.kernels import both_ways

__all__ = ["both_ways"]

TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
NUMBERS = [Decimal(text) for text in ("-3", "-2.5", "-0.01", "0", "0.00001", "2", "2.5", "3", "1e25", "-1e25")]
WIDE = SqlType(Kind.NUMERIC, 38, 5)
SIDES: dict[str, tuple[Expr, pa.DataType, list[Any]]] = {
    "smallint": (Cast(Column("x", SMALLINT), SqlType(Kind.NUMERIC, 5, 0)), pa.int16(), [-32768, -3, 0, 2, 3, 32767]),
    "integer": (Cast(Column("x", INTEGER), SqlType(Kind.NUMERIC, 10, 0)), pa.int32(), [-(2**31), -3, 0, 2, 2**31 - 1]),
    "bigint": (Cast(Column("x", BIGINT), SqlType(Kind.NUMERIC, 19, 0)), pa.int64(), [-(2**63), -2, 0, 3, 2**63 - 1]),
    "numeric": (Column("x", SqlType(Kind.NUMERIC, 6, 2)), pa.decimal128(6, 2),
                [Decimal("-2.50"), Decimal("-0.01"), Decimal("0.00"), Decimal("2.50"), Decimal("9999.99")]),
}  # fmt: skip


@pytest.mark.parametrize("name", SIDES)
@pytest.mark.parametrize("sign", TESTS)
def test_many_values_are_compared_with_one(name: str, sign: str) -> None:
    side, type, values = SIDES[name]
    columns, test = {"x": pa.array([*values, None], type)}, TESTS[sign]
    for number in NUMBERS:
        for one in (Literal(number, WIDE), Cast(Literal(number, WIDE), SqlType(Kind.NUMERIC, 45, 7))):
            found = [compile(Call(sign, args, BOOLEAN)).evaluate(columns, len(values) + 1).values.to_pylist()
                     for args in ((side, one), (one, side))]  # fmt: skip
            assert found[0] == [*(test(value, number) for value in values), None], number
            assert found[1] == [*(test(number, value) for value in values), None], number


@pytest.mark.parametrize("name", SIDES)
def test_values_are_compared_with_each_other(name: str) -> None:
    side, type, values = SIDES[name]
    pairs = [(value, number) for value in values for number in NUMBERS]
    columns = {"x": pa.array([value for value, _ in pairs], type),
               "y": pa.array([number for _, number in pairs], pa.decimal128(38, 5))}  # fmt: skip
    for sign, test in TESTS.items():
        found = compile(Call(sign, (side, Column("y", WIDE)), BOOLEAN)).evaluate(columns, len(pairs)).values
        assert found.to_pylist() == [test(*pair) for pair in pairs]


def test_integers_are_not_made_numerics_for_one_number() -> None:
    column = Cast(Column("x", BIGINT), SqlType(Kind.NUMERIC, 19, 0))
    call = Call(">", (column, Cast(Literal(Decimal("2.5"), WIDE), SqlType(Kind.NUMERIC, 45, 7))), BOOLEAN)
    with patch.dict(comparison._KERNELS, {">": Mock(return_value=pa.array([True]))}) as kernels:
        COMPARISON[">"](call)(pa.array([7]), pa.scalar(Decimal("2.5"), pa.decimal128(38, 5)))
        values, bound = kernels[">"].call_args.args
    assert (values.type, bound.as_py()) == (pa.int64(), 2)
