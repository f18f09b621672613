"""Table functions row by row: corner cases give the results of PostgreSQL."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj


@pytest.fixture(scope="module")
def engine():
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE one (a bigint, b bigint, c bigint, s text, e integer[])")
        yield engine


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        ("generate_series(1, 3)", [1, 2, 3]),
        ("generate_series(1, 0)", []),
        ("generate_series(3, 1, -1)", [3, 2, 1]),
        ("generate_series(1, 6, 2)", [1, 3, 5]),
        ("generate_series(1, NULL)", []),
        ("generate_series(9223372036854775806, 9223372036854775807)", [2**63 - 2, 2**63 - 1]),
        ("generate_series(-9223372036854775807, 9223372036854775806, 9223372036854775807)", [-(2**63) + 1, 0]),
        (
            "generate_series(timestamp '2024-01-31', timestamp '2024-04-30', interval '1 month')",
            [dt.datetime(2024, 1, 31), dt.datetime(2024, 2, 29), dt.datetime(2024, 3, 29), dt.datetime(2024, 4, 29)],
        ),
        (
            "generate_series(timestamp '2024-01-02', timestamp '2024-01-01', interval '-12 hours')",
            [dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 1, 12), dt.datetime(2024, 1, 1)],
        ),
        ("unnest(ARRAY[1, NULL, 3])", [1, None, 3]),
        ("unnest(NULL::integer[])", []),
        ("regexp_split_to_table('a1b22c', '[0-9]+')", ["a", "b", "c"]),
        ("regexp_split_to_table('abc', '')", ["a", "b", "c"]),
        ("regexp_split_to_table(',a,', ',')", ["", "a", ""]),
        ("regexp_split_to_table(NULL, ',')", []),
    ],
)
def test_rows_in_their_order(engine, call, rows):
    made = engine.query(f"SELECT f.x, f.n FROM {call} WITH ORDINALITY AS f(x, n)").to_pylist()
    ordered = sorted(made, key=lambda row: row["n"])
    assert [row["x"] for row in ordered] == rows
    assert [row["n"] for row in ordered] == list(range(1, len(rows) + 1))


@pytest.mark.parametrize(
    ("call", "row", "why"),
    [
        ("generate_series(1, 5, t.c)", {"c": 0}, "step size cannot equal zero in generate_series(1, 5, t.c)"),
        ("regexp_split_to_table('x', t.s)", {"s": "z("}, "invalid regular expression: regular expression 'z(': a ( "
         "without ) in regexp_split_to_array('x', t.s)"),
    ],
)  # fmt: skip
def test_what_fails_for_a_row_goes_away_with_it(call, row, why):
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (c bigint, s text)")
        engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT t.c, f.x FROM t, {call} AS f(x)")
        engine.apply({"t": [row]}, time=1)
        with pytest.raises(hj.DataError) as caught:
            engine.read("v")
        assert why in str(caught.value)
        engine.apply({"t": hj.deletes([row])}, time=2)
        assert engine.read("v").num_rows == 0


def test_a_series_that_would_fill_the_memory_is_an_error(engine):
    with pytest.raises(hj.DataError, match=r"makes 1,000,000,000,001 rows of one, the most are 10,000,000"):
        engine.query("SELECT * FROM generate_series(0, 1000000000000) AS g")


def _few(values):
    if len(values) > 2:
        raise ValueError("too many at once")
    return values


def test_a_function_that_refuses_many_rows_at_once_loses_none():
    with hj.Engine(clock="own") as engine:
        engine.register_table_function("p", lambda batch: pa.RecordBatch.from_pydict(
            {"y": _few(batch.column(0)), "__row": np.arange(len(batch))}), returns={"y": "bigint"})  # fmt: skip
        engine.register_aggregate("m", takes=["bigint"], returns="bigint", lift=lambda x: {"s": _few(x)},
                                  result=lambda s: _few(s))  # fmt: skip
        engine.execute("""
            CREATE TABLE t (x bigint);
            CREATE MATERIALIZED VIEW v AS SELECT t.x, p.y FROM t, p(t.x) AS p (y);
            CREATE MATERIALIZED VIEW w AS SELECT x, m(x) AS s FROM t GROUP BY x
        """)
        engine.apply({"t": [{"x": x} for x in range(9)]}, time=1)
        for view in "vw":
            assert sorted(tuple(row.values()) for row in engine.read(view).to_pylist()) == [(x, x) for x in range(9)]
        engine.apply({"t": [{"x": x, "__diff": -1} for x in range(9)]}, time=2)
        assert engine.read("v").num_rows == engine.read("w").num_rows == 0
