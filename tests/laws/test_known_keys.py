"""The law of known keys: a query that looks its keys up has the answer, or the error, of one that scans."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.statements import evaluating
from halfjoin.engine.statements.remembered import Remembered
from halfjoin.engine.updates.codes import codes
from halfjoin.planner.known import lookups
from halfjoin.planner.plan_view import plan, plan_of_query
from tests.oracle.rows import bag

DDL = """
CREATE TABLE t (k bigint PRIMARY KEY, a integer, s text, n numeric(8,2), d date, c char(4));
CREATE TABLE u (a integer, s varchar(6), y bigint, f double precision);
CREATE TABLE w (y smallint, s text, m timestamp);
CREATE INDEX ON t (a); CREATE INDEX ON t (s); CREATE INDEX ON t (n); CREATE INDEX ON t (d); CREATE INDEX ON t (c);
CREATE INDEX ON u (a); CREATE INDEX ON u (s); CREATE INDEX ON u (a, s); CREATE INDEX ON u (lower(s));
CREATE INDEX ON w (y); CREATE INDEX ON w (s, y);
CREATE MATERIALIZED VIEW v AS SELECT u.a, u.s, t.k, t.n FROM u JOIN t ON u.a = t.a;
CREATE MATERIALIZED VIEW g AS SELECT a, count(*) AS n, sum(y) AS y FROM u GROUP BY a;
CREATE INDEX ON v (k); CREATE INDEX ON v (s); CREATE INDEX ON g (a);
"""
TEXTS = ["a", "b", "ab", "A", "", "a ", None]
DAYS = [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(1969, 12, 31), None]
INTEGERS = ["0", "1", "2", "3", "-1", "NULL", "2.0", "1.5", "2::bigint", "1::smallint", "99999999999999", "1e0"]
STRINGS = ["'a'", "'b'", "'ab'", "'A'", "''", "'a '", "NULL", "'a'::varchar(6)", "'zz'"]
VALUES = {
    "k": INTEGERS, "a": INTEGERS, "y": INTEGERS, "s": STRINGS, "c": [*STRINGS, "'a  '::char(4)", "'ab'::text"],
    "n": ["1", "1.0", "1.00", "2.5", "2.555", "0", "NULL", "1::bigint", "2.5::float8", "1e20"],
    "d": ["'2024-01-01'", "date '1969-12-31'", "timestamp '2024-01-01'", "timestamp '2024-01-01 01:00'", "NULL"],
}  # fmt: skip
COLUMNS = {"t": "kasndc", "u": "asy", "w": "ys", "v": "askn", "g": "an"}
SELECTED = {"t": "k, a, s, n", "u": "a, s, y", "w": "y, s", "v": "a, s, k, n", "g": "a, n, y"}
JOINS = [
    "t JOIN u ON t.a = u.a", "u JOIN t ON t.a = u.a JOIN w ON w.y = u.y", "t LEFT JOIN u ON t.a = u.a",
    "u LEFT JOIN t ON t.a = u.a AND t.n > 1", "t LEFT JOIN u ON t.a = u.a LEFT JOIN w ON w.y = u.y",
    "t FULL JOIN u ON t.a = u.a", "u JOIN v ON u.s = v.s", "t JOIN g ON t.a = g.a", "t, w",
    "t JOIN (VALUES (1), (2), (2)) x (y) ON t.a = x.y", "u JOIN LATERAL generate_series(1, u.a) x (y) ON true",
]  # fmt: skip


def table(rows: list[dict[str, Any]], types: dict[str, pa.DataType]) -> pa.Table:
    every = {**types, "__time": pa.int64(), "__diff": pa.int64()}
    return pa.table({name: pa.array([row[name] for row in rows], type) for name, type in every.items()})


class World:
    """Random batches and queries. Rows come twice, go, come back, and lie in the future."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.keys: dict[int, dict[str, Any]] = {}
        self.there: dict[str, list[dict[str, Any]]] = {"u": [], "w": []}

    def submit(self, engine: hj.Engine, time: int) -> None:
        engine.apply(self.batch(time), time=time, close=False)
        engine.advance(time + 1)

    def batch(self, time: int) -> dict[str, pa.Table]:
        pick = self.random.choice
        changes: dict[str, list[dict[str, Any]]] = {"t": [], "u": [], "w": []}
        for key in self.random.sample(range(12), 4):
            if (old := self.keys.pop(key, None)) is not None:
                changes["t"].append({**old, "__time": time, "__diff": -1})
            if self.random.random() < 0.8:
                row = {"k": key - 1, "a": pick([0, 1, 2, 3, None]), "s": pick(TEXTS), "d": pick(DAYS),
                       "n": pick([Decimal("1.00"), Decimal("2.50"), Decimal("0.00"), None]), "c": pick(TEXTS)}
                self.keys[key] = row
                changes["t"].append({**row, "__time": time, "__diff": 1})
        for name, there in self.there.items():
            for _ in range(self.random.randrange(6)):
                late = time + pick([0, 0, 0, 0, 1, 3])
                if there and self.random.random() < 0.3:
                    changes[name].append({**there.pop(), "__time": late, "__diff": -1})
                    continue
                row = {"a": pick([0, 1, 2, None]), "s": pick(TEXTS), "y": pick([0, 1, 2, 3, None]),
                       "f": pick([0.5, 0.0, None]), "m": None}
                there += [row] * pick([1, 2])
                changes[name].append({**row, "__time": late, "__diff": pick([1, 1, 2])})
        return {
            "t": table(changes["t"], {"k": pa.int64(), "a": pa.int32(), "s": pa.string(), "n": pa.decimal128(8, 2),
                                      "d": pa.date32(), "c": pa.string()}),
            "u": table(changes["u"], {"a": pa.int32(), "s": pa.string(), "y": pa.int64(), "f": pa.float64()}),
            "w": table(changes["w"], {"y": pa.int16(), "s": pa.string(), "m": pa.timestamp("us")}),
        }  # fmt: skip

    def condition(self, name: str, column: str) -> str:
        pick, values = self.random.choice, VALUES[column]
        several = [pick(values) for _ in range(self.random.randrange(1, 4))]
        column, other = f"{name}.{column}", pick(COLUMNS[name])
        return pick([
            f"({column} = {several[0]} OR {name}.{other} IN ({pick(VALUES[other])}, {pick(VALUES[other])}))",
            f"{column} = {several[0]}", f"{several[0]} = {column}", f"{column} IN ({', '.join(several)})",
            f"({' OR '.join(f'{column} = {one}' for one in several)})", f"{column} IS NOT DISTINCT FROM {several[0]}",
            f"({column} = {several[0]} OR {column} IS NULL)", f"{column} = ANY (ARRAY[{', '.join(several)}])",
            f"({column} = {several[0]} AND {name}.{COLUMNS[name][0]} IS NOT NULL OR {column} = {several[-1]})",
        ])  # fmt: skip

    def query(self) -> str:
        pick = self.random.choice
        if pick([True, False, False]):
            name = pick(list(COLUMNS))
            where = [self.condition(name, column)
                     for column in self.random.sample(COLUMNS[name], self.random.randrange(1, 3))]  # fmt: skip
            source, shown = name, SELECTED[name]
        else:
            source = pick(JOINS)
            names = [name for name in "tuwv" if f" {name} " in f" {source} ".replace(",", " ")]
            name = pick(names)
            where, shown = [self.condition(name, pick(COLUMNS[name]))], ", ".join(
                f"{one}.{column} AS {one}{column}" for one in names for column in COLUMNS[one][:2])  # fmt: skip
        more = {"t": ["t.n > 0", "10 / t.a > 2", "t.k + 1 > 1"], "u": ["u.y < 3", "6 / u.y > 1"]}.get(name, ["true"])
        where += [pick(more)] if pick([True, False, False]) else []
        test = " AND ".join(where)
        return pick([
            f"SELECT {shown} FROM {source} WHERE {test}",
            f"SELECT count(*) AS n FROM {source} WHERE {test}",
            f"SELECT DISTINCT {name}.{COLUMNS[name][0]} AS x FROM {source} WHERE {test}",
            f"SELECT {name}.{COLUMNS[name][0]} AS x, count(*) AS n FROM {source} WHERE {test} GROUP BY 1",
            f"SELECT {shown} FROM {source} WHERE {test} ORDER BY 1, 2 LIMIT 2",
            f"SELECT lower({name}.s) AS x FROM {source} WHERE {test} UNION ALL SELECT s FROM w WHERE y = 1"
            if "s" in COLUMNS[name] else f"SELECT 1 / {name}.a AS x FROM {source} WHERE {test}",
        ])  # fmt: skip


