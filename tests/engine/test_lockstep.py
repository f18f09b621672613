"""ROWS FROM, and several set-returning calls in one SELECT list: the calls run in lockstep, as in PostgreSQL."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from tests.oracle.rows import Bag, bag

pytest_plugins = ("tests.support.postgres",)

TABLE = "CREATE TABLE t (k bigint, a bigint[], b text[])"
ROWS = [(1, [1, 2], ["p"]), (3, None, ["x", "y"]), (0, [], None), (2, [7, None, 9], ["r", None])]
QUERIES = """
SELECT k, r.* FROM t, ROWS FROM (unnest(a), unnest(b), generate_series(1, k)) WITH ORDINALITY AS r (x, y, z, n);
SELECT k, x, y FROM t, unnest(a, b) AS u (x, y);
SELECT k, x, y, o FROM t, unnest(b, a) WITH ORDINALITY AS u (x, y, o) WHERE o > 1;
SELECT * FROM ROWS FROM (generate_series(1, 2), generate_series(5, 7)) AS r (x, y);
SELECT x, y FROM ROWS FROM (generate_series(1, 0), generate_series(1, 0)) AS r (x, y);
SELECT g, n FROM ROWS FROM (generate_series(4, 6)) WITH ORDINALITY AS g (g, n);
SELECT k, r.* FROM t LEFT JOIN LATERAL ROWS FROM (unnest(a), unnest(b)) WITH ORDINALITY AS r (x, y, n) ON n > 1;
SELECT k, x, y FROM t, LATERAL ROWS FROM (unnest(a), unnest(b)) AS r (x, y);
SELECT generate_series AS s, r.unnest AS u FROM t, ROWS FROM (generate_series(1, 2), unnest(a)) AS r;
SELECT generate_series.unnest AS u FROM t, ROWS FROM (generate_series(1, k), unnest(b));
SELECT k, unnest(a) AS x, unnest(b) AS y, generate_series(1, k) + 1 AS z FROM t;
SELECT k, unnest(a) AS x, unnest(a) AS y FROM t;
SELECT k, generate_series(1, generate_series(1, k)) AS x, generate_series(2, 4) AS y FROM t;
SELECT generate_series(1, 2) + generate_series(1, 4) AS x, generate_series(k, generate_series(1, 3)) AS y FROM t;
SELECT unnest(array_agg(k ORDER BY k)) AS x, unnest(array_agg(-k ORDER BY k)) AS y, count(*) AS n FROM t;
SELECT DISTINCT unnest(b) AS x, generate_series(1, 2) AS y FROM t;
SELECT k, x, y, z FROM t JOIN ROWS FROM (generate_series(1, 3), generate_series(2, 3)) AS r (x, y) ON r.y = t.k
    CROSS JOIN unnest(t.b) AS z;
SELECT t.k, s.k AS l FROM t, ROWS FROM (unnest(t.a), generate_series(1, t.k)) AS r (x, y), t AS s WHERE s.k = r.y
"""


def engine_of(*views: str) -> hj.Engine:
    engine = hj.Engine(clock="own")
    engine.execute(TABLE)
    for number, sql in enumerate(views):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
    return engine


def table(*rows: Any) -> pa.Table:
    columns = zip(*rows, strict=True)
    types = pa.int64(), pa.list_(pa.int64()), pa.list_(pa.string())
    return pa.table({name: pa.array(column, type) for name, column, type in zip("kab", columns, types, strict=True)})


@pytest.fixture(scope="module")
def filled(postgres_of_module: Any) -> Any:
    postgres_of_module.execute(TABLE)
    for row in ROWS:
        postgres_of_module.execute("INSERT INTO t VALUES (%s, %s, %s)", row)
    return postgres_of_module


@pytest.mark.parametrize("query", [" ".join(query.split()) for query in QUERIES.split(";")])
def test_lockstep_gives_what_postgresql_gives(query: str, filled: Any) -> None:
    engine = engine_of(query)
    engine.apply({"t": table(*ROWS)}, time=1)
    assert bag(engine.read("v0")) == Counter(filled.execute(query).fetchall())


ARRAYS = st.lists(st.integers(0, 2) | st.none(), max_size=3) | st.none()
CHANGES = st.lists(st.tuples(ARRAYS, ARRAYS, st.integers(0, 3), st.sampled_from((1, 2, -1))), min_size=1, max_size=5)


def paired(a: Any, b: Any) -> list[tuple[Any, Any, int]]:
    a, b = a or [], b or []
    longest = max(len(a), len(b))
    padded = [[*one, *[None] * (longest - len(one))] for one in (a, b)]
    return [(x, y, n) for n, (x, y) in enumerate(zip(*padded, strict=True), 1)]


@given(CHANGES)
def test_a_change_of_a_row_changes_its_results(changes: list[tuple[Any, Any, int, int]]) -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (a bigint[], b bigint[])")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT x, y, n FROM t, unnest(a, b) WITH ORDINALITY AS u (x, y, n)")
    a, b, time, diff = zip(*changes, strict=True)
    arrays = {"a": pa.array(a, pa.list_(pa.int64())), "b": pa.array(b, pa.list_(pa.int64()))}
    engine.apply({"t": pa.table({**arrays, "__time": pa.array(time), "__diff": pa.array(diff)})})
    for now in range(4):
        expected: Bag = Counter()
        for one, other, when, weight in changes:
            for row in paired(one, other):
                expected[row] += weight * (when <= now)
        found = bag(engine.read("v", as_of=min(now, max(time)), multiplicity=True))
        assert found == {row: count for row, count in expected.items() if count}


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each x twice; it fails for x above 100, and above 10 a result has the weight 2."""
    x = batch.column(0).to_pylist()
    if any(value > 100 for value in x):
        raise ValueError("too large")
    rows = [row for row in range(len(x)) for _ in range(2)]
    weights = [1 + (x[row] > 10) for row in rows]
    return pa.RecordBatch.from_pydict(
        {"__row": pa.array(rows), "y": pa.array([x[row] for row in rows]), "z": pa.array([-x[row] for row in rows]),
         "__diff": pa.array(weights)})  # fmt: skip


