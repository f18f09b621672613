"""Groups of many rows that are added up at once: sums that no int64 holds, in halves, and floats as keys."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.kernels import native
from halfjoin.engine.reduce import lifted
from tests.support.kernels import both_ways  # noqa: F401


@pytest.mark.parametrize("keys", ["", "k", "s", "k, s"])
def test_sums_beyond_int64_are_exact(keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pick, one_by_one = random.Random(3), list[int]()
    lift = lifted.lift

    def noted(*args: Any) -> lifted.Lifted:
        one_by_one.append(1)
        return lift(*args)

    monkeypatch.setattr(lifted, "lift", noted)
    rows = [(number, None if pick.random() < 0.1 else pick.randrange(7), pick.choice("abc"),
             None if pick.random() < 0.1 else pick.choice((-1, 1)) * (pick.getrandbits(62) + (1 << 62)),
             Decimal(pick.randrange(-10**9, 10**9)) / 100) for number in range(6000)]  # fmt: skip
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, k integer, s text, x bigint, m numeric(12, 2))")
        columns = zip(*rows, strict=True)
        types = (pa.int64(), pa.int32(), pa.string(), pa.int64(), pa.decimal128(12, 2))
        arrays = [pa.array(column, type) for column, type in zip(columns, types, strict=True)]
        engine.apply({"t": pa.table(dict(zip(("id", "k", "s", "x", "m"), arrays, strict=True)))})
        named = f"{keys}, " if keys else ""
        found = engine.query(f"SELECT {named}count(*) AS n, sum(x) AS x, round(var_pop(m), 4) AS v FROM t "
                             + (f"GROUP BY {keys}" if keys else ""))  # fmt: skip
    groups = dict[tuple[Any, ...], list[tuple[Any, ...]]]()
    for row in rows:
        groups.setdefault(tuple(row[("id", "k", "s").index(name)] for name in keys.split(", ") if name), []).append(row)
    made = {tuple(one[name] for name in keys.split(", ") if name): (one["n"], one["x"], one["v"])
            for one in found.to_pylist()}  # fmt: skip
    for key, some in groups.items():
        count, mean = len(some), sum(row[4] for row in some) / len(some)
        variance = sum((row[4] - mean) ** 2 for row in some) / count
        n, x, v = made.pop(key)
        assert (n, int(x)) == (count, sum(row[3] for row in some if row[3] is not None))
        assert abs(v - variance) < Decimal("0.001")
    assert not made and not one_by_one


@pytest.mark.parametrize("kind", ["double precision", "real"])
def test_floats_are_keys(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [None, float("nan"), -0.0, 0.0, 1.5, -2.25, float("inf"), float("-inf")]
    with hj.Engine() as engine:
        engine.execute(f"CREATE TABLE t (id bigint PRIMARY KEY, f {kind}, g double precision)")
        engine.apply({"t": [{"id": number, "f": values[number % 8], "g": number / 4} for number in range(8000)]})
        with monkeypatch.context() as patch:
            patch.setattr(lifted, "lift", None if native.on else lifted.lift)  # nothing is added up row by row
            found = engine.query("SELECT f, count(*) AS n, sum(id) AS x FROM t GROUP BY f ORDER BY f")
        exact = engine.query("SELECT f, sum(g) AS g FROM t GROUP BY f ORDER BY f")
    sums = [sum(number for number in range(8000) if number % 8 in some)
            for some in ((7,), (5,), (2, 3), (4,), (6,), (1,), (0,))]  # fmt: skip
    assert str(found["f"].to_pylist()) == str(exact["f"].to_pylist()) == "[-inf, -2.25, 0.0, 1.5, inf, nan, None]"
    assert found["n"].to_pylist() == [1000, 1000, 2000, 1000, 1000, 1000, 1000]
    assert [int(x) for x in found["x"].to_pylist()] == sums
    assert exact["g"].to_pylist() == [one / 4 for one in sums]
