"""The user's aggregates: those that add up, and those that see a whole group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from tests.oracle.rows import bag

Row = tuple[str, int | None, str | None]


def squares(engine: hj.Engine) -> None:
    """The sum of squares, as a numeric, and so exact."""
    engine.register_aggregate("squares", takes=["bigint"], returns="numeric(38,0)",
                              lift=lambda x: {"total": pc.multiply(x, x)}, result=lambda total: total)  # fmt: skip


def geo_mean(engine: hj.Engine) -> None:
    engine.register_aggregate(
        "geo_mean", takes=["double precision"], returns="double precision",
        lift=lambda x: {"n": np.ones(len(x), np.int64), "s": np.log(x)}, result=lambda n, s: np.exp(s / n))  # fmt: skip


def listed(engine: hj.Engine) -> None:
    """What the function sees: `a*1,b*2`."""
    engine.register_aggregate("listed", takes=["text"], returns="text", function=_listed)


def _listed(rows: pa.RecordBatch, counts: Any) -> str:
    return ",".join(f"{value}*{count}" for value, count in zip(rows.column(0).to_pylist(), counts, strict=True))


def engine_with(*views: str, folder: Path | None = None) -> hj.Engine:
    """An engine with a table `t`, the three aggregates, and views v0, v1, ..."""
    engine = hj.Engine(folder, clock="own")
    engine.execute("CREATE TABLE t (k text, x bigint, s text)")
    for register in (squares, geo_mean, listed):
        register(engine)
    for number, sql in enumerate(views):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
    return engine


def table(*rows: Row) -> pa.Table:
    k, x, s = zip(*rows, strict=True)
    return pa.table({"k": pa.array(k, pa.string()), "x": pa.array(x, pa.int64()), "s": pa.array(s, pa.string())})


def text_of(rows: Sequence[Row]) -> str | None:
    found = sorted(Counter(s for _, _, s in rows if s is not None).items())
    return ",".join(f"{value}*{count}" for value, count in found) or None


def squared(rows: Sequence[Row]) -> int | None:
    return sum(x * x for _, x, _ in rows if x is not None) if any(x is not None for _, x, _ in rows) else None


ROWS = st.tuples(st.sampled_from("ab"), st.integers(-3, 3) | st.none(), st.sampled_from(("p", "q")) | st.none())
CHANGES = st.lists(st.tuples(ROWS, st.integers(0, 2), st.booleans()), max_size=4)


@given(st.lists(CHANGES, min_size=1, max_size=4), st.integers(0, 4))
def test_aggregates_equal_a_recomputation_at_every_time(batches: list[Any], fill: int) -> None:
    grouped = """SELECT k, squares(x) AS q, listed(s) AS l, squares(x) FILTER (WHERE s = 'p') AS f,
                        squares(DISTINCT x) AS d, count(*) AS n FROM t GROUP BY k"""
    engine = engine_with("SELECT squares(x), listed(s) FROM t")
    updates: list[tuple[Row, int, int]] = []
    for number, batch in enumerate(batches):
        if number == fill:
            engine.execute(f"CREATE MATERIALIZED VIEW v1 AS {grouped}")
        start, there = 10 * number, Counter[Row]()
        for row, _, diff in updates:
            there[row] += diff
        made = []
        for row, after, removes in batch:
            removes = removes and there[row] > 0
            there[row] -= removes
            made.append((row, start + (9 if removes else after), -1 if removes else 1))
        updates += made
        if made:
            rows = table(*(row for row, _, _ in made))
            rows = rows.append_column("__time", pa.array([time for _, time, _ in made]))
            engine.apply({"t": rows.append_column("__diff", pa.array([diff for _, _, diff in made]))}, close=False)
        engine.advance(to=start + 10)
    if fill >= len(batches):
        engine.execute(f"CREATE MATERIALIZED VIEW v1 AS {grouped}")
    for time in range(10 * len(batches)):
        total = Counter[Row]()
        for row, when, diff in updates:
            total[row] += diff * (when <= time)
        there_now = list(total.elements())
        assert bag(engine.read("v0", as_of=time)) == {(squared(there_now), text_of(there_now)): 1}
        expected = {}
        for key in {row[0] for row in there_now}:
            rows_of = [row for row in there_now if row[0] == key]
            once = [(key, x, None) for x in {x for _, x, _ in rows_of}]
            only = [row for row in rows_of if row[2] == "p"]
            expected[key, squared(rows_of), text_of(rows_of), squared(only), squared(once), len(rows_of)] = 1
        assert bag(engine.read("v1", as_of=time)) == expected, f"as of {time}"


def test_what_adds_up_keeps_its_sums_and_no_rows() -> None:
    engine = engine_with("SELECT k, geo_mean(x) AS g FROM t GROUP BY k")
    engine.apply({"t": table(*(("a", number, None) for number in range(1, 1001)))}, time=1)
    nodes = [one for one in engine.stats().collections if one.kind == "node"]
    assert sum(one.updates for one in nodes) == 1
    assert engine.read("v0")["g"].to_pylist() == [pytest.approx(np.exp(np.log(np.arange(1, 1001)).mean()))]


def test_a_sum_of_floats_comes_back_to_where_it_was() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (x double precision)")
    engine.register_aggregate("total", takes=["double precision"], returns="double precision",
                              lift=lambda x: {"s": x}, result=lambda s: s)  # fmt: skip
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT total(x) AS s FROM t")
    engine.apply({"t": [{"x": 0.1}, {"x": 1e16}]}, time=1)
    engine.apply({"t": hj.deletes([{"x": 1e16}])}, time=2)
    assert engine.read("v").to_pylist() == [{"s": 0.1}]


def test_a_row_with_a_null_does_not_count() -> None:
    engine = engine_with("SELECT k, squares(x) AS q, round(geo_mean(x)) AS g, listed(s) AS l FROM t GROUP BY k")
    engine.apply({"t": table(("a", None, None), ("b", 2, None), ("b", None, "p"))}, time=1)
    assert bag(engine.read("v0")) == {("a", None, None, None): 1, ("b", 4, 2.0, "p*1"): 1}


def test_no_function_is_called_for_nothing() -> None:
    engine = engine_with()
    calls: list[int] = []

    def function(rows: pa.RecordBatch, counts: Any) -> int:
        calls.append(rows.num_rows)
        return 1

    engine.register_aggregate("seen", takes=["bigint"], returns="bigint", function=function)
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT seen(x) AS n, squares(x) AS q FROM t")
    assert engine.read("v").to_pylist() == [{"n": None, "q": None}]
    engine.apply({"t": table(("a", None, None))}, time=1)
    assert engine.read("v").to_pylist() == [{"n": None, "q": None}]
    assert calls == []


def test_the_order_of_the_call_is_the_order_of_the_rows() -> None:
    engine = engine_with("SELECT listed(s ORDER BY x DESC) AS d, listed(s ORDER BY k, s DESC) AS e, listed(s) AS l, "
                         "listed(DISTINCT s ORDER BY s DESC) AS f FROM t")  # fmt: skip
    engine.apply({"t": table(("a", 1, "p"), ("a", 2, "q"), ("b", 3, "p"), ("b", 3, "p"))}, time=1)
    assert engine.read("v0").to_pylist() == [
        {"d": "p*2,q*1,p*1", "e": "q*1,p*3", "l": "p*3,q*1", "f": "q*1,p*1"}]  # fmt: skip


def test_an_aggregate_takes_several_arguments() -> None:
    engine = engine_with()
    engine.register_aggregate(
        "weighted", takes=["bigint", "double precision"], returns="double precision",
        lift=lambda x, w: {"w": w, "xw": np.asarray(x) * np.asarray(w)}, result=lambda w, xw: xw / w)  # fmt: skip
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT weighted(x, x + 1) AS m FROM t")
    engine.apply({"t": table(("a", 1, None), ("a", 3, None))}, time=1)
    assert engine.read("v").to_pylist() == [{"m": (1 * 2 + 3 * 4) / 6}]


def test_aggregates_stand_in_having_expressions_and_other_views() -> None:
    engine = engine_with("SELECT k, squares(x) + 1 AS q FROM t GROUP BY k HAVING squares(x) > 4",
                         "SELECT t.s, v0.q FROM t LEFT JOIN v0 ON v0.k = t.k",
                         "SELECT squares(q::bigint) AS q FROM (SELECT k, squares(x) AS q FROM t GROUP BY k) AS i",
                         "SELECT k, s, squares(x) AS q FROM t GROUP BY ROLLUP (k, s)")  # fmt: skip
    engine.apply({"t": table(("a", 1, "p"), ("b", 3, "q"))}, time=1)
    assert bag(engine.read("v0")) == {("b", 10): 1}
    assert bag(engine.read("v1")) == {("p", None): 1, ("q", 10): 1}
    assert bag(engine.read("v2")) == {(82,): 1}
    assert bag(engine.read("v3")) == {("a", "p", 1): 1, ("a", None, 1): 1, ("b", "q", 9): 1, ("b", None, 9): 1,
                                      (None, None, 10): 1}  # fmt: skip
    engine.apply({"t": hj.deletes(table(("b", 3, "q")))}, time=2)
    assert [bag(engine.read(f"v{number}")) for number in range(3)] == [{}, {("p", None): 1}, {(1,): 1}]


def test_windows_call_the_users_aggregates() -> None:
    engine = engine_with("""SELECT x, squares(x) OVER w AS q, listed(s) OVER w AS l, squares(x) FILTER (WHERE s = 'p')
                            OVER w AS f FROM t WINDOW w AS (ORDER BY x ROWS 1 PRECEDING)""")
    engine.apply({"t": table(("a", 1, "p"), ("a", 2, "p"), ("a", 3, "q"), ("a", 4, None))}, time=1)
    assert bag(engine.read("v0")) == {(1, 1, "p*1", 1): 1, (2, 5, "p*2", 5): 1, (3, 13, "p*1,q*1", 4): 1,
                                      (4, 25, "q*1", None): 1}  # fmt: skip
    engine.apply({"t": hj.deletes(table(("a", 2, "p")))}, time=2)
    assert bag(engine.read("v0")) == {(1, 1, "p*1", 1): 1, (3, 10, "p*1,q*1", 1): 1, (4, 25, "q*1", None): 1}


def failing(engine: hj.Engine) -> None:
    def lift(x: pa.Array) -> dict[str, Any]:
        if pc.any(pc.less(x, 0)).as_py():
            raise ValueError("below zero")
        return {"n": x}

    def function(rows: pa.RecordBatch, counts: Any) -> int:
        least: int = pc.min(rows.column(0)).as_py()
        if least < 0:
            raise ValueError(f"{least} is below zero")
        return least

    engine.register_aggregate("lifted", takes=["bigint"], returns="bigint", lift=lift, result=lambda n: n)
    engine.register_aggregate("inverse", takes=["bigint"], returns="double precision", lift=lambda x: {"n": x},
                              result=lambda n: [1 // one for one in n.tolist()])  # fmt: skip
    engine.register_aggregate("whole", takes=["bigint"], returns="bigint", function=function)


FAILURES = [
    ("lifted(x)", -1, "the lift of lifted failed: ValueError: below zero in .*, for a row with t.x = -1"),
    ("inverse(x)", 0, "the result of inverse failed: ZeroDivisionError"),
    ("whole(x)", -1, "aggregate whole failed: ValueError: -1 is below zero, for a row with k = b"),
    ("lifted(DISTINCT x)", -1, r"the lift of lifted failed: ValueError: below zero in .*, for a row with .*\.x = -1"),
    ("inverse(DISTINCT x)", 0, "the result of inverse failed: ZeroDivisionError"),
]


@pytest.mark.parametrize("fill", [True, False])
@pytest.mark.parametrize(("call", "bad", "error"), FAILURES)
def test_a_function_that_raises_is_an_error_that_heals(call: str, bad: int, error: str, fill: bool) -> None:
    engine = engine_with()
    failing(engine)
    view = f"CREATE MATERIALIZED VIEW v AS SELECT k, {call} AS y FROM t GROUP BY k"
    if not fill:
        engine.execute(view)
    engine.apply({"t": table(("a", 1, None), ("b", bad, None), ("c", bad, None))}, time=1)
    if fill:
        engine.execute(view)
    with pytest.raises(hj.DataError, match=error):
        engine.read("v")
    engine.apply({"t": hj.deletes(table(("b", bad, None)))}, time=2)
    engine.apply({"t": table(("a", 1, None))}, time=3)
    with pytest.raises(hj.DataError):
        engine.read("v")
    engine.apply({"t": hj.deletes(table(("c", bad, None)))}, time=4)
    assert {k for k, _ in bag(engine.read("v"))} == {"a"}


@pytest.mark.parametrize(("call", "bad"), [("lifted(x)", -1), ("inverse(x)", 0), ("whole(x)", -1)])
def test_a_window_whose_function_raises_is_an_error_that_heals(call: str, bad: int) -> None:
    engine = engine_with()
    failing(engine)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT k, {call} OVER (PARTITION BY k) AS y FROM t")
    wrong = table(("b", bad, None), ("c", 3 * bad, None))
    engine.apply({"t": table(("a", 1, None))}, time=1)
    engine.apply({"t": wrong}, time=2)
    with pytest.raises(hj.DataError, match="failed"):
        engine.read("v")
    engine.apply({"t": hj.deletes(wrong)}, time=3)
    assert {k for k, _ in bag(engine.read("v"))} == {"a"}


WRONG = [
    ({"lift": lambda x: {"n": np.ones(len(x) // 2, np.int64)}, "result": lambda n: n},
     "the lift of f gives 1 values of n for 2 rows|the lift of f gives 0 values of n for 1 rows"),
    ({"lift": lambda x: {"n": pc.if_else(pc.greater(x, 0), None, x)}, "result": lambda n: n},
     "gives NULL in its column n"),
    ({"lift": lambda x: {"n" if not len(x) else "m": x}, "result": lambda n: n}, "gives the columns m instead of n"),
    ({"lift": lambda x: {"n": x}, "result": lambda n: n[:0]}, "the result of f gives 0 values of value for 1 rows"),
    ({"lift": lambda x: {"n": x}, "result": lambda n: n + 0.5},
     "the result of f.value: row 0: 3.5 is not a valid bigint"),
    ({"function": lambda rows, counts: "x"}, "aggregate f returned 'x', which is not a valid bigint"),
    ({"function": lambda rows, counts: 2**70}, "aggregate f returned 1180591620717411303424, which is"),
]  # fmt: skip


@pytest.mark.parametrize(("functions", "error"), WRONG)
def test_a_wrong_result_is_an_error_that_names_the_function(functions: Any, error: str) -> None:
    engine = engine_with()
    engine.register_aggregate("f", takes=["bigint"], returns="bigint", **functions)
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT f(x) AS y FROM t")
    engine.apply({"t": table(("a", 1, None), ("a", 2, None))}, time=1)
    with pytest.raises(hj.DataError, match=error):
        engine.read("v")


def test_values_of_several_types_are_taken_one_by_one() -> None:
    engine = engine_with()
    engine.register_aggregate("f", takes=["bigint"], returns="double precision",
                              function=lambda rows, counts: {1: 1, 2: 2.5, 3: None, 4: pa.scalar(4.0)}.get(
                                  rows.column(0)[0].as_py(), np.float32(0.5)))  # fmt: skip
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT x, f(x) AS y FROM t GROUP BY x")
    engine.apply({"t": table(*(("a", x, None) for x in range(1, 6)))}, time=1)
    assert bag(engine.read("v")) == {(1, 1.0): 1, (2, 2.5): 1, (3, None): 1, (4, 4.0): 1, (5, 0.5): 1}


REFUSED = [
    ({"name": "Big"}, "is not a name for a function"),
    ({"name": "sum"}, "a function sum exists already"),
    ({"name": "rank"}, "a function rank exists already"),
    ({"name": "upper"}, "a function upper exists already"),
    ({"name": "squares"}, r"knows the aggregate squares as squares\(bigint\).*or choose another name"),
    ({"takes": "bigint"}, "takes must be a list"),
    ({"takes": []}, "at least one argument"),
    ({"takes": ["thing"]}, "type .thing. is not supported"),
    ({"takes": ["interval"]}, "neither takes nor returns intervals"),
    ({"returns": ["bigint"]}, "returns must be a SQL type"),
    ({"lift": None}, "a function, or a lift and a result"),
    ({"function": len}, "a function, or a lift and a result"),
    ({"lift": lambda x: x}, "the lift of f failed for no rows: DataError: returns a .*Array, not a dict"),
    ({"lift": lambda x: {}}, "gives no columns"),
    ({"lift": lambda x: {"n": [1] * len(x)}}, "gives a column 'n' of type null"),
    ({"lift": lambda x: {"n": pc.cast(x, pa.string())}}, "gives a column 'n' of type string"),
    ({"result": lambda m: m}, "does not take the lift's columns"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "error"), REFUSED)
def test_a_wrong_registration_is_refused(given: Any, error: str) -> None:
    engine = engine_with()
    whole = {"name": "f", "takes": ["bigint"], "returns": "bigint", "lift": lambda x: {"n": x}, "result": lambda n: n}
    with pytest.raises(hj.HalfjoinError, match=error):
        engine.register_aggregate(**{**whole, **given})
    assert "f" not in engine._state.catalog.aggregates


CALLS = [
    ("SELECT squares(s) FROM t", r"no function squares\(text\)"),
    ("SELECT squares(x, x) FROM t", "no function squares"),
    ("SELECT k FROM t WHERE squares(x) > 1", "aggregate functions are not allowed in WHERE"),
    ("SELECT squares(squares(x)) FROM t", "aggregate function calls cannot be nested"),
    ("SELECT squares(*) FROM t", "is not an aggregate"),
    ("SELECT squares(DISTINCT x) OVER () FROM t", "DISTINCT is not implemented for window functions"),
    ("SELECT listed(DISTINCT s ORDER BY x) FROM t", "must appear in argument list"),
    ("SELECT squares(x) WITHIN GROUP (ORDER BY x) FROM t", "not an ordered-set aggregate"),
    ("SELECT k, squares(x) FROM t", "must appear in the GROUP BY clause"),
]


@pytest.mark.parametrize(("sql", "error"), CALLS)
def test_a_wrong_call_is_refused_as_that_of_any_aggregate(sql: str, error: str) -> None:
    engine = engine_with()
    with pytest.raises(hj.UnsupportedSQL, match=error):
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")


def test_aggregates_are_to_be_registered_again(tmp_path: Path) -> None:
    with engine_with("SELECT squares(x) AS q FROM t", "SELECT listed(s) AS l FROM t", folder=tmp_path / "w") as engine:
        engine.apply({"t": table(("a", 2, "p"))}, time=0)
    with hj.Engine(tmp_path / "w") as engine:
        assert bag(engine.read("v0")) == {(4,): 1}
        for register in (squares, listed):
            with pytest.raises(hj.HalfjoinError, match=r"the aggregate (squares|listed) is not registered"):
                engine.apply({"t": table(("a", 3, "p"))}, time=1)
            with pytest.raises(hj.Conflict, match=r"(squares|listed)\((bigint|text)\) returning"):
                engine.register_aggregate(register.__name__, takes=["text"], returns="bigint", function=_listed)
            register(engine)
        engine.apply({"t": table(("a", 3, "p"))}, time=1)
        assert bag(engine.read("v0")) == {(13,): 1}
        assert bag(engine.read("v1")) == {("p*2",): 1}
