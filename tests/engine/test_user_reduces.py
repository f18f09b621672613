"""The user's reduces: what their functions see, what they may return, and what is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import halfjoin as hj
from tests.oracle.rows import bag

Function = Callable[[pa.RecordBatch], Any]
Seen = list[dict[str, list[Any]]]


def engine_with(folder: Path | None = None, **functions: Function) -> hj.Engine:
    """An engine with a table `t`, and reduces that return a bigint n."""
    engine = hj.Engine(folder, clock="own")
    engine.execute("CREATE TABLE IF NOT EXISTS t (k text, x bigint)")
    for name, function in functions.items():
        engine.register_reduce(name, function, returns={"n": "bigint"}, vectorised=name.startswith("all"))
    return engine


def rows(*pairs: tuple[str | None, int | None]) -> list[dict[str, Any]]:
    return [{"k": k, "x": x} for k, x in pairs]


def count(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": [pc.sum(batch["__diff"]).as_py()]})


def noting(seen: Seen) -> Function:
    """A function that notes what it sees."""

    def call(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(batch.to_pydict())
        return count(batch)

    return call


def test_a_function_sees_a_group_with_counts_in_order() -> None:
    seen: Seen = []
    engine = engine_with(f=noting(seen))
    engine.execute("""CREATE MATERIALIZED VIEW v AS
                      SELECT r.* FROM f(TABLE t PARTITION BY k ORDER BY x DESC NULLS LAST) AS r""")
    engine.apply({"t": rows(("a", 1), ("a", None), ("a", 3), ("a", 1), (None, 2))}, time=1)
    assert sorted(seen, key=str) == [
        {"k": ["a", "a", "a"], "x": [3, 1, None], "__diff": [1, 2, 1]},
        {"k": [None], "x": [2], "__diff": [1]},
    ]  # fmt: skip
    assert bag(engine.read("v")) == {(4,): 1, (1,): 1}


def test_the_key_columns_come_first() -> None:
    seen: Seen = []
    engine = engine_with(f=noting(seen))
    engine.execute("""CREATE MATERIALIZED VIEW v AS
                      SELECT * FROM f(TABLE t AS s (a, b) PARTITION BY b ORDER BY a || 'x')""")
    engine.apply({"t": rows(("b", 1), ("a", 1))}, time=1)
    assert [list(one.items()) for one in seen] == [[("b", [1, 1]), ("a", ["a", "b"]), ("__diff", [1, 1])]]


def test_a_vectorised_function_sees_all_changed_groups_at_once() -> None:
    seen: Seen = []

    def whole(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(batch.to_pydict())
        sums = pa.TableGroupBy(pa.Table.from_batches([batch]), "__group").aggregate([("__diff", "sum")])
        return sums.rename_columns(["__group", "n"]).to_batches()[0]

    engine = engine_with(all_of=whole)
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT r.k, r.n FROM all_of(TABLE t PARTITION BY k) AS r")
    engine.apply({"t": rows(("a", 1), ("a", 2), ("b", 3), ("c", 4))}, time=1)
    engine.apply({"t": [*rows(("c", 4), ("d", 1)), {"k": "a", "x": 2, "__diff": -1}]}, time=2)
    assert seen[0] == {"k": ["a", "a", "b", "c"], "x": [1, 2, 3, 4], "__diff": [1] * 4, "__group": [0, 0, 1, 2]}
    assert len(seen) == 2 and seen[1]["__group"] == [0, 1, 2]
    assert sorted(zip(seen[1]["k"], seen[1]["__diff"], strict=True)) == [("a", 1), ("c", 2), ("d", 1)]
    assert bag(engine.read("v")) == {("a", 1): 1, ("b", 1): 1, ("c", 2): 1, ("d", 1): 1}


def test_a_batch_calls_the_function_once_for_each_changed_group() -> None:
    seen: Seen = []
    engine = engine_with(f=noting(seen))
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT r.k, r.n FROM f(TABLE t PARTITION BY k) AS r")
    engine.apply({"t": rows(*((k, x) for k in "abcdef" for x in range(3)))}, time=1)
    seen.clear()
    engine.apply({"t": [*rows(("a", 9)), *({"k": "b", "x": x, "__diff": -1} for x in range(3))]}, time=2)
    assert [one["k"][0] for one in seen] == ["a"]  # b has no rows left, and what it was is stored
    assert bag(engine.read("v")) == {("a", 4): 1, **{(k, 3): 1 for k in "cdef"}}


def test_what_was_returned_goes_whatever_the_function_says_now() -> None:
    numbers = iter(range(100))
    engine = engine_with(f=lambda batch: pa.RecordBatch.from_pydict({"n": [next(numbers)]}))  # not deterministic
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT r.k, r.n FROM f(TABLE t PARTITION BY k) AS r")
    for time in range(1, 5):
        engine.apply({"t": rows(("a", time))}, time=time)
        assert engine.read("v").num_rows == 1
    engine.apply({"t": hj.deletes(rows(*(("a", time) for time in range(1, 5))))}, time=9)
    assert engine.read("v").num_rows == 0


def test_rows_have_weights() -> None:
    def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"n": [1, 2, 1, 3], "__diff": pa.array([2, 0, 1, 1], pa.int32())})

    engine = engine_with(f=twice)
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT n FROM f(TABLE t PARTITION BY k)")
    engine.apply({"t": rows(("a", 1), ("b", 1))}, time=1)
    assert bag(engine.read("v")) == {(1,): 6, (3,): 2}


@pytest.mark.parametrize("name", ["f", "all_of"])
@pytest.mark.parametrize("nothing", [pa.RecordBatch.from_pylist([]), pa.table({})])
def test_no_rows_need_no_columns(name: str, nothing: Any) -> None:
    engine = engine_with(**{name: lambda batch: nothing})
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT r.k, r.n FROM {name}(TABLE t PARTITION BY k) AS r")
    engine.apply({"t": rows(("a", 1), ("b", 1))}, time=1)
    assert engine.read("v").num_rows == 0


def test_columns_have_the_types_that_were_promised() -> None:
    engine = engine_with()
    types = {"i": "integer", "n": "numeric(10,2)", "m": "numeric", "d": "double precision", "s": "varchar(3)",
             "t": "timestamp", "a": "bigint[]", "b": "boolean", "u": "uuid"}  # fmt: skip
    value = {"i": 1, "n": 2, "m": 3, "d": -0.0, "s": "abc", "t": "2024-01-01 10:00", "a": [1, None], "b": True,
             "u": "00000000-0000-0000-0000-000000000001"}  # fmt: skip
    engine.register_reduce("f", lambda batch: pa.RecordBatch.from_pylist([value]), returns=types)
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM f(TABLE t)")
    engine.apply({"t": rows(("a", 1))}, time=1)
    assert engine.read("v").to_pylist() == [
        {**value, "n": Decimal(2), "m": Decimal(3), "d": 0.0, "t": dt.datetime(2024, 1, 1, 10)}]  # fmt: skip


def test_groups_may_return_columns_of_different_types() -> None:
    def small(batch: pa.RecordBatch) -> pa.Table:
        kind = pa.int8() if batch["k"][0].as_py() == "a" else pa.int64()
        return pa.table({"n": pa.array([7], kind)})

    engine = engine_with(f=small)
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT r.k, r.n FROM f(TABLE t PARTITION BY k) AS r")
    engine.apply({"t": rows(("a", 1), ("b", 1))}, time=1)
    assert bag(engine.read("v")) == {("a", 7): 1, ("b", 7): 1}


def test_star_has_what_is_returned_and_names_find_the_partition() -> None:
    engine = engine_with(f=count)
    engine.register_reduce("own", lambda batch: pa.RecordBatch.from_pydict({"k": ["mine"]}), returns={"k": "text"})
    engine.execute("CREATE TABLE u (k text, y bigint)")
    engine.apply({"t": rows(("a", 1)), "u": [{"k": "a", "y": 5}, {"k": "b", "y": 6}]}, time=1)

    def columns(sql: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = engine.query(sql).to_pylist()
        return found

    assert columns("SELECT * FROM f(TABLE t PARTITION BY k) AS r") == [{"n": 1}]
    assert columns("SELECT k, r.* FROM f(TABLE t PARTITION BY k) AS r (m)") == [{"k": "a", "m": 1}]
    assert columns("SELECT r.k FROM own(TABLE t PARTITION BY k) AS r") == [{"k": "mine"}]
    assert columns("SELECT * FROM u JOIN f(TABLE t PARTITION BY k) AS r USING (k)") == [{"k": "a", "y": 5, "n": 1}]
    assert columns("SELECT y, r.k FROM u LEFT JOIN f(TABLE t PARTITION BY k) AS r ON r.k = u.k ORDER BY y") == [
        {"y": 5, "k": "a"}, {"y": 6, "k": None}]  # fmt: skip
    assert columns("SELECT k FROM u, f(TABLE t PARTITION BY k) AS r ORDER BY k") == [{"k": "a"}, {"k": "b"}]  # u's


def test_equal_calls_of_two_views_are_one_node() -> None:
    seen: Seen = []
    engine = engine_with(f=noting(seen))
    called = "f(TABLE t PARTITION BY k ORDER BY x)"
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT r.k, r.n FROM {called} AS r")
    engine.execute(f"CREATE MATERIALIZED VIEW w AS SELECT max(c) AS c FROM {called} AS q (c)")
    engine.apply({"t": rows(("a", 1), ("b", 1))}, time=1)
    assert len(seen) == 2
    assert "call f(k, x) for each changed group ordered by x" in engine.explain("v")


def choosy(batch: pa.RecordBatch) -> pa.RecordBatch:
    if pc.any(pc.less(batch["x"], 0)).as_py():
        raise ValueError("below zero")
    return count(batch)


def choosy_groups(batch: pa.RecordBatch) -> pa.RecordBatch:
    if pc.any(pc.less(batch["x"], 0)).as_py():
        raise ValueError("below zero")
    groups = pc.unique(batch["__group"])
    return pa.RecordBatch.from_pydict({"n": [1] * len(groups), "__group": groups})


@pytest.mark.parametrize("fill", [True, False])
@pytest.mark.parametrize(("name", "function"), [("f", choosy), ("all_of", choosy_groups)])
def test_a_function_that_raises_is_an_error_that_heals(name: str, function: Function, fill: bool) -> None:
    engine = engine_with(**{name: function})
    view = f"CREATE MATERIALIZED VIEW v AS SELECT r.k FROM {name}(TABLE t PARTITION BY k) AS r"
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
    if not fill:
        engine.execute(view)
    engine.apply({"t": rows(("a", 1), ("b", -1), ("b", 2), ("c", -5), ("d", 1))}, time=1)
    if fill:
        engine.execute(view)
    with pytest.raises(hj.DataError, match=f"reduce {name} failed: ValueError: below zero, for a row with k = [bc]"):
        engine.read("v")
    assert engine.read("w").num_rows == 5
    engine.apply({"t": hj.deletes(rows(("b", -1)))}, time=2)
    engine.apply({"t": rows(("a", 2))}, time=3)
    with pytest.raises(hj.DataError, match="for a row with k = c"):
        engine.read("v")
    engine.apply({"t": hj.deletes(rows(("c", -5)))}, time=4)
    assert {k for (k,) in bag(engine.read("v"))} == {"a", "b", "d"}
    with pytest.raises(hj.DataError, match="below zero"):
        engine.read("v", as_of=3)
    engine.apply({"t": rows(("a", -1))}, time=5)
    with pytest.raises(hj.DataError, match="for a row with k = a"):
        engine.read("v")


@pytest.mark.parametrize("name", ["f", "all_of"])
def test_no_row_of_a_group_with_a_negative_count_is_shown(name: str) -> None:
    engine = engine_with(f=count, all_of=choosy_groups)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT r.k FROM {name}(TABLE t PARTITION BY k) AS r")
    engine.apply({"t": [{"k": "a", "x": 1, "__diff": -1}, {"k": "b", "x": 1}]}, time=1)
    with pytest.raises(hj.DataError, match=r"negative count .*k = a, x = 1"):
        engine.read("v")
    engine.apply({"t": rows(("a", 1))}, time=2)
    assert bag(engine.read("v")) == {("b",): 1}


def of(**columns: Any) -> Function:
    return lambda batch: pa.RecordBatch.from_pydict(columns)


WRONG = [
    ("f", lambda batch: None, "reduce f must return a RecordBatch, not a NoneType"),
    ("f", lambda batch: {"n": [1]}, "reduce f must return a RecordBatch, not a dict"),
    ("f", of(m=[1]), r"reduce f returned the columns \(m\) instead of \(n\)"),
    ("f", of(n=[1], __time=[1]), r"reduce f returned the columns \(n, __time\) instead of \(n\)"),
    ("f", lambda batch: batch, r"reduce f returned the columns \(k, x, __diff\) instead of \(n\)"),
    ("f", of(n=["one"]), "reduce f.n: row 0: 'one' is not a valid bigint"),
    ("f", of(n=[0.5]), "reduce f.n: row 0: 0.5 is not a valid bigint"),
    ("f", of(n=[1, 2], __diff=[1, None]), "reduce f: column __diff must be integers without NULL"),
    ("f", of(n=[1], __diff=[1.5]), "reduce f: column __diff must be integers without NULL"),
    ("all_of", of(n=[1]), r"reduce all_of returned the columns \(n\) instead of \(n, __group\)"),
    ("all_of", of(n=[1], __group=[3]), r"reduce all_of gave __group outside 0..0"),
    ("all_of", of(n=[1], __group=[-1]), r"reduce all_of gave __group outside 0..0"),
    ("all_of", of(n=[1], __group=pa.array([None], pa.int64())), "column __group must be integers without NULL"),
    ("all_of", of(n=["one"], __group=[0]), "reduce all_of.n: row 0: 'one' is not a valid bigint"),
]


@pytest.mark.parametrize(("name", "function", "error"), WRONG)
def test_a_wrong_result_is_an_error_of_the_group(name: str, function: Function, error: str) -> None:
    def some(batch: pa.RecordBatch) -> Any:
        """The wrong result for the group b, and nothing for another."""
        if "b" in batch["k"].to_pylist():
            return function(batch)
        groups = {"__group": pa.array([], pa.int64())} if "__group" in batch.schema.names else {}
        return pa.RecordBatch.from_pydict({"n": pa.array([], pa.int64()), **groups})

    engine = engine_with(**{name: some})
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT r.k FROM {name}(TABLE t PARTITION BY k) AS r")
    engine.apply({"t": rows(("a", 1), ("b", 2), ("c", 3))}, time=1)
    with pytest.raises(hj.DataError, match=f"{error}.*, for a row with k = b"):
        engine.read("v")
    engine.apply({"t": hj.deletes(rows(("b", 2)))}, time=2)
    assert engine.read("v").num_rows == 0


def test_rows_that_come_and_go_by_themselves_change_their_group() -> None:
    engine = engine_with(f=count)
    engine.execute("""CREATE MATERIALIZED VIEW v AS
                      SELECT r.k, r.n FROM f(TABLE (SELECT k, x FROM t WHERE mz_now() < x) PARTITION BY k) AS r""")
    engine.apply({"t": rows(("a", 5), ("a", 7), ("b", 4), ("b", 1))}, time=2)
    engine.advance(to=10)
    sizes = {time: bag(engine.read("v", as_of=time)) for time in (1, 2, 3, 4, 5, 6, 7, 8)}
    assert sizes[1] == sizes[7] == sizes[8] == {}
    assert sizes[2] == sizes[3] == {("a", 2): 1, ("b", 1): 1}
    assert sizes[4] == {("a", 2): 1}
    assert sizes[5] == sizes[6] == {("a", 1): 1}


def test_negative_weights_of_a_result_are_an_error_of_the_reader() -> None:
    engine = engine_with(f=of(n=[1], __diff=[-1]))
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT n FROM f(TABLE t)")
    engine.apply({"t": rows(("a", 1))}, time=1)
    assert engine.read("v", multiplicity=True).to_pylist() == [{"n": 1, "__diff": -1}]
    with pytest.raises(hj.DataError, match="v holds a row -1 times"):
        engine.read("v")


def test_no_rows_and_no_partition_is_no_group() -> None:
    engine = engine_with(f=count)
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT n FROM f(TABLE t)")
    assert engine.read("v").num_rows == 0
    engine.apply({"t": rows(("a", 1))}, time=1)
    assert engine.read("v").to_pylist() == [{"n": 1}]
    engine.apply({"t": hj.deletes(rows(("a", 1)))}, time=2)
    assert engine.read("v").num_rows == 0


def test_a_reopened_warehouse_asks_for_the_function(tmp_path: Path) -> None:
    engine = engine_with(tmp_path, f=count)
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT r.k, r.n FROM f(TABLE t PARTITION BY k) AS r")
    engine.apply({"t": rows(("a", 1))}, time=1)
    engine.close()
    engine = hj.Engine(tmp_path, clock="own")
    assert bag(engine.read("v")) == {("a", 1): 1}
    with pytest.raises(hj.HalfjoinError, match=r"the reduce f is not registered.*register_reduce\('f', ...\)"):
        engine.apply({"t": rows(("a", 2))}, time=2)
    with pytest.raises(hj.HalfjoinError, match="the reduce f is not registered"):
        engine.query("SELECT n FROM f(TABLE t)")
    with pytest.raises(hj.Conflict, match=r"the warehouse knows the reduce f with the columns \(n bigint\)"):
        engine.register_reduce("f", count, returns={"n": "text"})
    with pytest.raises(hj.Conflict, match="a function f exists already"):
        engine.register_table_function("f", count, returns={"n": "bigint"})
    engine.register_reduce("f", count, returns={"n": "bigint"})
    engine.apply({"t": rows(("a", 2))}, time=2)
    assert bag(engine.read("v")) == {("a", 2): 1}
    engine.close()


REFUSED = [
    ({"name": "Big"}, "is not a name for a function"),
    ({"name": "sum"}, "a function sum exists already"),
    ({"name": "rank"}, "a function rank exists already"),
    ({"name": "upper"}, "a function upper exists already"),
    ({"name": "unnest"}, "a function unnest exists already"),
    ({"name": "f", "returns": {"n": "text"}}, "knows the reduce f with the columns"),
    ({"function": 1}, "1 cannot be called"),
    ({"returns": {}}, "must name the result's columns"),
    ({"returns": {"__diff": "bigint"}}, "none of which begins with __"),
    ({"returns": "bigint"}, "returns must be a dict"),
    ({"returns": {"x": "thing"}}, "type .thing. is not supported"),
]


@pytest.mark.parametrize(("given", "error"), REFUSED)
def test_a_wrong_registration_is_refused(given: Any, error: str) -> None:
    engine = engine_with(f=count)
    with pytest.raises(hj.HalfjoinError, match=error):
        engine.register_reduce(**{"name": "g", "function": count, "returns": {"n": "bigint"}, **given})
    assert list(engine._state.catalog.reductions) == ["f"]
    with pytest.raises(hj.Conflict, match="a function f exists already"):
        engine.register_aggregate("f", takes=["bigint"], returns="bigint", function=lambda rows, counts: 1)


CALLS = [
    ("SELECT * FROM nope(TABLE t)", "unknown reduce 'nope'"),
    ("SELECT * FROM generate_series(TABLE t)", "generate_series takes values of each row, not a TABLE"),
    ("SELECT * FROM sum(TABLE t)", "sum is an aggregate, which takes no TABLE"),
    ("SELECT * FROM sum(1)", "sum is an aggregate, which is not allowed in FROM"),
    ("SELECT * FROM t, f(t.x)", "f is a reduce, which takes a table"),
    ("SELECT * FROM ROWS FROM (f(TABLE t), f(TABLE t))", "f is a reduce, which takes a table"),
    ("SELECT f(x) FROM t", "f is a reduce, which is not a value"),
    ("SELECT f(TABLE t) FROM t", "f is a reduce, which is not a value"),
    ("SELECT count(TABLE t) FROM t", "TABLE is the argument of a reduce, in FROM"),
    ("SELECT * FROM f(TABLE t, 3)", "f takes one table, and no other argument"),
    ("SELECT * FROM f(TABLE t) WITH ORDINALITY", "ORDINALITY is not supported in FROM"),
    ("SELECT * FROM f(TABLE t PARTITION BY sum(x))", "aggregate functions are not allowed here"),
    ("SELECT * FROM f(TABLE t PARTITION BY mz_now())", "mz_now"),
    ("SELECT * FROM f(TABLE t PARTITION BY y)", "unknown column 'y'"),
    ("SELECT * FROM f(TABLE nope)", "unknown table or view 'nope'"),
    ("SELECT * FROM f(TABLE)", "syntax error"),
    ("SELECT * FROM f(TABLE t ORDER BY x LIMIT 3)", "syntax error at 'LIMIT'"),
    ("SELECT * FROM f(TABLE (SELECT k AS a, x AS a FROM t))", "the column a, whose name is not the only one"),
    ("SELECT * FROM f(TABLE (SELECT x AS __diff FROM t))", "cannot take the column __diff, whose name begins with __"),
    ("SELECT * FROM f(TABLE t ORDER BY mz_now())", "mz_now"),
    ("SELECT r.x FROM f(TABLE t PARTITION BY k) AS r", "unknown column 'r.x'"),
    ("SELECT * FROM f(TABLE t) AS r (a, b)", "r has 1 columns, but 2 names are given"),
]


@pytest.mark.parametrize(("sql", "error"), CALLS)
def test_a_wrong_call_is_refused(sql: str, error: str) -> None:
    engine = engine_with(f=count)
    with pytest.raises(hj.HalfjoinError, match=error):
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    assert engine._state.catalog.names() == ("t",)


def test_an_insert_may_call_a_reduce() -> None:
    engine = engine_with(f=count)
    engine.apply({"t": rows(("a", 1), ("a", 2), ("b", -1))}, time=1)
    engine.execute("SET TIME = 2; INSERT INTO t SELECT k, n + 10 FROM f(TABLE t PARTITION BY k)")
    assert sorted(tuple(row.values()) for row in engine.read("t").to_pylist()) == [
        ("a", 1), ("a", 2), ("a", 12), ("b", -1), ("b", 11)]  # fmt: skip


def test_a_reduce_stands_wherever_a_relation_may() -> None:
    engine = engine_with(f=count)
    engine.execute("CREATE TABLE u (k text, y bigint); CREATE VIEW p AS SELECT k, x FROM t WHERE x > 0")
    engine.execute("CREATE VIEW sizes (c, s) AS SELECT k, n FROM f(TABLE t PARTITION BY k)")
    engine.apply({"t": rows(("a", 1), ("a", 2), ("b", -1)), "u": [{"k": "a", "y": 2}, {"k": "c", "y": 0}]}, time=1)
    answers = {
        "SELECT r.k, n FROM f(TABLE p PARTITION BY k) AS r": {("a", 2)},
        "SELECT k FROM u WHERE EXISTS (SELECT FROM f(TABLE t PARTITION BY k) AS r WHERE r.k = u.k)": {("a",)},
        "SELECT k FROM u WHERE y NOT IN (SELECT n FROM f(TABLE t PARTITION BY k))": {("c",)},
        "SELECT k, (SELECT n FROM f(TABLE (SELECT * FROM t WHERE t.k = u.k)) LIMIT 1) FROM u": {("a", 2), ("c", None)},
        "SELECT n FROM f(TABLE (VALUES (1), (2)))": {(2,)},
        "SELECT n FROM f(TABLE (SELECT FROM t))": {(3,)},
        "SELECT c, sum(s) FROM sizes GROUP BY c": {("a", 2), ("b", 1)},
        "SELECT n FROM f(TABLE (SELECT k FROM t UNION SELECT k FROM u))": {(3,)},
        "SELECT n FROM f(TABLE (t JOIN (SELECT y FROM u) AS u ON u.y = t.x))": {(1,)},
        "SELECT n FROM f(TABLE generate_series(1, 3))": {(3,)},
        "SELECT q.n FROM f(TABLE f(TABLE t PARTITION BY k) AS r PARTITION BY k) AS q": {(1,)},
        "SELECT k, n, rank() OVER (ORDER BY n) FROM f(TABLE t PARTITION BY k)": {("a", 2, 2), ("b", 1, 1)},
        "SELECT * FROM f(TABLE t PARTITION BY k) AS a FULL JOIN u ON u.y = a.n": {(2, "a", 2), (1, None, None),
                                                                                  (None, "c", 0)},
    }  # fmt: skip
    for number, (sql, wanted) in enumerate(answers.items()):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
        assert set(bag(engine.read(f"v{number}"))) == set(bag(engine.query(sql))) == wanted, sql
