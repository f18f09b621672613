"""Kernels of kept sums compute a sum once, however many rows it comes with; the results are those of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.kernels import native
from halfjoin.engine.scalar import repeated
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.repeated import once
from tests.oracle.rows import bag


def _seen(lengths: list[int]) -> Any:
    def kernel(first: Any, second: Any) -> Any:
        lengths.append(len(first))
        return pa.array([f"{a} {b}" for a, b in zip(first.to_pylist(), second.to_pylist(), strict=True)])

    return kernel


@pytest.mark.parametrize("values", [1, 3, 9])
def test_each_pair_of_arguments_is_computed_once(values: int) -> None:
    random, lengths = np.random.default_rng(values), list[int]()
    rows = 3 * repeated._FROM
    first = pa.array(random.integers(0, values, rows), mask=random.random(rows) < 0.1 if values > 1 else None)
    second = pa.array([bytes([number % values]) for number in range(rows)], pa.binary())
    made = once(_seen(lengths))(first, second)
    assert len(lengths) == 1
    assert lengths[0] <= (values + 1) * values or (values > 1 and not native.on)
    if isinstance(made, pa.Scalar):
        assert values == 1
        made = pa.repeat(made, rows)
    assert made.equals(_seen([])(first, second))


def test_rows_of_their_own_are_computed_at_once() -> None:
    lengths = list[int]()
    numbers = pa.array(np.arange(repeated._FROM))
    once(_seen(lengths))(numbers, numbers)
    assert lengths == [repeated._FROM]


def test_a_failure_names_all_its_rows() -> None:
    def kernel(value: Any) -> Any:
        raise Failed("too large", value.to_numpy() > 0)

    numbers = np.arange(2 * repeated._FROM) % 2
    with pytest.raises(Failed) as failed:
        once(kernel)(pa.array(numbers))
    assert (failed.value.mask == (numbers > 0)).all()


def test_rows_beside_an_average_are_those_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (g integer, v integer, n numeric(8,2))")
    numbers = np.arange(20_000)
    engine.apply({"t": [{"g": int(n % 9), "v": int(n % 101), "n": int(n % 7)} for n in numbers]})
    queries = [
        "SELECT count(*) AS n FROM t WHERE v > (SELECT avg(v) FROM t)",
        "SELECT count(*) AS n, sum(v) AS s FROM t WHERE v > (SELECT avg(n) FROM t AS o WHERE o.g = t.g)",
        "SELECT g, (SELECT sum(v) FROM t) AS s, (SELECT stddev(v) FROM t) AS d FROM t WHERE v = 7",
    ]
    found = [bag(engine.query(sql)) for sql in queries]
    monkeypatch.setattr(repeated, "_FROM", 1 << 40)
    assert [bag(engine.query(sql + " ")) for sql in queries] == found