@pytest.fixture
def with_function() -> hj.Engine:
    engine = engine_of()
    engine.register_table_function("doubled", doubled, returns={"y": "bigint", "z": "bigint"})
    engine.execute("""CREATE MATERIALIZED VIEW v AS SELECT k, r.* FROM t,
                      ROWS FROM (generate_series(1, 3), doubled(k), generate_series(1, 10, k))
                      WITH ORDINALITY AS r (g, y, z, h, n)""")
    return engine


def test_the_users_functions_stand_in_lockstep(with_function: hj.Engine) -> None:
    with_function.apply({"t": table((5, None, None))}, time=1)
    rows = [(5, 1, 5, -5, 1, 1), (5, 2, 5, -5, 6, 2), (5, 3, None, None, None, 3)]
    assert bag(with_function.read("v")) == dict.fromkeys(rows, 1)


@pytest.mark.parametrize(("bad", "error"), [
    (101, "table function doubled failed: ValueError: too large in ROWS FROM"),
    (11, "a function that gives times or weights cannot be called together with others in ROWS FROM"),
    (0, "step size cannot equal zero in ROWS FROM"),
])  # fmt: skip
def test_a_row_for_which_a_part_fails_is_an_error_that_heals(with_function: hj.Engine, bad: int, error: str) -> None:
    with_function.apply({"t": table((5, None, None), (bad, None, None))}, time=1)
    with pytest.raises(hj.DataError, match=error):
        with_function.read("v")
    with_function.apply({"t": hj.deletes(table((bad, None, None)))}, time=2)
    assert len(with_function.read("v")) == 3


WRONG = [
    ("SELECT * FROM ROWS FROM (repeat_row(2), generate_series(5, 7)) AS r", "repeat_row gives no columns"),
    ("SELECT unnest(a, b) FROM t", r"no table function unnest\(bigint\[\], text\[\]\)"),
    ("SELECT unnest(a), repeat_row(1) FROM t", "repeat_row has no columns, so it is not a value"),
    ("SELECT CASE WHEN k > 1 THEN unnest(a) END, unnest(a) FROM t", "not allowed in a conditional expression"),
    ("SELECT r.unnest FROM t, ROWS FROM (unnest(a), unnest(b)) AS r", "column unnest is ambiguous"),
    ("SELECT * FROM ROWS FROM (generate_series(1, 2) AS (x int), generate_series(5, 7)) AS r", "in ROWS FROM"),
    ("SELECT * FROM ROWS FROM (now(), generate_series(5, 7)) AS r", "now: its answer changes with the clock"),
    ("SELECT * FROM ROWS FROM (unnest(a), unnest(b)) AS r (x, y, z), t", "."),
    ("SELECT * FROM t, ROWS FROM (unnest(a), unnest(b)) AS r (x, y, z)", "r has 2 columns, but 3 names are given"),
    ("SELECT * FROM unnest() AS r", r"no table function unnest\(\)"),
]


@pytest.mark.parametrize(("sql", "error"), WRONG)
def test_wrong_calls_in_lockstep_are_refused(sql: str, error: str) -> None:
    with pytest.raises(hj.HalfjoinError, match=error):
        engine_of(sql)


def test_explain_names_each_call() -> None:
    engine = engine_of("SELECT k, r.* FROM t, ROWS FROM (unnest(a), unnest(b)) AS r (x, y)")
    assert "each row with ROWS FROM(unnest(t.a), unnest(t.b)) AS r(x, y)" in engine.explain("v0")


def test_queries_run_calls_in_lockstep() -> None:
    engine = engine_of()
    engine.apply({"t": table(*ROWS)}, time=1)
    assert bag(engine.query("SELECT unnest(a) AS x, unnest(b) AS y FROM t WHERE k = 1")) == {(1, "p"): 1, (2, None): 1}
    assert bag(engine.query("SELECT x, y FROM t, unnest(a, b) AS u (x, y) WHERE k = 1")) == {(1, "p"): 1, (2, None): 1}
