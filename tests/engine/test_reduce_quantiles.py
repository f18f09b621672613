"""Percentiles and modes from sorted numbers: the same as from rows in order; and no row is put in order."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import aggregates, at_once, flow
from tests.engine.test_reduce_extremes import TYPES, rows, shown

EACH = ", ".join(f"percentile_disc(0.3) WITHIN GROUP (ORDER BY {name}) AS p_{name}, "
                 f"percentile_disc(ARRAY[0, 0.7, 1, NULL]) WITHIN GROUP (ORDER BY {name} DESC) AS q_{name}, "
                 f"mode() WITHIN GROUP (ORDER BY {name}) AS m_{name}"
                 for name in TYPES if name not in "wxi")  # fmt: skip
NUMBERS = ", ".join(f"percentile_cont(0.3) WITHIN GROUP (ORDER BY {name}) AS p_{name}, "
                    f"percentile_cont(ARRAY[1, 0.25]) WITHIN GROUP (ORDER BY {name} DESC) AS q_{name}"
                    for name in "sbnfr")  # fmt: skip
QUERIES = [
    f"SELECT {EACH} FROM t",
    f"SELECT k, l, sum(s) AS n, {EACH} FROM t GROUP BY k, l",
    f"SELECT {NUMBERS}, avg(f) AS a FROM t",
    f"SELECT d, {NUMBERS} FROM t GROUP BY d",
    "SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY f DESC) FILTER (WHERE s > 0) AS a, count(*) AS n "
    "FROM t GROUP BY k",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY s) AS a FROM t WHERE s IS NULL",
    "SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY s) AS a, max(s) AS b FROM t GROUP BY k",
    "SELECT f, percentile_disc(0.5) WITHIN GROUP (ORDER BY s) AS a FROM t GROUP BY f",
    "SELECT l, percentile_disc(0.5) WITHIN GROUP (ORDER BY x) AS a, mode() WITHIN GROUP (ORDER BY x) AS b, "
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY w) AS c FROM t GROUP BY l",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_quantiles_are_those_of_rows_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "FROM", 1)
    random = np.random.default_rng(seed)
    engine = hj.Engine(clock="own", retain=100)
    engine.execute(f"CREATE TABLE t (k bigint, l text, {', '.join(f'{name} {one[0]}' for name, one in TYPES.items())})")
    first = rows(random, 40, 1 + seed % 2)
    engine.apply({"t": first}, time=1)
    engine.apply({"t": rows(random, 3)}, time=2)
    engine.apply({"t": first.slice(0, 9).set_column(13, "__diff", pa.array([-1] * 9))}, time=3)
    used = 0
    for sql in QUERIES:
        for time in (1, 2, 3):
            with patch.object(flow, "quantiles_and_sums", lambda *_: None):
                expected = shown(engine.query(sql, as_of=time))
            with patch.object(aggregates, "at_moments", wraps=aggregates.at_moments) as asked:
                assert shown(engine.query(sql, as_of=time)) == expected, (time, sql)
            used += not asked.call_count
    assert used > 3 or seed % 2
    for number, sql in enumerate(QUERIES):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
        for time in (1, 2, 3):
            assert shown(engine.read(f"v{number}", as_of=time)) == shown(engine.query(sql, as_of=time)), (time, sql)
    engine.apply({"t": first.slice(9, 9).set_column(13, "__diff", pa.array([-1] * 9))}, time=4)
    for number, sql in enumerate(QUERIES):
        assert shown(engine.read(f"v{number}")) == shown(engine.query(sql)), sql


def test_groups_and_values_of_many_bits_are_in_order() -> None:
    random = np.random.default_rng(3)
    engine, length = hj.Engine(), 6_000
    group, values = random.integers(0, 50, length), random.integers(-(2**63), 2**63 - 1, length)
    engine.execute("CREATE TABLE t (g integer, a bigint)")
    engine.apply({"t": pa.table({"g": pa.array(group, pa.int32()), "a": values})})
    sql = "SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY a) AS p FROM t GROUP BY g ORDER BY g"
    with patch.object(aggregates, "at_moments", side_effect=AssertionError):
        found = engine.query(sql).column("p").to_pylist()
    each = [np.sort(values[group == number]) for number in range(50)]
    assert found == [int(one[(len(one) + 1) // 2 - 1]) for one in each]


def test_no_row_is_put_in_order_for_a_percentile() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (g integer, a bigint)")
    numbers = np.arange(20_000)
    engine.apply({"t": pa.table({"g": pa.array(numbers % 4, pa.int32()), "a": numbers[::-1]})})
    with patch.object(aggregates, "at_moments", side_effect=AssertionError):
        found = engine.query("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) AS p FROM t").to_pylist()
        by_group = engine.query("SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY a) AS p FROM t GROUP BY g")
    assert found == [{"p": 9999.5}]
    assert sorted(by_group.column("p").to_pylist()) == [9998.0, 9999.0, 10_000.0, 10_001.0]


def test_a_wrong_fraction_is_an_error_also_for_many_rows() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a bigint)")
    engine.apply({"t": pa.table({"a": np.arange(20_000)})})
    with pytest.raises(hj.DataError, match="percentile value 2 is not between 0 and 1"):
        engine.query("SELECT percentile_cont(ARRAY[0.5, 2]) WITHIN GROUP (ORDER BY a) AS p FROM t")
