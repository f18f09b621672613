"""The law of partners within few rows: a query that asks for the keys of some rows only, by an index of all rows, has
the answer of one that makes an index of these rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.join import known, presence, within
from halfjoin.engine.updates import limits
from tests.laws.test_known_keys import COLUMNS, DDL, SELECTED, World, both, opened_each_time  # noqa: F401
from tests.support.indexes import indexed_rows

ALIKE = {"a": "aky", "k": "aky", "y": "aky", "s": "sc", "c": "sc", "n": "n", "d": "d"}
CONDITIONS = {
    "t": ["q.n > 1", "q.a = 1", "q.s IN ('a', 'b')", "q.d IS NULL", "q.k > 2 AND q.n IS NOT NULL", "q.k = 3",
          "q.a + q.k > 2"],
    "u": ["q.y < 2", "q.s = 'a'", "q.a = 1 AND q.y = 1", "q.f > 0", "q.s IS NULL", "6 / q.y > 1", "q.a = q.y"],
    "w": ["q.y = 1", "q.s = 'b'", "q.y > 0", "q.s < 'b' OR q.y = 2", "q.m IS NULL"],
    "v": ["q.n > 1", "q.s = 'a'", "q.k IN (1, 2, 3)", "q.a = 1"], "g": ["q.n > 1", "q.a = 1", "q.y > 1"],
}  # fmt: skip


def query(world: World) -> str:
    """A query with rows of known keys, which asks for those of other rows."""
    pick = world.random.choice
    name, other = pick("tuwv"), pick("tuwvg")
    column = pick(COLUMNS[name])
    pairs = [one for one in COLUMNS[other] if one in ALIKE[column]]
    if not pairs:
        return query(world)
    equal = f"q.{pick(pairs)} {pick(['=', '=', '=', 'IS NOT DISTINCT FROM'])} {name}.{column}"
    more = pick(CONDITIONS[other])
    if pick([True, False, False]) and "a" in COLUMNS[name] and "a" in COLUMNS[other]:
        equal += f" AND q.a = {name}.a"
    if pick([True, False, False, False]):
        equal = "true"
    where = world.condition(name, pick(COLUMNS[name]))
    own = ", ".join(f"{name}.{one}" for one in SELECTED[name].split(", "))
    theirs = ", ".join(f"q.{one} AS q{one}" for one in COLUMNS[other][:2])
    asked, source = f"EXISTS (SELECT 1 FROM {other} q WHERE {equal} AND {more})", f"FROM {name} LEFT JOIN"
    some = f"(SELECT *, 1 AS one FROM {other} q WHERE {more}) q"
    return pick([
        f"SELECT {own} FROM {name} WHERE {where} AND {asked}",
        f"SELECT {own} FROM {name} WHERE {where} AND NOT {asked}",
        f"SELECT {own}, {asked} AS there FROM {name} WHERE {where}",
        f"SELECT {own} FROM {name} WHERE {where} AND {name}.{column} NOT IN "
        f"(SELECT {pairs[0]} FROM {other} q WHERE {more})",
        f"SELECT {own}, {theirs} {source} {other} q ON {equal} AND {more} WHERE {where}",
        f"SELECT {own}, {theirs}, q.one {source} {some} ON {equal} WHERE {where}",
        f"SELECT count(*) AS n {source} {other} q ON {equal} AND {more} WHERE {where}",
        f"SELECT {own}, {theirs} {source} {other} q ON q.{pairs[0]} = 1 AND {more} WHERE {where}",
    ])  # fmt: skip


@pytest.fixture
def narrowed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How often rows were found for a lookup; they always are."""
    monkeypatch.setattr(within, "SCANNED", 0.0)
    times = [0]
    for kind in (within.Within, within.WithinKnown):
        monkeypatch.setattr(kind, "__call__", _counted(kind.__call__, times))
    yield times


def _counted(call: Callable[..., Any], times: list[int]) -> Callable[..., Any]:
    def counted(*args: Any) -> Any:
        times[0] += 1
        return call(*args)

    return counted


@pytest.mark.parametrize("seed", range(18))
def test_partners_among_few_rows_are_those_among_all(
    seed: int, both: Callable[..., bool], narrowed: list[int]  # noqa: F811
) -> None:
    world = World(seed)
    with hj.Engine(clock="own", retain=100) as engine:
        engine.execute(DDL)
        for time in range(1, 9):
            world.submit(engine, time)
            for _ in range(12):
                both(engine, query(world), world.random.choice([None, *range(1, time + 1)]))
            if time == 5:
                engine.compact()
    assert narrowed[0] > 8


