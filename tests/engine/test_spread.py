"""Variances, covariances and regressions from kept sums: the kernel gives what Python's integers give."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from halfjoin.engine.kernels import computing, native
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.kept import bytes_of
from halfjoin.engine.scalar.lifting import FLOAT_UNIT
from halfjoin.engine.scalar.spread import SPREAD
from halfjoin.sql.expr import Call, Column, Expr, Literal
from halfjoin.sql.types import BIGINT, BYTEA, DOUBLE, INTEGER, numeric

SPREADS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
PAIRS = {
    "regr_sxx": ("x", "xx"), "regr_sxy": ("x", "y", "xy"), "covar_pop": ("x", "y", "xy"),
    "covar_samp": ("x", "y", "xy"), "regr_slope": ("x", "y", "xx", "xy"), "regr_intercept": ("x", "y", "xx", "xy"),
    "corr": ("x", "y", "xx", "yy", "xy"), "regr_r2": ("x", "y", "xx", "yy", "xy"),
}  # fmt: skip
ROWS = 200
NAN = b"\xff" + bytes([1]) + bytes(23)  # a sum with one NaN
Columns = list[list[Any]]


def made(name: str, family: str, columns: Columns, digits: int, scale: int) -> tuple[Any, Any]:
    """What the function makes of a count and sums, or how it fails; and which rows the kernel leaves."""
    exact = family == "integers"
    type = numeric(38, scale) if exact else DOUBLE
    args: tuple[Expr, ...] = (Column("n", BIGINT), *(Column(f"s{n}", BYTEA) for n in range(len(columns) - 1)))
    more = (Literal(20, INTEGER), Literal(digits, INTEGER)) if exact else ()
    call = Call(f"{name} of {family}", (*args, *more), type)
    count, *sums = pa.array(columns[0], pa.int64()), *(pa.array(one, pa.binary()) for one in columns[1:])
    found = computing.spread(name, count, sums, pa.decimal128(38, scale) if exact else pa.float64(),
                             digits if exact else None)  # fmt: skip
    try:
        result = SPREAD[call.function](call)(count, *sums, *(pa.scalar(one.value) for one in more))
    except Failed as problem:
        return (str(problem), None if problem.mask is None else problem.mask.tolist()), found
    return [None if one is None else repr(one) for one in result.to_pylist()], found


def assert_same(name: str, family: str, columns: Columns, digits: int = 0, scale: int = 20) -> int:
    """How many rows the kernel leaves; both ways are the same."""
    here, found = made(name, family, columns, digits, scale)
    with native.used(False):
        there, _ = made(name, family, columns, digits, scale)
    assert here == there
    assert found is not None or not native.on
    return 0 if found is None else int(found[1].sum())


@pytest.mark.parametrize("name", SPREADS)
def test_of_exact_numbers(name: str) -> None:
    random = Random(name)
    for digits in (0, 2, 5, 10):
        columns: Columns = [[], [], []]
        for _ in range(ROWS):
            n, most = random.choice([0, 1, 1, 2, 3, 5, 20]), random.choice([1, 10, 10**4, 10**7])
            xs = [random.randint(-most, most) for _ in range(n)] if random.random() < 0.8 else [most] * n
            sums = [n, bytes_of(sum(xs)), bytes_of(sum(x * x for x in xs))]
            for column, value in zip(columns, sums, strict=True):
                column.append(None if random.random() < 0.02 else value)
        assert assert_same(name, "integers", columns, digits, random.choice([16, 20, 22])) == 0


@pytest.mark.parametrize("name", [*SPREADS, *PAIRS])
def test_of_floats(name: str) -> None:
    random, letters = Random(name), PAIRS.get(name, ("x", "xx"))
    for size in (1.0, 1e6, 1e-8, 1e15):
        columns: Columns = [[] for _ in range(len(letters) + 1)]
        for _ in range(ROWS):
            values = {"x": _values(random, size), "y": []}
            values["y"] = _values(random, size, len(values["x"]))
            if random.random() < 0.1:
                values["y"] = [2 * x for x in values["x"]]
            columns[0].append(len(values["x"]))
            for column, of in zip(columns[1:], letters, strict=True):
                pairs = zip(values[of[0]], values[of[-1]], strict=True)
                total = sum((Fraction(a) * (Fraction(b) if of[1:] else 1) for a, b in pairs), Fraction(0))
                column.append(bytes_of(int(total * 2 ** (FLOAT_UNIT * len(of)))))
        assert assert_same(name, "floats" if name in SPREADS else "pairs", columns) == 0


def _values(random: Random, size: float, count: int | None = None) -> list[float]:
    count = random.choice([0, 1, 2, 3, 20]) if count is None else count
    one = random.gauss(0, 1) * size
    if random.random() < 0.1:
        return [one] * count
    return [random.choice([random.gauss(0, 1) * size, float(random.randint(-5, 5)), 0.0]) for _ in range(count)]


@pytest.mark.skipif(not native.on, reason="needs the kernels")
def test_what_is_not_plain_is_left_to_integers_of_any_width() -> None:
    odd: Columns = [
        [2, 2, -2, 2],
        [bytes_of(3), NAN, bytes_of(-3), b""],
        [bytes_of(5), NAN, bytes_of(-5), bytes_of(-1)],
    ]
    assert assert_same("var_pop", "floats", odd) == 4  # results that are not normal, NaN, negative counts
    assert assert_same("var_pop", "integers", [one[:3:2] for one in odd]) == 1
    assert assert_same("stddev_pop", "integers", [[2], [b""], [bytes_of(-1)]]) == 1  # an error
    assert assert_same("var_pop", "integers", [[2], [b""], [bytes_of(10**40)]]) == 1  # too large
    wide = [[2], [bytes_of(1 << 1500)], [bytes_of(1 << 3001)]]
    assert assert_same("var_pop", "floats", wide) == 0
