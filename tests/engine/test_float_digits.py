"""A float becomes the numeric that its text of 15 significant digits (6 for real) becomes."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.scalar import float_digits
from halfjoin.engine.scalar.float_digits import decimals_of

_EXACT = Context(prec=80)
_NEAR = [10.0**power * (1 + sign * 2.0**-bits) for power in range(-8, 15) for sign in (-1, 1) for bits in range(40, 54)]
_HALVES = [0.5, 1.5, 2.5, 0.125, 123456789012345.5, 1e14 + 0.5, 0.1 + 0.2, 0.0, -0.0, 1e-8, 1e-9, 999999999999999.5]


def floats(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    eighths = random.integers(-(10**6), 10**6, 300) / 8
    some = [np.round(random.gamma(2, 50, 300), 3), random.normal(0, 1, 300), random.normal(0, 1e6, 300),
            10.0 ** random.uniform(-9, 16, 300) * random.choice([-1, 1], 300), eighths,
            np.array([*_NEAR, *_HALVES])]  # fmt: skip
    return np.concatenate(some) if seed else some[0]


@pytest.mark.parametrize("digits", [15, 6])
@pytest.mark.parametrize("kind", [(12, 2), (30, 10), (18, 0), (10, 4), (38, 18)])
@pytest.mark.parametrize("seed", range(3))
def test_digits_are_those_of_the_text(seed: int, kind: tuple[int, int], digits: int) -> None:
    type, values = pa.decimal128(*kind), floats(seed)
    values = values if digits == 15 else values.astype(np.float32).astype(np.float64)
    values = values[np.abs(values) < 0.99 * min(2.0**62, 10.0 ** min(type.precision, 18)) / 10.0**type.scale]
    found = decimals_of(values, digits, type)
    assert found is not None
    made, unknown = found[0].to_pylist(), set(found[1].tolist())
    assert len(unknown) * 2 < len(values) or not len(values)
    for row, value in enumerate(values.tolist()):
        if row not in unknown:
            whole = Decimal(f"{value:.{digits - 1}e}")
            assert made[row] == whole.quantize(Decimal(1).scaleb(-type.scale), ROUND_HALF_UP, _EXACT), value


def test_casts_are_those_through_text(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [*floats(1).tolist(), None, 1e20, -3.5e-12]
    queries = ["SELECT i, x::numeric AS a, x::real::numeric AS b FROM t",
               "SELECT i, (x / 1e9)::numeric(30, 20) AS a, x::real::numeric(30, 2) AS b FROM t WHERE abs(x) < 1e12",
               "SELECT i, x::numeric(6, 2) AS a FROM t WHERE abs(x) < 9999"]  # fmt: skip
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (i integer, x double precision)")
        engine.apply({"t": [{"i": i, "x": value} for i, value in enumerate(values)]})
        fast = [engine.query(sql).sort_by("i") for sql in queries]
        failing = "SELECT x::numeric(6, 2) FROM t"
        with pytest.raises(hj.DataError) as problem:
            engine.query(failing)
        monkeypatch.setattr(float_digits, "decimals_of", lambda *_: None)
        assert fast == [engine.query(sql).sort_by("i") for sql in queries]
        with pytest.raises(hj.DataError) as other:
            engine.query(failing)
        assert str(problem.value) == str(other.value)
