"""Wrong answers of the past, each in its smallest form."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange import index
from halfjoin.engine.intake import primary_key
from halfjoin.engine.join import half_join, lookup
from halfjoin.engine.kernels import native
from halfjoin.engine.storage.warehouse import Warehouse
from halfjoin.engine.updates import codes, consolidate, limits


def engine_of(sql: str) -> hj.Engine:
    engine = hj.Engine()
    engine.execute(sql)
    return engine


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def counted(engine: hj.Engine, name: str) -> list[tuple[Any, ...]]:
    return rows(engine.read(name, multiplicity=True))


def test_the_error_of_a_row_that_is_gone_does_not_fail_a_query() -> None:
    engine = engine_of("CREATE TABLE t (x int)")
    engine.apply({"t": [{"x": 0}, {"x": 1}]}, time=1)
    engine.apply({"t": hj.deletes([{"x": 0}])}, time=3)
    assert rows(engine.query("SELECT 10 / x AS y FROM t")) == [(10,)]
    with pytest.raises(hj.DataError, match="division by zero"):
        engine.query("SELECT 10 / x AS y FROM t", as_of=2)


def test_a_failing_row_of_negative_weight_is_an_error_too() -> None:
    engine = engine_of(
        "CREATE TABLE t (x int); CREATE MATERIALIZED VIEW v AS SELECT 1 / t.x AS y FROM t, repeat_row(-1)")
    engine.apply({"t": [{"x": 0}, {"x": 1}]}, time=1)
    with pytest.raises(hj.DataError, match="division by zero"):
        engine.read("v", multiplicity=True)
    engine.apply({"t": hj.deletes([{"x": 0}])}, time=2)
    assert counted(engine, "v") == [(1, -1)]


def test_errors_of_different_rows_do_not_cancel() -> None:
    engine = engine_of("""
        CREATE TABLE t (x int);
        CREATE MATERIALIZED VIEW v AS SELECT g, 1 / t.x AS y FROM t, generate_series(-1, 1) AS g, repeat_row(g)""")
    engine.apply({"t": [{"x": 0}]}, time=1)
    with pytest.raises(hj.DataError, match="division by zero"):
        engine.read("v", multiplicity=True)


def test_a_later_view_knows_the_errors_of_every_input() -> None:
    engine = engine_of("CREATE TABLE a (k int, x int); CREATE TABLE b (k int, y int)")
    engine.apply({"a": [{"k": 1, "x": 0}] * 4, "b": [{"k": 3, "y": 1}]}, time=1)
    sql = "SELECT a.x, b.y FROM a, b WHERE a.k = b.k AND 6 / a.x = b.y"
    engine.execute(f"CREATE MATERIALIZED VIEW late AS {sql}")
    for read in (lambda: engine.read("late"), lambda: engine.query(sql)):
        with pytest.raises(hj.DataError, match="division by zero"):
            read()
    engine.apply({"a": hj.deletes([{"k": 1, "x": 0}] * 4)}, time=2)
    assert rows(engine.read("late")) == rows(engine.query(sql)) == []


def test_a_temporal_bound_that_rounds_up_to_one_digit_more() -> None:
    engine = engine_of("CREATE TABLE t (n numeric(2,1)); CREATE MATERIALIZED VIEW v AS SELECT n FROM t "
                       "WHERE mz_now() <= n")
    engine.apply({"t": [{"n": Decimal("9.9")}]}, time=1)
    engine.advance(to=20)
    assert [len(engine.read("v", as_of=time)) for time in (1, 9, 10)] == [1, 1, 0]


def test_what_holds_always_is_given_to_a_subscriber_once() -> None:
    engine = engine_of("CREATE TABLE t (x int); CREATE MATERIALIZED VIEW v AS SELECT x FROM t UNION ALL VALUES (7)")
    subscription = engine.subscribe("v")
    engine.apply({"t": [{"x": 1}]}, time=0)
    subscription.close()
    changes = [row for table in subscription for row in table.to_pylist()]
    assert sorted((row["x"], row["__diff"]) for row in changes) == [(1, 1), (7, 1)]


def test_a_subscription_that_nobody_has_keeps_no_changes() -> None:
    """It got the changes of all later batches, as long as the engine was open."""
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
        engine.apply({"t": [{"k": 0}]}, time=0)
        read = engine.subscribe("v", snapshot=False)
        for _ in engine.subscribe("v"):
            break
        engine.apply({"t": [{"k": 1}]}, time=1)
        assert list(engine._state.subscriptions["v"]) == [read]
        assert next(read)["k"].to_pylist() == [1]
        del read
        assert not engine._state.subscriptions["v"]


@pytest.mark.parametrize("change", ["DROP MATERIALIZED VIEW v",
                                    "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT x::text AS y FROM t"])
def test_a_subscription_ends_with_its_view(change: str) -> None:
    engine = engine_of("CREATE TABLE t (x int); CREATE MATERIALIZED VIEW v AS SELECT x FROM t")
    subscription = engine.subscribe("v")
    engine.apply({"t": [{"x": 1}]}, time=0)
    engine.execute(change)
    engine.apply({"t": [{"x": 2}]}, time=1)
    seen = []
    with pytest.raises(hj.UnknownName, match="dropped or replaced"):
        for table in subscription:
            seen += table["x"].to_pylist()
    assert seen == [1]
    assert rows(engine.read("t")) == [(1,), (2,)]


def test_a_subscription_outlives_a_failed_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise hj.StorageError("the disk is full")

    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
        changes = engine.subscribe("v", snapshot=False)
        with monkeypatch.context() as patch:
            patch.setattr(Warehouse, "define", full)
            for change in ("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1 AS k FROM t", "DROP MATERIALIZED VIEW v"):
                with pytest.raises(hj.StorageError, match="full"):
                    engine.execute(change)
        engine.apply({"t": [{"k": 1}]}, time=1)
    assert [table.to_pylist() for table in changes] == [[{"k": 1, "__time": 1, "__diff": 1}]]


@pytest.mark.parametrize("replace", [False, True])
def test_a_view_that_cannot_be_filled_leaves_nothing(replace: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of("CREATE TABLE t (x bigint)")
    if replace:
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT x FROM t")
    engine.apply({"t": [{"x": 1}, {"x": 2}]}, time=1)
    before = engine.stats()
    monkeypatch.setattr(limits, "MOST_ROWS", 1)
    with pytest.raises(hj.DataError, match=r"v would hold more than 1 rows: its join has no equality .* all 2 rows"):
        engine.execute("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT t.x FROM t, t u")
    assert engine.stats() == before
    if replace:
        assert rows(engine.read("v")) == [(1,), (2,)]


REFUSED: dict[str, Callable[[], Any]] = {
    "two tables, one unknown": lambda: {"t": [{"x": 9}], "u": []},
    "a row that is text": lambda: {"t": {"x": "bob"}},
    "a row that is a number": lambda: {"t": {"x": 1}},
    "diffs of two kinds": lambda: {"t": [{"x": 9, "__diff": 1}, {"x": 9, "__diff": "a"}]},
    "a diff that is too large": lambda: {"t": [{"x": 9, "__diff": 2**70}]},
    "the last time": lambda: {"t": pa.table({"x": [9], "__time": pa.array([2**63 - 1])})},
    "a closed time": lambda: {"t": pa.table({"x": [9, 9], "__time": pa.array([7, 0])})},
    "a second row of a key, beside a good table": lambda: {"p": [{"k": 1}], "t": [{"x": 9}]},
    "a deletion of what is not there": lambda: {"t": [{"x": 9}], "p": hj.deletes([{"k": 2}])},
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_batch_leaves_nothing(name: str) -> None:
    engine = engine_of("""
        CREATE TABLE t (x bigint); CREATE TABLE p (k int PRIMARY KEY);
        CREATE MATERIALIZED VIEW v AS SELECT g, p.k FROM t, generate_series(1, t.x) AS g, p WHERE p.k = g""")
    engine.apply({"t": [{"x": 3}], "p": [{"k": 1}]}, time=5)
    before = engine.stats()
    with pytest.raises(hj.HalfjoinError):
        engine.apply(REFUSED[name](), batch_id="again")
    assert engine.stats() == before
    engine.apply({"t": [{"x": 1}]}, batch_id="again", time=9)  # the id of a refused batch is free
    assert counted(engine, "v") == [(1, 1, 2)]


def test_views_are_apart_from_other_arrangement_users() -> None:
    engine = engine_of("""
        CREATE TABLE t (x int PRIMARY KEY); CREATE INDEX i ON t (x);
        CREATE MATERIALIZED VIEW "primary key of t" AS SELECT a.x FROM t a, t b WHERE a.x = b.x;
        CREATE MATERIALIZED VIEW "this query" AS SELECT a.x FROM t a, t b WHERE a.x = b.x + 1;
        DROP MATERIALIZED VIEW "primary key of t"; DROP INDEX i""")
    engine.apply({"t": [{"x": 1}, {"x": 2}]}, time=1)
    engine.query("SELECT a.x FROM t a, t b WHERE a.x = b.x + 1")
    assert counted(engine, "this query") == [(2, 1)]


def test_drop_takes_all_or_none() -> None:
    engine = engine_of("CREATE TABLE a (x int); CREATE TABLE b (x int)")
    with pytest.raises(hj.UnknownName):
        engine.execute("DROP TABLE a, nothing, b")
    assert engine.stats() == engine_of("CREATE TABLE a (x int); CREATE TABLE b (x int)").stats()


@pytest.mark.parametrize("sql", [
    'CREATE TABLE "=x" (x int)', 'CREATE VIEW "=row" AS SELECT 1 AS x', 'CREATE TABLE t ("#row" int)',
    'CREATE TABLE "" (x int)', 'CREATE TABLE t ("generate_series#1.1" int)',
])  # fmt: skip
def test_names_that_the_planner_gives_cannot_be_typed(sql: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match="name"):
        hj.Engine().execute(sql)


def test_minus_zero_is_zero_to_every_view() -> None:
    engine = engine_of("CREATE TABLE t (x double precision); CREATE MATERIALIZED VIEW v AS SELECT x::text AS s FROM t")
    engine.apply({"t": [{"x": -0.0}, {"x": 0.0}]}, time=0)
    engine.apply({"t": hj.deletes([{"x": 0.0}, {"x": 0.0}])}, time=1)
    assert counted(engine, "t") == counted(engine, "v") == []


def test_answers_do_not_hang_on_codes_being_different(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "on", False)  # kernels make codes of their own
    true = codes.codes
    for room in (codes, consolidate, half_join, lookup, index, primary_key):
        monkeypatch.setattr(room, "codes", lambda columns, length: true(columns, length) % 2)
        if hasattr(room, "is_exact"):
            monkeypatch.setattr(room, "is_exact", lambda columns: False)
    engine = engine_of("""
        CREATE TABLE a (k int PRIMARY KEY, s text); CREATE TABLE b (s text, n numeric(6,2));
        CREATE MATERIALIZED VIEW plain AS SELECT a.k, b.n FROM a, b WHERE a.s = b.s;
        CREATE MATERIALIZED VIEW safe AS SELECT a.k, b.n FROM a, b WHERE a.s IS NOT DISTINCT FROM b.s;
        CREATE MATERIALIZED VIEW series AS SELECT a.k, b.s FROM a, generate_series(1, a.k) AS g, b WHERE b.n = g""")
    engine.apply({"a": [{"k": k, "s": s} for k, s in enumerate("xyzx")] + [{"k": 9, "s": None}],
                  "b": [{"s": s, "n": Decimal(n)} for n, s in enumerate(["x", "y", None, "w"])]}, time=1)
    engine.apply({"a": hj.upserts([{"k": 0, "s": "y"}, {"k": 2, "s": None}]), "b": hj.deletes([{"s": "x", "n": 0}])},
                 time=2)
    assert rows(engine.read("plain", as_of=1)) == [(0, Decimal(0)), (1, Decimal(1)), (3, Decimal(0))]
    assert rows(engine.read("plain")) == [(0, Decimal(1)), (1, Decimal(1))]
    assert rows(engine.read("safe")) == [(0, Decimal(1)), (1, Decimal(1)), (2, Decimal(2)), (9, Decimal(2))]
    assert rows(engine.read("series")) == sorted(
        [(k, s) for k in (1, 2, 3, 9) for n, s in ((1, "y"), (2, None), (3, "w")) if n <= k], key=repr)


def test_calls_after_distinct_on_are_refused() -> None:
    rows_of_t = "generate_series(1, 2) AS g FROM (VALUES (3, 2), (3, 1), (1, 1)) AS t (a, b) ORDER BY a, b DESC"
    with pytest.raises(hj.UnsupportedSQL, match="before a call in the SELECT list"):
        hj.Engine().query(f"SELECT DISTINCT ON (a) a, b, {rows_of_t}")
    found = hj.Engine().query(f"SELECT DISTINCT ON (a) a, b, {rows_of_t}, g DESC")
    assert rows(found) == [(1, 1, 2), (3, 2, 2)]


def test_aggregates_of_a_label_give_labels() -> None:
    """A label that is written was the number of its place: `max('ok'::mood)` was 2."""
    engine = engine_of("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE t (k integer)")
    calls = ("max('ok'::mood)", "mode() WITHIN GROUP (ORDER BY 'ok'::mood)", "min('ok'::mood) OVER ()",
             "percentile_disc(0.5) WITHIN GROUP (ORDER BY 'ok'::mood)")  # fmt: skip
    engine.apply({"t": [{"k": 1}]}, time=0)
    assert [rows(engine.query(f"SELECT {call} FROM t")) for call in calls] == [[("ok",)]] * 4
    assert rows(engine.query("SELECT rank('sad'::mood) WITHIN GROUP (ORDER BY 'ok'::mood) FROM t")) == [(1,)]