def opened_each_time(world: World, folder: Path) -> Iterator[tuple[hj.Engine, int]]:
    """A warehouse of the world, opened anew with some memory budget for each time; every second time it is flushed."""
    with hj.Engine(folder, clock="own", retain=100) as engine:
        engine.execute(DDL)
        world.submit(engine, 1)
    for time in range(2, 7):
        with hj.Engine(folder, memory=world.random.choice([1, 20_000, "1GB"])) as engine:
            world.submit(engine, time)
            if time % 2:
                engine.flush()
            yield engine, time


def answer(engine: hj.Engine, sql: str, time: int | None) -> Any:
    try:
        return bag(engine.query(sql, as_of=time))
    except hj.HalfjoinError as problem:
        return type(problem)


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[hj.Engine, str, int | None], bool]]:
    """Asks as a query does, and by the plan of a view; compares the answers, and tells whether there were lookups."""
    used = False
    monkeypatch.setattr(Remembered, "find", lambda *_: None)  # each way makes the query anew

    def noted(*args: Any) -> Any:
        nonlocal used
        planned = plan_of_query(*args)
        used = used or any(True for _ in lookups(planned))
        return planned

    def ask(engine: hj.Engine, sql: str, time: int | None) -> bool:
        nonlocal used
        used = False
        monkeypatch.setattr(evaluating, "plan_of_query", noted)
        found = answer(engine, sql, time)
        monkeypatch.setattr(evaluating, "plan_of_query", lambda relation, state, name, *_: plan(relation, state, name))
        assert answer(engine, sql, time) == found, f"as of {time}: {sql}"
        return used

    yield ask


