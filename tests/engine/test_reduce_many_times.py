"""A batch that closes many times, as a history loaded at once does: functions of groups see about as many rows as there
are, not each row at each later time."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import contents, front

COLUMNS = {"g": pa.int64(), "x": pa.int64(), "s": pa.string(), "f": pa.float64()}
VIEWS = {
    "most": "SELECT g, max(x) AS a, min(f) FILTER (WHERE x > 2) AS b, count(*) AS n FROM t GROUP BY g",
    "value": "SELECT any_value(s ORDER BY x DESC, f) AS a, percentile_disc(0.5) WITHIN GROUP (ORDER BY x) AS b FROM t",
    "top": "SELECT * FROM t ORDER BY x DESC NULLS LAST, s LIMIT 3",
    "skip": "SELECT g, x FROM t ORDER BY f NULLS FIRST LIMIT 2 OFFSET 2",
    "ties": "SELECT * FROM t ORDER BY x FETCH FIRST 3 ROWS WITH TIES",
    "each": "SELECT DISTINCT ON (g) g, s, x FROM t ORDER BY g, s DESC NULLS LAST, f",
    "whole": "SELECT g, array_agg(x ORDER BY s, x) AS a, mode() WITHIN GROUP (ORDER BY x) AS b FROM t GROUP BY g",
    "numbers": "SELECT *, row_number() OVER (PARTITION BY g ORDER BY x) AS n FROM t",
    "first": "SELECT * FROM (SELECT x, f, row_number() OVER (ORDER BY x, f) AS n FROM t) q WHERE n <= 3",
}
Row = dict[str, Any]


def _batches(random: Random, *, negative: bool) -> list[tuple[pa.Table, int]]:
    """Batches of rows that come and go at many times, some after the batch; and up to where each closes times."""
    there, batches, time = list[tuple[Row, int]](), list[tuple[pa.Table, int]](), 0
    for _ in range(4):
        rows, end = [], time + random.choice([1, 5, 20])
        for _ in range(random.choice([1, 8, 40])):
            at = random.randrange(time, end + (10 if random.random() < 0.2 else 0))
            if there and random.random() < 0.45:
                row, came = there.pop(random.randrange(len(there)))
                rows.append({**row, "__time": max(at, came), "__diff": -1})
                continue
            row = {"g": random.choice([0, 0, 0, 1, None]), "x": random.choice([None, *range(6)]),
                   "s": random.choice([None, "", "a"]), "f": random.choice([None, float("nan"), 0.5])}  # fmt: skip
            there.append((row, at))
            rows.append({**row, "__time": at, "__diff": 1})
        if negative:
            rows.append({**random.choice(rows), "__time": random.randrange(time, end), "__diff": -1})
        schema = pa.schema([*COLUMNS.items(), ("__time", pa.int64()), ("__diff", pa.int64())])
        batches.append((pa.Table.from_pylist(rows, schema=schema), end))
        time = end
    return batches


def _answers(batches: list[tuple[pa.Table, int]]) -> dict[tuple[str, int], object]:
    """The contents of all views at all times; for some views made before the batches, for others after them."""
    engine, found = hj.Engine(clock="own", retain=1_000), dict[tuple[str, int], object]()
    engine.execute("CREATE TABLE t (g bigint, x bigint, s text, f double precision)")
    for name, sql in VIEWS.items():
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    for rows, end in batches:
        engine.apply({"t": rows}, close=False)
        engine.advance(to=end)
    for name, sql in VIEWS.items():
        engine.execute(f"CREATE MATERIALIZED VIEW late_{name} AS {sql}")
    for view in (*VIEWS, *(f"late_{name}" for name in VIEWS)):
        for time in range(batches[-1][1]):
            try:
                found[view, time] = sorted(map(repr, engine.read(view, as_of=time, multiplicity=True).to_pylist()))
            except hj.DataError as problem:
                found[view, time] = str(problem).split(" for a row")[0]
    return found


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_few_rows_at_each_time_answer_as_all(monkeypatch: pytest.MonkeyPatch, seed: int, negative: bool) -> None:
    monkeypatch.setattr(front, "LARGE", [1, 4, 256][seed % 3])
    batches = _batches(Random(seed), negative=negative)
    monkeypatch.setattr(contents, "is_worth", lambda moments: False)
    expected = _answers(batches)
    monkeypatch.setattr(contents, "is_worth", lambda moments: True)
    assert _answers(batches) == expected


@pytest.mark.parametrize(("view", "most"), [
    ("SELECT max(x) AS a FROM t", 6),
    ("SELECT g, min(x) AS a FROM t GROUP BY g", 6),
    ("SELECT * FROM t ORDER BY x DESC LIMIT 3", 8),
    ("SELECT * FROM (SELECT x, row_number() OVER (ORDER BY x DESC) AS n FROM t) q WHERE n <= 3", 14),
])  # fmt: skip
@pytest.mark.parametrize("waiting", [False, True])
def test_many_times_at_once_show_few_rows(monkeypatch: pytest.MonkeyPatch, view: str, most: int, waiting: bool) -> None:
    seen, plain, length = 0, contents.Contents.__init__, 3_000

    def counted(self: contents.Contents, *given: Any, **more: Any) -> None:
        nonlocal seen
        plain(self, *given, **more)
        seen += len(self.rows)

    monkeypatch.setattr(contents.Contents, "__init__", counted)
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (g bigint, x bigint)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {view}")
    rows = pa.table({"g": [0] * length, "x": range(length), "__time": range(length)})
    engine.apply({"t": rows}, close=not waiting)
    if waiting:
        engine.advance(to=length)
    assert 0 < seen <= most * length
