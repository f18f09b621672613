"""Statements that change a table which has changes at times that are still open."""

from __future__ import annotations

import re
import time

import pytest

import halfjoin as hj

STATEMENTS = ["DELETE FROM u", "UPDATE u SET x = 2", "TRUNCATE u", "BEGIN; DELETE FROM u; COMMIT",
              "WITH gone AS (DELETE FROM u RETURNING *) SELECT count(*) AS n FROM gone",
              "MERGE INTO u USING (VALUES (1)) AS s (i) ON u.id = s.i WHEN MATCHED THEN DELETE"]  # fmt: skip


def _updates(at: int) -> list[dict[str, int]]:
    return [{"id": 1, "x": 1, "__time": at, "__diff": -1}, {"id": 2, "x": 5, "__time": at, "__diff": 1}]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_what_a_statement_does_not_see_yet_is_told(sql: str) -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE u (id bigint, x integer); CREATE TABLE w (id bigint)")
    engine.apply({"u": [{"id": 1, "x": 1}]}, time=1)
    engine.apply({"u": _updates(3)}, time=3, close=False)
    why = "u has changes at times that are still open, up to 4, .*; close them first, with engine.advance(to=5)"
    with pytest.raises(hj.InvalidTime, match=re.escape(why).replace(r"\.\*", ".*")):
        engine.execute(f"SET TIME = 4; {sql}")
    engine.execute("INSERT INTO w VALUES (1); RESET TIME")  # neither reads u, nor does the refused statement hinder it
    assert engine.read("u").to_pylist() == [{"id": 2, "x": 5}]
    engine.execute(f"SET TIME = 5; {sql}; RESET TIME")
    left = [{"id": 2, "x": 2}] if sql.startswith("UPDATE") else [{"id": 2, "x": 5}] if "MERGE" in sql else []
    assert engine.read("u").to_pylist() == left


def test_changes_after_the_time_of_the_statement_do_not_matter() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE u (id bigint, x integer)")
    engine.apply({"u": [{"id": 1, "x": 1}]}, time=1)
    engine.apply({"u": [{"id": 2, "x": 5}]}, time=9, close=False)
    engine.execute("SET TIME = 4; DELETE FROM u; RESET TIME")
    engine.advance(to=10)
    assert [len(engine.read("u", as_of=at)) for at in (3, 4, 9)] == [1, 0, 1]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_of_the_present_closes_what_has_come_by_now(sql: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE u (id bigint, x integer); CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS s FROM u")
    engine.execute("INSERT INTO u VALUES (1, 1)")
    for _ in range(2):  # the second time the statement is remembered
        now = engine.stats().upper + 1
        engine.apply({"u": [*_updates(now), {"id": 7, "x": 7, "__time": now + 10**6}]}, time=now, close=False)
        while time.time_ns() // 1_000_000 <= now:
            time.sleep(0.001)
        engine.execute(sql)
        left = [2] if sql.startswith("UPDATE") else [5] if "MERGE" in sql else []
        assert engine.read("u")["x"].to_pylist() == left
        assert engine.read("v")["s"].to_pylist() == [sum(left) or None]
        engine.execute("DELETE FROM u; INSERT INTO u VALUES (1, 1)")


def test_a_transaction_that_has_read_before_does_not_see_what_comes_by_time_alone() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE u (id bigint, x integer); INSERT INTO u VALUES (1, 1)")
    now = engine.stats().upper + 1
    engine.apply({"u": _updates(now)}, time=now, close=False)
    while time.time_ns() // 1_000_000 <= now:
        time.sleep(0.001)
    work = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM u; DELETE FROM u; COMMIT"
    with pytest.raises(hj.Conflict, match="could not serialize access"):
        engine.execute(work)
    engine.execute(work)
    assert engine.read("u").num_rows == 0


def test_what_falls_due_while_a_statement_is_computed_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE u (id bigint, x integer); INSERT INTO u VALUES (1, 1)")
    at = engine.stats().upper + 1000
    engine.apply({"u": [{"id": 2, "x": 2, "__time": at}]}, time=at, close=False)
    times = iter([at - 500])
    monkeypatch.setattr("halfjoin.engine.batch.clock.now", lambda: next(times, at + 5))
    engine.execute("UPDATE u SET x = 9")
    assert engine.stats().upper == at
    engine.advance(to=at + 1)
    assert sorted(engine.read("u")["x"].to_pylist()) == [2, 9]


def test_rows_at_each_coming_millisecond_are_closed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE u (id bigint, x integer); INSERT INTO u VALUES (1, 1)")
    engine.execute("UPDATE u SET x = 2 WHERE id = 1")
    start = engine.stats().upper + 10
    engine.apply({"u": [{"id": 2, "x": n, "__time": start + n} for n in range(1000)]}, time=start, close=False)
    clock = iter(range(start + 5, start + 1000))
    monkeypatch.setattr("halfjoin.engine.batch.clock.now", lambda: next(clock))
    with pytest.raises(hj.Conflict, match="which this change has not seen") as found:
        engine.execute("UPDATE u SET x = 3 WHERE id = 1")
    assert found.value.sqlstate == "40001" and engine.stats().upper < start + 20


def test_tables_that_refer_to_what_a_statement_changes_are_closed_too() -> None:
    for change, left in (("DELETE FROM p", 0), ("TRUNCATE p CASCADE", 0), ("UPDATE p SET id = 5", 1)):
        engine = hj.Engine()
        engine.execute("CREATE TABLE p (id bigint PRIMARY KEY)")
        engine.execute("CREATE TABLE c (id bigint REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE)")
        engine.execute("INSERT INTO p VALUES (1)")
        now = engine.stats().upper + 1
        engine.apply({"c": [{"id": 1, "__time": now}]}, time=now, close=False)
        while time.time_ns() // 1_000_000 <= now:
            time.sleep(0.001)
        engine.execute(change)
        assert engine.read("c")["id"].to_pylist() == [5] * left, change
