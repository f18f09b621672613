"""View law where batches close many times: percentiles, windows and collected values are those of DuckDB at each time,
however the updates are split into batches, and whatever is made of them at once."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import contents, front, regions, shown
from halfjoin.engine.updates import limits

COLUMNS = {"g": pa.int64(), "x": pa.int64(), "s": pa.string()}
# In DuckDB NULLs come last in both directions.
VIEWS = {
    "places": "SELECT g, percentile_cont(0.3) WITHIN GROUP (ORDER BY x) AS a,"
              " percentile_disc(0.25) WITHIN GROUP (ORDER BY x DESC) AS b,"
              " percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS c FROM t GROUP BY g",
    "alone": "SELECT percentile_disc(0.6) WITHIN GROUP (ORDER BY s) AS a FROM t",
    "texts": "SELECT g, string_agg(s, '-' ORDER BY x, s) AS a, array_agg(x ORDER BY s, x) AS b FROM t GROUP BY g",
    "beside": "SELECT *, lag(s, 2) OVER w AS a, lead(x) OVER w AS b FROM t WINDOW w AS (PARTITION BY g ORDER BY x, s)",
    "frames": "SELECT *, sum(x) OVER w AS a, first_value(s) OVER w AS b, count(*) OVER w AS c FROM t"
              " WINDOW w AS (PARTITION BY g ORDER BY s, x ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "sums": "SELECT *, sum(x) OVER (PARTITION BY g ORDER BY x, s ROWS UNBOUNDED PRECEDING) AS a FROM t",
    "numbers": "SELECT *, row_number() OVER (ORDER BY g, x, s) AS a FROM t",
}  # fmt: skip
LAST = 90
Row = tuple[Any, ...]
Update = tuple[Row, int, int]


def _updates(random: Random) -> list[Update]:
    """Rows that come and go, several copies at once, at many times; more of them at the first one."""
    there, found = list[tuple[Row, int]](), list[Update]()
    for _ in range(random.choice([20, 250])):
        row = (random.choice([0, 0, 0, 1, None]), random.choice([None, *range(12)]), random.choice([None, "a", "b"]))
        time, copies = max(random.randrange(-LAST // 3, LAST), 0), random.choice([1, 1, 1, 3])
        found.append((row, time, copies))
        there += [(row, time)] * copies
        if random.random() < 0.5:
            row, came = there.pop(random.randrange(len(there)))
            found.append((row, random.randrange(came, LAST), -1))
    return found


def _apply(engine: hj.Engine, updates: list[Update], random: Random) -> None:
    """All updates, those between two times in one or several batches that leave their times open."""
    cuts = sorted({*random.sample(range(1, LAST), random.choice([0, 1, 4])), LAST})
    for start, end in zip([0, *cuts[:-1]], cuts, strict=True):
        mine = [one for one in updates if start <= one[1] < end]
        random.shuffle(mine)
        parts = random.choice([1, 3])
        for number in range(parts):
            rows = [dict(zip((*COLUMNS, "__time", "__diff"), (*row, time, diff), strict=True))
                    for row, time, diff in mine[number::parts]]  # fmt: skip
            schema = pa.schema([*COLUMNS.items(), ("__time", pa.int64()), ("__diff", pa.int64())])
            engine.apply({"t": pa.Table.from_pylist(rows, schema=schema)}, close=False)
        engine.advance(to=end)


def _plain(rows: list[Row]) -> Counter[str]:
    return Counter(repr([int(value) if isinstance(value, Decimal) else round(value, 9) if isinstance(value, float)
                         else value for value in row]) for row in rows)  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_every_time_of_a_batch_is_duckdbs(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random = Random(seed)
    for room in (front, regions):
        monkeypatch.setattr(room, "LARGE", random.choice([1, 4, 256]))
    monkeypatch.setattr(limits, "PIECE_ROWS", random.choice([1, 20, 300, 1 << 20]))
    monkeypatch.setattr(contents, "is_worth", lambda moments: True)
    monkeypatch.setattr(shown, "is_worth", lambda near, sizes: True)
    updates, engine = _updates(random), hj.Engine(clock="own", retain=LAST)
    engine.execute("CREATE TABLE t (g bigint, x bigint, s text)")
    for name, sql in VIEWS.items():
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    _apply(engine, updates, random)
    for name, sql in VIEWS.items():
        engine.execute(f"CREATE MATERIALIZED VIEW late_{name} AS {sql}")
    duck = duckdb.connect()
    for time in (0, *random.sample(range(LAST), 12), LAST - 1):
        there = Counter[Row]()
        for row, at, diff in updates:
            there[row] += diff if at <= time else 0
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in there.elements()]
        duck.register("t", pa.Table.from_pylist(rows, schema=pa.schema(COLUMNS)))
        for name, sql in VIEWS.items():
            expected = _plain(duck.sql(sql).fetchall())
            for view in (name, f"late_{name}"):
                table = engine.read(view, as_of=time)
                found = _plain(list(zip(*(column.to_pylist() for column in table.columns), strict=True)))
                assert found == expected, f"{view} at {time}"
