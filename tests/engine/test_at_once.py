"""Sums at once: the same as row by row, for random updates; and no row is lifted where they apply."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.kernels import native
from halfjoin.engine.reduce import at_once, by_place, lifted
from halfjoin.engine.reduce.lifted import Lifted, add_up, lift
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.planner.group_functions import Aggregates, Sums
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT, BYTEA, DOUBLE, REAL
from tests.oracle.rows import bag

KEYS = {"b": pa.bool_(), "i": pa.int32(), "s": pa.string(), "d": pa.date32(), "n": pa.decimal128(6, 2)}
VALUES = {"x": pa.int64(), "y": pa.int16(), "z": pa.decimal128(30, 2), "f": pa.float64(), "g": pa.float64(),
          "r": pa.float32()}  # fmt: skip
PARTS = (
    Sums(Column("#x", BYTEA), "integers", (Column("x", BIGINT),)),
    Sums(Column("#y", BYTEA), "integers", (Column("y", BIGINT),)),
    Sums(Column("#z", BYTEA), "integers", (Column("z", BIGINT),)),
    Sums(Column("#cx", BIGINT), "count", (Column("x", BIGINT),)),
    Sums(Column("#f", BYTEA), "floats", (Column("f", DOUBLE),)),
    Sums(Column("#r", BYTEA), "floats", (Column("r", REAL),)),
    Sums(Column("#cxf", BIGINT), "count", (Column("x", BIGINT), Column("f", DOUBLE))),
    Sums(Column("#xf", BYTEA), "integers", (Column("x", BIGINT), Column("f", DOUBLE))),
    Sums(Column("#xy", BYTEA), "integer products", (Column("x", BIGINT), Column("y", BIGINT))),
    Sums(Column("#fx", BYTEA), "floats", (Column("f", DOUBLE), Column("x", BIGINT))),
    Sums(Column("#ff", BYTEA), "float products", (Column("f", DOUBLE), Column("f", DOUBLE))),
    Sums(Column("#fgx", BYTEA), "float products", (Column("f", DOUBLE), Column("g", DOUBLE), Column("x", BIGINT))),
)  # fmt: skip


def column(kind: pa.DataType, random: np.random.Generator, length: int, few: bool, large: int) -> pa.Array:
    numbers = random.integers(-3, 4, length) if few else random.integers(-large, large, length)
    if pa.types.is_boolean(kind):
        values: list[Any] = [number > 0 for number in numbers.tolist()]
    elif pa.types.is_string(kind):
        values = [f"k{number}" for number in numbers.tolist()]
    elif pa.types.is_decimal(kind):
        values = [Decimal(number) / 4 for number in numbers.tolist()]
        values = [value.quantize(Decimal("0.01")) for value in values]
    elif pa.types.is_floating(kind):
        spread = random.integers(-1, 2) * (280 if kind == pa.float64() else 15)
        values = (numbers / 3 * 10.0 ** random.integers(min(spread, 0), max(spread, 1), length)).tolist()
        values[0] = random.choice([values[0], 5e-324, -0.0, np.nan, -np.inf], p=[0.6, 0.1, 0.1, 0.1, 0.1])
    else:
        values = numbers.tolist()
    gone = random.random(length) < random.choice([0.0, 0.3])
    made = pa.array([None if null else value for null, value in zip(gone.tolist(), values, strict=True)])
    return made.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else made.cast(kind)


def totals(found: Lifted | None) -> dict[Any, Any]:
    assert found is not None
    rows = found.rows.table(changes=True).drop_columns(["__diff"]).to_pylist()
    kept = list(zip(*(one.kept().to_pylist() for one in found.totals), strict=True))
    made = {tuple(row.values()): one for row, one in zip(rows, kept, strict=True)}
    assert len(made) == len(rows)
    return made


@pytest.mark.parametrize("seed", range(24))
def test_sums_at_once_are_those_row_by_row(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "FROM", 1)
    monkeypatch.setattr(by_place, "_FROM", 1)
    random = np.random.default_rng(seed)
    used = 0
    for _ in range(12):
        length, large = int(random.integers(1, 60)), int(random.choice([9, 30_000, 1 << 40, 1 << 62]))
        keys = list(random.permutation(list(KEYS))[: random.integers(0, 4)])
        columns = {name: column(KEYS[name], random, length, True, 0) for name in keys}
        columns |= {name: column(kind, random, length, name == "y", large) for name, kind in VALUES.items()}
        diff = [constant(1, length), constant(-2, length), random.integers(-2, 3, length),
                random.integers(-(1 << 40), 1 << 40, length)][random.integers(0, 4)]  # fmt: skip
        updates = Updates(columns, constant(5, length) if random.random() < 0.5 else np.full(length, 7), diff)
        parts = tuple(PARTS[number] for number in random.permutation(len(PARTS))[: random.integers(0, 4)])
        function = Aggregates(Column("#n", BIGINT), parts)
        ends = sorted({0, length, *random.integers(0, length + 1, random.integers(0, 3)).tolist()})
        pieces = [updates.slice(start, end) for start, end in pairwise(ends)]
        made = at_once.at_once(lifted.sums_of(function), keys, pieces)
        if made is not None:
            used += 1
            assert totals(add_up([Lifted(*made)])) == totals(add_up([lift(function, keys, updates).summed()]))
    assert used > 2


QUERIES = [
    "SELECT count(*) AS n, sum(a) AS s, avg(b) AS m, min(a) AS l, sum(n) AS p FROM t",
    "SELECT g, count(*) AS n, count(a) AS c, sum(a) AS s, sum(b) AS m FROM t GROUP BY g",
    "SELECT g, h, sum(n) AS s, count(DISTINCT a) AS d FROM t GROUP BY g, h",
    "SELECT sum(f) AS s, stddev(a) AS d FROM t",
    "SELECT g, sum(f) AS s, avg(f) AS a, sum(b) AS b, count(f) AS n FROM t GROUP BY g",
    "SELECT avg(f::real) AS a, sum(f * 1e30) AS s FROM t WHERE f > 0.5",
    "SELECT sum(a) AS s FROM t WHERE a > 3",
    "SELECT h, sum(a + 1) AS s FROM t WHERE g < 2 GROUP BY h HAVING count(*) > 2",
]  # fmt: skip


def test_queries_and_views_add_up_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    engine = hj.Engine(clock="own", retain=100)
    engine.execute("CREATE TABLE t (g integer, h text, a bigint, b integer, n numeric(20,2), f double precision)")

    def rows(length: int, diff: int) -> pa.Table:
        columns = {"g": column(pa.int32(), random, length, True, 0), "h": column(pa.string(), random, length, True, 0),
                   "a": column(pa.int64(), random, length, False, 9),
                   "b": column(pa.int32(), random, length, False, 99),
                   "n": column(pa.decimal128(20, 2), random, length, False, 1 << 40),
                   "f": pa.array(random.random(length))}  # fmt: skip
        return pa.table({**columns, "__diff": constant(diff, length)})

    first = rows(500, 1)
    engine.apply({"t": first}, time=1)
    engine.apply({"t": rows(300, 2)}, time=2)
    engine.apply({"t": first.slice(0, 200).set_column(6, "__diff", pa.array(constant(-1, 200)))}, time=3)
    for sql in QUERIES:
        for time in (1, 2, 3):
            monkeypatch.setattr(lifted, "at_once", lambda *_: None)
            expected = bag(engine.query(sql, as_of=time))
            monkeypatch.setattr(lifted, "at_once", at_once.at_once)
            monkeypatch.setattr(at_once, "FROM", 1)
            assert bag(engine.query(sql, as_of=time)) == expected, (time, sql)
    for number, sql in enumerate(QUERIES):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
        for time in (1, 2, 3):
            assert bag(engine.read(f"v{number}", as_of=time)) == bag(engine.query(sql, as_of=time)), (time, sql)


def test_no_row_is_lifted_where_sums_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (g integer, a bigint, f double precision)")
    numbers = np.arange(20_000)
    engine.apply({"t": pa.table({"g": pa.array(numbers % 7, pa.int32()), "a": numbers, "f": numbers / 4})}, time=1)
    seen = 0

    def counted(function: Any, keys: Any, updates: Updates) -> Lifted:
        nonlocal seen
        seen += len(updates)
        return lift(function, keys, updates)

    monkeypatch.setattr(lifted, "lift", counted)
    assert engine.query("SELECT count(*) AS n, sum(a) AS s FROM t").to_pylist() == [
        {"n": 20_000, "s": int(numbers.sum())}]
    assert engine.query("SELECT g, sum(a) AS s FROM t GROUP BY g").num_rows == 7
    if native.on:
        assert engine.query("SELECT sum(f) AS s FROM t").to_pylist() == [{"s": float(numbers.sum()) / 4}]
        assert engine.query("SELECT g, sum(f) AS s FROM t GROUP BY g").num_rows == 7
    assert seen == 0
