"""Aggregates and scans of the benchmark have DuckDB's answers, now and in the past, with kernels and without."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import at_once
from halfjoin.engine.updates import limits
from tests.benchmarks.queries import AGGREGATES, ROWS, filled, tables
from tests.support.kernels import both_ways

__all__ = ["both_ways"]  # runs the tests with kernels, and without

MORE = [
    "SELECT count(*) AS n FROM line",
    "SELECT count(*) AS n FROM line l JOIN orders o ON l.o = o.k AND o.customer < 20",
    "SELECT count(*) AS n FROM line WHERE price < 5 OR price > 95",
    "SELECT count(*) AS n, sum(amount) AS s FROM line WHERE amount > 0.005 AND discount <> 0.1 AND mode <> 'AIR'",
    "SELECT count(*) AS n FROM line WHERE discount = 0.055 OR discount >= 0.099",
    "SELECT sum(price) AS s FROM line WHERE discount < 0.055 AND part IS NOT NULL AND mode > 'M'",
    "SELECT mode, min(mode) AS a, max(part) AS b, count(part) AS c FROM line WHERE part IS NULL OR part < 9 GROUP BY 1",
    "SELECT day, max(amount) AS m, sum(price * 2) AS s FROM line WHERE mode IN ('AIR', 'FOB') GROUP BY day",
    "SELECT mode, count(DISTINCT price) AS n, min(day) AS d FROM line WHERE price >= 90 GROUP BY mode",
    "SELECT * FROM line ORDER BY mode NULLS LAST, price DESC NULLS LAST, amount NULLS LAST, o, part NULLS LAST LIMIT 7",
]  # fmt: skip


def shown(table: pa.Table) -> Counter[Any]:
    """The rows; a sum may have another type."""
    return Counter(tuple(float(one) if isinstance(one, int) else one for one in row.values())
                   for row in table.to_pylist())  # fmt: skip


@pytest.mark.parametrize("rows", [4_000, 40_000])
def test_a_scan_has_the_answer_of_duckdb(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with several morsels, and with sums in one pass over few rows."""
    monkeypatch.setattr(limits, "MORSEL_ROWS", 3_000)
    monkeypatch.setattr(at_once, "FROM", 1)
    data = tables(rows)
    engine = filled(data)
    engine.apply({"line": hj.deletes(data["line"].slice(5, rows // 50))}, time=3)
    engine.apply({"line": data["line"].slice(0, rows // 60)}, time=4)
    for time in (1, 2, 3, None):
        duck = duckdb.connect()
        for name in data:
            duck.register(name, engine.read(name, as_of=time))
        for sql in (*AGGREGATES.values(), *ROWS.values(), *MORE):
            plain = sql.removesuffix(" AS OF 1")
            found, wanted = engine.query(plain, as_of=time), duck.sql(plain).to_arrow_table()
            assert shown(found) == shown(wanted), f"as of {time}: {plain}"
