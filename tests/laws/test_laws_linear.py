"""The linear law: (row, time, diff) yields (row2, max(time, time2), diff * diff2) for each result of the logic."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from tests.oracle.rows import bag, changes

STREAMS = st.lists(
    st.tuples(st.integers(-2, 5) | st.none(), st.integers(0, 4), st.sampled_from((1, 1, 2, -1))), min_size=1, max_size=8
)


def engine_with(*views: str) -> hj.Engine:
    """An engine with a table `t (x bigint)`, and views v0, v1, ... over it."""
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (x bigint)")
    for number, sql in enumerate(views):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
    return engine


def batch(stream: list[tuple[int | None, int, int]]) -> pa.Table:
    x, time, diff = zip(*stream, strict=True)
    return pa.table({"x": pa.array(x, pa.int64()), "__time": pa.array(time, pa.int64()), "__diff": pa.array(diff)})


def happens(sql: str, stream: list[tuple[int | None, int, int]]) -> Counter[tuple[object, ...]]:
    """All changes of the view: (row..., time) -> diff."""
    engine = engine_with(sql)
    reported = changes(engine.apply({"t": batch(stream)}), "v0") + changes(engine.advance(to=100), "v0")
    return Counter({(*row, time): diff for row, time, diff in reported})


def expected(stream: list[tuple[int | None, int, int]], logic: object) -> Counter[tuple[object, ...]]:
    total: Counter[tuple[object, ...]] = Counter()
    for x, time, diff in stream:
        for row, time2, diff2 in logic(x):  # type: ignore[operator]
            total[(*row, max(time, time2))] += diff * diff2
    return Counter({key: diff for key, diff in total.items() if diff})


LOGIC = {
    "map": ("SELECT x * 2 AS y FROM t", lambda x: [((None if x is None else 2 * x,), 0, 1)]),
    "filter": ("SELECT x FROM t WHERE x > 1", lambda x: [((x,), 0, 1)] if x is not None and x > 1 else []),
    "flat_map": ("SELECT x, g FROM t, generate_series(1, x) AS g",
                 lambda x: [((x, g), 0, 1) for g in range(1, (x or 0) + 1)]),
    "explode": ("SELECT x FROM t, repeat_row(x)", lambda x: [((x,), 0, x)] if x else []),
    "temporal": ("SELECT x FROM t WHERE mz_now() >= x AND mz_now() < 3 * x",
                 lambda x: [((x,), x, 1), ((x,), 3 * x, -1)] if x is not None and x < 3 * x else []),
    "two in a row": ("SELECT g * 10 AS y FROM t, generate_series(1, x) AS g, repeat_row(g - 2) WHERE mz_now() >= g",
                     lambda x: [((10 * g,), g, g - 2) for g in range(1, (x or 0) + 1) if g != 2]),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGIC)
@given(stream=STREAMS)
def test_linear_law(name: str, stream: list[tuple[int | None, int, int]]) -> None:
    sql, logic = LOGIC[name]
    assert happens(sql, stream) == expected(stream, logic)


def test_repeat_row_is_weight_and_not_copies() -> None:
    engine = engine_with()
    answer = engine.query("SELECT abs(g) AS a FROM generate_series(-1, 2) AS g, repeat_row(g)")
    assert answer.column("a").to_pylist() == [2, 2]


def test_repeat_row_may_be_negative() -> None:
    engine = engine_with("SELECT x FROM t, repeat_row(-3)")
    engine.apply({"t": pa.table({"x": [7]})}, time=0)
    assert bag(engine.read("v0", multiplicity=True)) == {(7,): -3}


def pulse(arguments: pa.RecordBatch) -> pa.RecordBatch:
    """The row 2x, x times, from time 3x until 4x."""
    x = arguments.column(0)
    row = np.arange(len(x))
    both = pa.array(np.concatenate([row, row]))
    weight = x.to_numpy(zero_copy_only=False)
    times = np.concatenate([3 * weight, 4 * weight])
    diffs = np.concatenate([weight, -weight])
    return pa.RecordBatch.from_pydict(
        {"y": pc.multiply(x.take(both), 2), "__row": both, "__time": pa.array(times), "__diff": pa.array(diffs)}
    )


def test_x_copies_of_2x_from_time_3x_until_4x() -> None:
    engine = engine_with()
    engine.register_table_function("pulse", pulse, returns={"y": "bigint"})
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT p.y FROM t, pulse(t.x) AS p(y)")
    engine.apply({"t": pa.table({"x": [1, 2, 4]})}, time=0)
    engine.advance(to=30)
    for time in range(30):
        present = {x for x in (1, 2, 4) if 3 * x <= time < 4 * x}
        assert bag(engine.read("v", as_of=time)) == {(2 * x,): x for x in present}, f"as of {time}"


@given(STREAMS)
def test_fused_equals_unfused(stream: list[tuple[int | None, int, int]]) -> None:
    inner = "SELECT x + 1 AS x FROM t WHERE x > 0"
    middle = "SELECT x, g FROM {} AS i, generate_series(0, i.x) AS g WHERE mz_now() < x + g"
    outer = "SELECT x * g AS y FROM {} AS m, repeat_row(x - 3) WHERE mz_now() >= g"
    engine = engine_with(outer.format(f"({middle.format(f'({inner})')})"))
    engine.execute(f"CREATE MATERIALIZED VIEW one AS {inner}")
    engine.execute(f"CREATE MATERIALIZED VIEW two AS {middle.format('one')}")
    engine.execute(f"CREATE MATERIALIZED VIEW three AS {outer.format('two')}")
    for applied in (engine.apply({"t": batch(stream)}), engine.advance(to=40)):
        assert sorted(changes(applied, "v0")) == sorted(changes(applied, "three"))