@pytest.mark.parametrize("seed", range(6))
def test_partners_among_few_rows_in_files(
    seed: int, both: Callable[..., bool], narrowed: list[int], tmp_path: Path  # noqa: F811
) -> None:
    world = World(100 + seed)
    for engine, time in opened_each_time(world, tmp_path / "w"):
        for _ in range(6):
            both(engine, query(world), world.random.choice([None, *range(1, time + 1)]))
    assert narrowed[0]


@pytest.mark.parametrize("sql", [
    "SELECT k FROM o WHERE k = 5 AND EXISTS (SELECT 1 FROM t WHERE t.k = o.k AND g = 0)",
    "SELECT k FROM o WHERE k = 5 AND NOT EXISTS (SELECT 1 FROM t WHERE t.k = o.k AND g = 1)",
    "SELECT k FROM o WHERE k IN (5, 6) AND k NOT IN (SELECT k FROM t WHERE g = 1)",
    "SELECT o.k, x FROM o LEFT JOIN (SELECT *, x + 1 AS y FROM t WHERE g = 0) t ON t.k = o.k WHERE o.k = 5",
    "SELECT q.k, x FROM (VALUES (5)) AS q (k) LEFT JOIN t ON t.k = q.k",
    "SELECT o.k, x FROM o LEFT JOIN t ON t.k = 7 AND g = 0 WHERE o.k = 5",
])  # fmt: skip
def test_a_question_for_few_keys_makes_no_index_of_a_table(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, rows = hj.Engine(), np.arange(20_000)
    engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, g integer, x bigint); CREATE TABLE o (k bigint PRIMARY KEY)")
    zeros = np.zeros(len(rows), np.int32)
    engine.apply({"t": pa.table({"k": rows, "g": zeros, "x": rows}), "o": pa.table({"k": rows})})
    made = indexed_rows(monkeypatch)
    assert engine.query(sql).num_rows in (1, 2)
    assert sum(made) < 20


@pytest.mark.parametrize("asked", ["EXISTS", "NOT EXISTS"])
def test_keys_that_come_in_parts_are_looked_up_in_one_index(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, orders, lines = hj.Engine(), np.arange(16_000), 4
    engine.execute("CREATE TABLE o (k bigint PRIMARY KEY); CREATE TABLE t (k bigint, g integer); CREATE INDEX ON t (k)")
    groups = np.arange(lines * len(orders)) % 20
    engine.apply({"o": pa.table({"k": orders}),
                  "t": pa.table({"k": orders.repeat(lines), "g": pa.array(groups, pa.int32())})})  # fmt: skip
    sql = f"SELECT k FROM o WHERE {asked} (SELECT 1 FROM t WHERE t.k = o.k AND g = 0)"
    engine.query(sql)  # the index of all rows exists
    monkeypatch.setattr(limits, "MORSEL_ROWS", 1_000)
    monkeypatch.setattr(known.KnownRows, "__call__", _unwanted)
    monkeypatch.setattr(presence, "numbered", _unwanted)  # a key finds few rows, so nobody tells keys apart
    monkeypatch.setattr(presence, "_MANY", 1_000)
    made = indexed_rows(monkeypatch)
    found = len(orders) // 5
    assert engine.query(sql).num_rows == (found if asked == "EXISTS" else len(orders) - found)
    assert made == [lines * len(orders)]


def _unwanted(*_: Any) -> None:
    raise AssertionError("the rows of each part's keys were found, or its keys told apart")


def test_a_key_of_very_many_rows_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, rows, many = hj.Engine(), 6_000, 3_000
    engine.execute("CREATE TABLE a (k bigint, x bigint); CREATE TABLE b (k bigint, g integer)")
    keys = np.concatenate([np.arange(1, rows + 1), np.zeros(many, np.int64)])
    engine.apply({"a": pa.table({"k": np.zeros(many, np.int64), "x": np.arange(many)}),
                  "b": pa.table({"k": keys, "g": pa.array(keys * 0, pa.int32())})})  # fmt: skip
    pairs, steps = list[int](), presence._steps
    monkeypatch.setattr(presence, "_steps", lambda which, *more: pairs.append(len(which)) or steps(which, *more))
    assert engine.query("SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND g = 0)").num_rows == many
    assert pairs == [many]  # not `many` rows for each of as many


def test_many_keys_are_asked_in_an_index_of_their_own() -> None:
    engine, rows, chosen = hj.Engine(), np.arange(3_000), random.Random(1)
    engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, g integer); CREATE TABLE o (k bigint PRIMARY KEY)")
    groups = np.array([chosen.randrange(2) for _ in rows], np.int32)
    engine.apply({"t": pa.table({"k": rows, "g": groups}), "o": pa.table({"k": rows})})
    found = engine.query("SELECT k FROM o WHERE k < 2000 AND EXISTS (SELECT 1 FROM t WHERE t.k = o.k AND g = 0)")
    assert sorted(found["k"].to_pylist()) == [int(k) for k in rows[:2000] if groups[k] == 0]
