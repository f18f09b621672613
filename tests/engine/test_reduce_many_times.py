"""A batch that closes many times, as a history loaded at once does: functions of groups see about as many rows as there
are, not each row at each later time."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import contents, front, regions, shown
from halfjoin.engine.updates import limits, updates

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
    "places": "SELECT g, percentile_cont(0.3) WITHIN GROUP (ORDER BY x DESC) FILTER (WHERE s IS NULL) AS a,"
              " percentile_disc(ARRAY[0, 0.6, NULL, 1]) WITHIN GROUP (ORDER BY x) AS b,"
              " percentile_cont(0.75) WITHIN GROUP (ORDER BY f) AS c FROM t GROUP BY g",
    "texts": "SELECT string_agg(s, '-' ORDER BY x, s) AS a, percentile_disc(0.4) WITHIN GROUP (ORDER BY s) AS b,"
             " array_agg(DISTINCT x) AS c FROM t",
    "beside": "SELECT *, lag(s) OVER w AS a, lead(x, 2, -1) OVER w AS b FROM t WINDOW w AS (PARTITION BY g ORDER BY x)",
    "frames": "SELECT *, sum(x) OVER w AS a, last_value(s) OVER w AS b, nth_value(x, 2) OVER w AS c FROM t"
              " WINDOW w AS (ORDER BY f, x ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING)",
    "here": "SELECT *, max(s) OVER (ORDER BY x ROWS CURRENT ROW) AS a FROM t",
    "fails": "SELECT *, nth_value(s, CASE WHEN x = 5 AND f = 0.5 THEN 0 ELSE 1 END)"
             " OVER (ORDER BY g, x ROWS 1 PRECEDING) AS a FROM t",
    "peers": "SELECT *, count(s) OVER (PARTITION BY g ORDER BY x RANGE CURRENT ROW) AS a,"
             " lag(x, 1) IGNORE NULLS OVER (PARTITION BY g ORDER BY x) AS b FROM t",
    "sums": "SELECT *, sum(x) OVER (PARTITION BY g ORDER BY x ROWS UNBOUNDED PRECEDING) AS a FROM t",
    "share": "SELECT *, cume_dist() OVER (ORDER BY x) AS a, max(x) OVER () AS b FROM t",
    "rest": "SELECT * FROM t ORDER BY x, s, f OFFSET 3",
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
    for room in (front, regions):
        monkeypatch.setattr(room, "LARGE", [1, 4, 256][seed % 3])
    batches = _batches(Random(seed), negative=negative)
    monkeypatch.setattr(contents, "is_worth", lambda moments: False)
    expected = _answers(batches)
    monkeypatch.setattr(contents, "is_worth", lambda moments: True)
    monkeypatch.setattr(shown, "is_worth", lambda near, sizes: True)
    monkeypatch.setattr(limits, "PIECE_ROWS", [1 << 20, 1, 30][seed // 2])
    assert _answers(batches) == expected


@pytest.mark.parametrize(("view", "most"), [
    ("SELECT max(x) AS a FROM t", 6),
    ("SELECT g, min(x) AS a FROM t GROUP BY g", 6),
    ("SELECT * FROM t ORDER BY x DESC LIMIT 3", 8),
    ("SELECT * FROM (SELECT x, row_number() OVER (ORDER BY x DESC) AS n FROM t) q WHERE n <= 3", 14),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS a FROM t", 1),
    ("SELECT g, percentile_disc(0.9) WITHIN GROUP (ORDER BY x DESC) AS a FROM t GROUP BY g", 1),
    ("SELECT *, lag(x) OVER (PARTITION BY g ORDER BY x) AS a FROM t", 12),
    ("SELECT *, sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a FROM t", 12),
])  # fmt: skip
@pytest.mark.parametrize("waiting", [False, True])
def test_many_times_at_once_show_few_rows(monkeypatch: pytest.MonkeyPatch, view: str, most: int, waiting: bool) -> None:
    seen, length = _seen(monkeypatch), 3_000
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (g bigint, x bigint)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {view}")
    rows = pa.table({"g": [0] * length, "x": range(length), "__time": range(length)})
    engine.apply({"t": rows}, close=not waiting)
    if waiting:
        engine.advance(to=length)
    assert 0 < sum(seen) <= most * length


@pytest.mark.parametrize("view", [
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS a FROM t",
    "SELECT *, lead(x) OVER (ORDER BY x) AS a FROM t",
])  # fmt: skip
@pytest.mark.parametrize("late", [False, True])
def test_many_times_of_a_large_group_show_few_rows(monkeypatch: pytest.MonkeyPatch, view: str, late: bool) -> None:
    seen, length = _seen(monkeypatch), 1_000
    engine = hj.Engine(clock="own", retain=2 * length)
    engine.execute("CREATE TABLE t (x bigint)")
    engine.apply({"t": pa.table({"x": range(0, 40 * length, 2)})}, time=0)
    if not late:
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {view}")
    seen.clear()
    engine.apply({"t": pa.table({"x": range(1, 40 * length, 40), "__time": range(1, length + 1)})})
    if late:
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {view}")
    assert 0 < sum(seen) <= 4 * (20 * length)


@pytest.mark.parametrize("view", [
    "SELECT *, sum(x) OVER (ORDER BY x) AS a FROM t",
    "SELECT *, cume_dist() OVER (ORDER BY x) AS a FROM t",
    "SELECT array_agg(x ORDER BY x) AS a, string_agg(x::text, ',' ORDER BY x) AS b FROM t",
    "SELECT * FROM t ORDER BY x OFFSET 1",
])  # fmt: skip
def test_rows_at_many_times_come_in_pieces(monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    seen, length = _seen(monkeypatch), 600
    monkeypatch.setattr(limits, "PIECE_ROWS", 10_000)
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (x bigint)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {view}")
    engine.apply({"t": pa.table({"x": range(length), "__time": range(length)})})
    assert max(seen) <= 10_000 + length and sum(seen) >= length * length // 2


@pytest.mark.parametrize("view", [
    "SELECT array_agg(x ORDER BY x) AS a FROM t",
    "SELECT string_agg(x::text, ',' ORDER BY x) AS a FROM t",
])  # fmt: skip
def test_values_of_pieces_that_do_not_fit_together_fail_their_view_alone(
    monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    monkeypatch.setattr(contents, "is_worth", lambda moments: True)
    monkeypatch.setattr(shown, "is_worth", lambda near, sizes: True)
    monkeypatch.setattr(limits, "PIECE_ROWS", 1_000)
    seen, length = _seen(monkeypatch), 600
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (x bigint)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {view}")
    engine.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t")
    monkeypatch.setattr(updates, "ARRAY_BYTES", 50_000)
    engine.apply({"t": pa.table({"x": range(length), "__time": range(length)})})
    assert engine.read("n").to_pylist() == [{"n": length}]
    with pytest.raises(hj.DataError, match="the values of one column would take more than"):
        engine.read("v")
    assert 0 < sum(seen) < length * length // 4  # the others are not made in vain


def test_arrays_have_no_more_elements_than_their_offsets_count(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, twice = pa.array([[1, 2, 3], None, [4]]), pa.array([0, 2, 1, 0])
    assert updates.gather(arrays, twice).to_pylist() == [[1, 2, 3], [4], None, [1, 2, 3]]
    monkeypatch.setattr(updates, "ARRAY_BYTES", 6)
    for gather in (updates.gather, lambda array, at: updates.gathered({"a": array}, at)):
        with pytest.raises(hj.DataError, match="the values of one column would take more than"):
            gather(arrays, twice)


@pytest.mark.parametrize("offset", [30, 400])
def test_rows_near_changes_come_in_pieces_and_only_if_they_are_few(
    monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    found, plain, length = list[int](), shown.nearby, 600

    def counted(*given: Any) -> contents.Contents:
        near = plain(*given)
        assert near.lasting is not None
        found.append(len(near.lasting.which))
        return near

    monkeypatch.setattr(contents, "is_worth", lambda moments: True)
    monkeypatch.setattr(shown, "nearby", counted)
    monkeypatch.setattr(limits, "PIECE_ROWS", 5_000)
    engine = hj.Engine(clock="own", retain=length)
    engine.execute("CREATE TABLE t (x bigint)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT x, lag(x, {offset}) OVER (ORDER BY x) AS a FROM t")
    numbers = list(range(length))
    Random(1).shuffle(numbers)
    engine.apply({"t": pa.table({"x": numbers, "__time": range(length)})})
    assert len(found) >= 10 and max(found) <= 5_000 if offset == 30 else not found
    for time in (0, 100, 311, length - 1):
        rows = sorted(numbers[: time + 1])
        expected = [(x, rows[place - offset] if place >= offset else None) for place, x in enumerate(rows)]
        assert sorted((row["x"], row["a"]) for row in engine.read("v", as_of=time).to_pylist()) == expected


def test_rows_come_where_a_function_no_longer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "is_worth", lambda moments: True)
    monkeypatch.setattr(shown, "is_worth", lambda near, sizes: True)
    engine = hj.Engine(clock="own", retain=100)
    engine.execute("CREATE TABLE t (x bigint, n integer)")
    engine.execute("CREATE MATERIALIZED VIEW v AS"
                   " SELECT x, nth_value(x, n) OVER (ORDER BY x ROWS 1 PRECEDING) AS a FROM t")  # fmt: skip
    engine.apply({"t": [{"x": x, "n": int(x > 0)} for x in range(9)]}, time=0)
    with pytest.raises(hj.DataError):
        engine.read("v")
    engine.apply({"t": [{"x": x, "n": 1, "__time": x} for x in range(20, 40)]})
    engine.apply({"t": [{"x": 0, "n": 0, "__time": 50, "__diff": -1}]})
    expected = [(1, 1), *((x, x - 1) for x in range(2, 9)), (20, 8), *((x, x - 1) for x in range(21, 40))]
    assert sorted((row["x"], row["a"]) for row in engine.read("v").to_pylist()) == expected


def _seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of all contents that are made from now on."""
    seen, plain = list[int](), contents.Contents.__init__

    def counted(self: contents.Contents, *given: Any, **more: Any) -> None:
        plain(self, *given, **more)
        seen.append(len(self.rows))

    monkeypatch.setattr(contents.Contents, "__init__", counted)
    return seen
