"""Bounds: a row that exceeds one is an error of the view, which heals. Other views and the batch go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.join.made import Made
from halfjoin.engine.updates import limits

MOST = 2**63 - 1

# An expression over `t(k bigint, n bigint, s text)`, the row for which it is too much, and what the error says.
LONG = "longer than 16,777,216 bytes"
SCALARS = [
    ("lpad('x', n::integer)", {"n": 2**31 - 1}, LONG),
    ("CASE WHEN k < 3 THEN lpad(s, 2147483647) ELSE s END", {"s": "x"}, LONG),
    ("rpad(s, n::integer, s)", {"n": 2**31 - 1, "s": "xy"}, LONG),
    ("replace(s, 'x', s)", {"s": "x" * 10_000}, LONG),
    ("replace('" + "x" * 10_000 + "', 'x', s)", {"s": "x" * 10_000}, LONG),
    ("regexp_replace(s, '(x)', '" + "y" * 10_000 + "\\1', 'g')", {"s": "x" * 10_000}, LONG),
    ("regexp_replace(s, 'x', s, 'g')", {"s": "x" * 10_000}, LONG),
    ("s || s", {"s": "x" * 10_000_000}, LONG),
    ("concat(s, NULL::text, s)", {"s": "x" * 10_000_000}, LONG),
    ("concat_ws(s, k, k, k)", {"s": "x" * 10_000_000}, LONG),
    ("cardinality(ARRAY[s, s])", {"s": "x" * 10_000_000}, LONG),
    ("cardinality(ARRAY[s] || s)", {"s": "x" * 10_000_000}, LONG),
]


@pytest.fixture
def engine() -> Iterator[hj.Engine]:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint, n bigint, s text)")
        yield engine


def lines(table: pa.Table) -> list[Any]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def row(**values: Any) -> dict[str, Any]:
    return {"k": 1, "n": None, "s": None, **values}


@pytest.mark.parametrize(("expression", "values", "reason"), SCALARS, ids=[text[:24] for text, *_ in SCALARS])
def test_a_value_too_long_is_an_error_of_its_row(
    engine: hj.Engine, expression: str, values: dict[str, Any], reason: str
) -> None:
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT k, {expression} AS x FROM t")
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
    engine.apply({"t": [row(**values), row(k=2, n=3, s=None), row(k=3, n=1, s="x")]})
    assert lines(engine.read("w")) == [(1,), (2,), (3,)]
    with pytest.raises(hj.DataError, match=reason) as problem:
        engine.read("v")
    assert len(str(problem.value)) < 30_000
    engine.apply({"t": hj.deletes([row(**values)])})
    left = lines(engine.read("v"))
    assert [k for k, _ in left] == [2, 3] and left == lines(engine.query(f"SELECT k, {expression} AS x FROM t"))


def test_concat_past_the_bound_leaves_the_nulls_of_other_rows(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k, concat(s, s) AS x FROM t")
    big = row(s="x" * 10_000_000)
    engine.apply({"t": [big, row(k=2), row(k=3, s="a")]})
    engine.apply({"t": hj.deletes([big])})
    assert lines(engine.read("v")) == [(2, ""), (3, "aa")]


def test_case_and_filters_see_values_too_long(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE s || s <> 'x'")
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k, CASE WHEN k = 1 THEN 'a' ELSE s || s END AS x FROM t")
    engine.apply({"t": [row(s="x" * 10_000_000)]})
    with pytest.raises(hj.DataError, match=LONG):
        engine.read("v")
    assert lines(engine.read("w")) == [(1, "a")]
    engine.execute("DELETE FROM t")
    assert lines(engine.read("v")) == []


def test_a_query_past_a_bound_leaves_the_engine_usable(engine: hj.Engine) -> None:
    engine.apply({"t": [row(s="x", n=2**31 - 1)]})
    for sql in ("SELECT lpad(s, 2147483647) FROM t", "SELECT count(*) FROM t, generate_series(1, 2000000000)",
                "SELECT lpad(s, n::integer) FROM t", "SELECT lpad('x', 2147483647)"):
        with pytest.raises(hj.DataError):
            engine.query(sql)
    assert lines(engine.query("SELECT k FROM t")) == [(1,)]


def boom(batch: pa.RecordBatch) -> Any:
    """Double the argument. Raises if it is negative, and returns garbage if it is over 100."""
    values = batch.column(0).to_pylist()
    if min(values) < 0:
        raise ValueError("no negative numbers")
    if max(values) > 1000:
        return "garbage"
    if max(values) > 100:
        return pa.RecordBatch.from_pydict({"__row": [len(values)], "y": [0]})
    rows = pa.array(range(len(values)), pa.int64())
    return pa.RecordBatch.from_pydict({"__row": rows, "y": pa.array([2 * value for value in values], pa.int64())})


TABLES = [
    ("SELECT k, g FROM t, generate_series(1, n) AS g", 2 * 10**9, "generate_series makes 2,000,000,000 rows of one"),
    ("SELECT k, y FROM t, boom(n) AS b(y)", -5, r"boom failed: ValueError: no negative numbers in .* with t.n = -5"),
    ("SELECT k, y FROM t, boom(n) AS b(y)", 500, r"boom gave __row outside 0..0 in boom\(t.n\), .* with t.n = 500"),
    ("SELECT k, y FROM t, boom(n) AS b(y)", 5000, r"boom must return .* with t.n = 5000"),
]


@pytest.mark.parametrize(("query", "n", "reason"), TABLES, ids=[f"{text[17:40]} {n}" for text, n, _ in TABLES])
def test_a_table_function_that_fails_fails_for_its_row(
    engine: hj.Engine, query: str, n: int, reason: str
) -> None:
    engine.register_table_function("boom", boom, returns={"y": "bigint"})
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
    good = [row(k=k, n=k) for k in range(2, 6)]
    engine.apply({"t": [good[0], row(n=n), *good[1:]]})
    assert len(lines(engine.read("w"))) == 5
    with pytest.raises(hj.DataError, match=reason):
        engine.read("v")
    engine.apply({"t": hj.deletes([row(n=n)])})
    found = lines(engine.read("v"))
    engine.execute(f"CREATE MATERIALIZED VIEW anew AS {query}")
    assert found and found == lines(engine.read("anew"))



def weighed(k: int, diff: int, **values: Any) -> dict[str, Any]:
    return {"k": k, "__diff": diff, **values}


def test_weights_past_int64_are_an_error_of_the_row(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE u (k bigint)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a.k FROM u a JOIN u b ON a.k = b.k JOIN u c ON b.k = c.k")
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k FROM u")
    engine.apply({"u": [weighed(1, 2**31), weighed(2, 2)]})
    assert engine.read("w", multiplicity=True).num_rows == 2
    with pytest.raises(hj.DataError, match=r"weights of joined rows multiply .* for a row with .*k = 1"):
        engine.read("v")
    engine.apply({"u": [weighed(1, -(2**30))]})  # in pieces: each of them is joined with what is left
    with pytest.raises(hj.DataError, match="multiply"):
        engine.read("v")
    engine.apply({"u": [weighed(1, -(2**30))]})
    assert lines(engine.read("v", multiplicity=True)) == [(2, 8)]


def test_repeat_row_past_int64_is_an_error_of_the_row(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k FROM t, repeat_row(n)")
    engine.apply({"t": [row(n=MOST), row(n=MOST), row(k=2, n=3), {**row(k=3, n=MOST), "__diff": -3}]})
    with pytest.raises(hj.DataError):
        engine.read("v", multiplicity=True)
    engine.execute("DELETE FROM t WHERE k = 1")
    engine.apply({"t": [{**row(k=3, n=MOST), "__diff": 3}]})
    assert lines(engine.read("v", multiplicity=True)) == [(2, 3)]


def test_a_row_that_moves_out_of_a_failing_join_heals_it(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE a (x bigint, y bigint); CREATE TABLE b (x bigint, y bigint)")
    engine.execute("CREATE MATERIALIZED VIEW many AS SELECT x, y FROM a, repeat_row(1099511627776)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a.x, b.y FROM many a, b, t WHERE a.x = b.x AND b.y = t.k")
    engine.apply({"a": [{"x": 1, "y": 1}], "b": [{"x": 1, "y": 9, "__diff": 2**31}], "t": [row(k=8)]})
    assert lines(engine.read("v")) == []  # no complete row has such a weight
    engine.apply({"t": [row(k=9)]})
    with pytest.raises(hj.DataError, match="multiply"):
        engine.read("v")
    engine.apply({"b": [{"x": 1, "y": 9, "__diff": -(2**31)}]})
    assert lines(engine.read("v")) == []


def test_a_join_of_too_long_texts_fails_its_view_alone(
    engine: hj.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made.take
    widest = []
    monkeypatch.setattr(limits, "MOST_BYTES", 1 << 22)
    monkeypatch.setattr(limits, "PIECE_BYTES", 1 << 20)
    monkeypatch.setattr(Made, "take", lambda self, part: (widest.append(nbytes(part)), made(self, part)))
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a.s, b.s AS other FROM t a, t b")
    engine.execute("CREATE MATERIALIZED VIEW by_key AS SELECT a.s, b.s AS other FROM t a JOIN t b ON a.k = b.k")
    engine.execute("CREATE MATERIALIZED VIEW above AS SELECT other FROM v")
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT n FROM t")
    engine.apply({"t": [row(n=n, s=f"{n:030000}") for n in range(40)]}, time=5)  # 96 MB
    assert max(widest) <= 1 << 21 and len(lines(engine.read("w"))) == 40
    most = "one batch would change more than 4,194,304 bytes of rows of"
    for name, view, why in (
        ("v", "v", r"its join has no equality that looks t up, so each row meets all 40 rows there"),
        ("by_key", "by_key", r"in the arrangement t\(k\) the key \(1\) finds 40 rows"),
        ("above", "v", "its join has no equality"),
    ):
        with pytest.raises(hj.DataError, match=f"{most} {view}: {why}.* from time 5 on"):
            engine.read(name)
    engine.apply({"t": [row(k=2)]}, time=6)
    with pytest.raises(hj.DataError, match="drop it and create it anew"):
        engine.read("v")
    with pytest.raises(hj.DataError, match="the query would hold more than 4,194,304 bytes of rows: its join"):
        engine.query("SELECT a.s, b.s AS other FROM t a, t b")
    assert len(lines(engine.read("w"))) == 41


def nbytes(part: Any) -> int:
    return sum(column.nbytes for column in part.columns.values())


def test_sums_past_int64_in_the_future_stop_nobody(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT s FROM t, repeat_row(4611686018427387904)")
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT n FROM t WHERE k = 2")
    for n in range(3):
        engine.apply({"t": [{**row(n=n, s="x"), "__time": 100}]}, close=False)
    engine.apply({"t": [{**row(k=2, n=7), "__time": 3}]})
    engine.advance(200)
    assert lines(engine.read("w")) == [(7,)]
    with pytest.raises(hj.DataError, match="add up to more than an int64 holds"):
        engine.read("v", multiplicity=True)


def test_a_query_past_the_budget_is_an_error_without_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with hj.Engine(memory="64MB") as engine:
        engine.execute("CREATE TABLE t (k bigint, s text)")
        texts = [f"{k * 7919 % 1000003:040d}" for k in range(400_000)]
        engine.apply({"t": pa.table({"k": range(400_000), "s": texts})})
        lags = ", ".join(f"lag(s, {n}) OVER (ORDER BY s, k) AS s{n}" for n in range(1, 9))
        with pytest.raises(hj.DataError, match="the query needs more memory than the engine may use"):
            engine.query(f"SELECT k, {lags} FROM t")
        assert lines(engine.query("SELECT count(*) FROM t")) == [(400_000,)] and not list(tmp_path.iterdir())