@pytest.mark.parametrize("seed", range(12))
def test_a_lookup_has_the_answer_of_a_scan(seed: int, both: Callable[..., bool]) -> None:
    world, used = World(seed), 0
    with hj.Engine(clock="own", retain=100) as engine:
        engine.execute(DDL)
        for time in range(1, 9):
            world.submit(engine, time)
            for _ in range(12):
                used += both(engine, world.query(), world.random.choice([None, *range(1, time + 1)]))
            if time == 5:
                engine.compact()
    assert used > 30


@pytest.mark.parametrize("seed", range(6))
def test_a_lookup_on_disk_has_the_answer_of_a_scan(seed: int, both: Callable[..., bool], tmp_path: Path) -> None:
    world, used = World(100 + seed), 0
    for engine, time in opened_each_time(world, tmp_path / "w"):
        for _ in range(6):
            used += both(engine, world.query(), world.random.choice([None, *range(1, time + 1)]))
    assert used > 10


@pytest.mark.parametrize("memory", ["1GB", 1])
def test_of_several_lookups_none_takes_rows_of_another_by_a_code(
    memory: str | int, both: Callable[..., bool], tmp_path: Path
) -> None:
    code = int(codes([pa.nulls(1, pa.int64())], 1)[0])  # of NULL, and of this number
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (a bigint, b bigint); CREATE INDEX ON t (a); CREATE INDEX ON t (b)")
        engine.apply({"t": [{"a": None if b % 100 == 0 else b, "b": b} for b in range(20_000)]})
        engine.apply({"t": [{"a": code, "b": 1}]})
        engine.flush()
    with hj.Engine(tmp_path / "w", memory=memory) as engine:
        for one, other in ((f"a = {code}", "b = 200"), ("b = 200", f"a = {code}")):
            sql = f"SELECT a, b FROM t WHERE {one} OR {other}"
            assert both(engine, sql, None), "no lookup"
            assert engine.query(sql).num_rows == 2


@pytest.mark.parametrize("day", ["12000-01-01", "0044-03-15 BC", "9999-12-31"])
def test_a_lookup_finds_days_that_python_has_not(day: str, both: Callable[..., bool]) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (d date PRIMARY KEY, m timestamp UNIQUE, z timestamptz UNIQUE)")
    engine.execute(f"INSERT INTO t SELECT x, x, x FROM (VALUES (date '{day}'), ('2024-01-01')) v (x)")
    for column in ("d", "m", "z"):
        for kind in ("date", "timestamp", "timestamptz"):
            assert both(engine, f"SELECT d::text AS x FROM t WHERE {column} = '{day}'", None)
            both(engine, f"SELECT m::text AS x FROM t WHERE {column} IN ({kind} '{day}', NULL)", None)
            assert engine.query(f"SELECT 1 AS x FROM t WHERE {column} = {kind} '{day}'").num_rows == 1
