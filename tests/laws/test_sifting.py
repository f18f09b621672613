"""The law of sifted queries: a query that leaves out blocks of rows has the answer, or the error, of one that reads all
of them, and the answer of DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange import blocks, query_run
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join import dataflow
from halfjoin.engine.statements.remembered import Remembered
from halfjoin.engine.storage import parquet, parquet_reader
from tests.oracle.rows import Bag, bag
from tests.support.kernels import both_ways  # noqa: F401

DAY, HOUR = date(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = {"i": pa.int32(), "k": pa.int64(), "d": pa.date32(), "m": pa.timestamp("us"), "z": pa.timestamp("us", "UTC"),
          "f": pa.float64(), "r": pa.float32(), "n": pa.decimal128(8, 2), "s": pa.string()}  # fmt: skip
DDL = """
    CREATE TABLE big (i integer, k bigint, d date, m timestamp, z timestamptz, f double precision, r real,
                      n numeric(8, 2), s varchar);
    CREATE TABLE day (k integer PRIMARY KEY, y integer, d date, s varchar);
    CREATE TABLE part (i integer, k bigint, s varchar, n numeric(8, 2))"""
CONDITIONS = [
    "big.d BETWEEN date '2024-01-10' AND date '2024-01-20'", "big.d = date '2024-01-12'", "big.d > date '2024-02-01'",
    "big.d < date '2024-01-03'", "big.d >= timestamp '2024-01-30 12:00:00'", "big.d = timestamp '2024-01-12 00:00:00'",
    "big.m >= timestamp '2024-01-03 05:00:00' AND big.m < timestamp '2024-01-03 09:00:00'", "big.m < date '2024-01-02'",
    "big.m::date = date '2024-01-03'", "big.z > timestamptz '2024-01-04 03:00:00+00'",
    "big.d >= date '9999-12-31'", "big.d <> date '2024-01-12'", "big.d IS NULL", "big.d IN (date '2024-01-12', NULL)",
    "big.f > 70", "big.f = 'NaN'::double precision", "big.f < 'NaN'::double precision AND big.f >= 80",
    "big.f = 0", "big.f <= -0.0::double precision", "big.f IN (3, 'NaN'::double precision)", "big.r < 7.5::real",
    "big.n = 5.00", "big.n > 70.005", "big.n >= 12.3 AND big.n < 14", "big.n > 9999999999", "big.n IN (5, 17, 30.25)",
    "big.s LIKE 'k01%'", "big.s LIKE 'k0_2%'", "big.s = 'k020'", "big.s >= 'k08'", "big.s BETWEEN 'B' AND 'a'",
    "big.s > 'k\u00e9'", "big.s LIKE '%1'", "big.s LIKE 'k\u00e9%'",
    "big.i = 7", "big.i IN (3, 4, 90)", "big.i BETWEEN 20 AND 25", "big.i > 88 OR big.i < 4", "big.i > 10000000000",
    "(big.i < 5 OR big.s LIKE 'k09%') AND big.d IS NOT NULL", "big.i < 5 OR big.k % 7 = 1", "big.k = 12",
    "big.k < NULL", "big.d >= timestamptz '2024-01-30 12:00:00+00'", "date_trunc('month', big.d) = date '2024-02-01'",
    "extract(year FROM big.d) = 2024", "date_trunc('hour', big.m) = timestamp '2024-01-03 05:00:00'",
    "starts_with(big.s, 'k05')", "extract(day FROM big.d) = 3", "date_trunc('week', big.d) > date '2024-02-20'",
    "NOT big.i < 90", "big.i = 7.0", "big.i < 4.5", "big.i::double precision > 90.5", "big.k IS NOT DISTINCT FROM 30",
]  # fmt: skip
FAILING = ["10 / big.i > 1", "10 / (big.i - 50) > 1", "big.s::integer > 3"]
SOURCES = [
    "big", "big", "big", "big JOIN day ON big.k = day.k", "day, big WHERE big.k = day.k AND day.y = 2",
    "big JOIN day ON big.k = day.k AND day.y = 2", "big JOIN day ON day.d = big.d AND day.y IN (1, 3)",
    "big JOIN day ON big.s = day.s AND day.y = 2", "big LEFT JOIN day ON big.k = day.k AND day.y = 2",
    "day LEFT JOIN big ON big.k = day.k AND big.i < 40", "part JOIN big ON part.i = big.i AND part.n > 1",
    "part JOIN big ON part.i = big.i JOIN day ON big.k = day.k AND day.y = 2",
    "part JOIN day ON part.k = day.k AND day.y = 2 JOIN big ON part.i = big.i",
    "part JOIN day ON part.k = day.k JOIN big ON day.d = big.d AND part.s = 'a'",
    "big JOIN part ON part.n = big.n", "big JOIN part ON part.i = big.k + 1",
    "big JOIN day ON big.k IS NOT DISTINCT FROM day.y", "big JOIN big AS b2 ON big.i = b2.k AND b2.i < 9",
    "big JOIN (SELECT max(k) AS k FROM day WHERE y = 1) AS q ON big.k = q.k",
    "part LEFT JOIN day ON part.k = day.k AND day.y = 2 JOIN big ON big.k = day.k",
    "big JOIN day ON big.k = day.k AND 6 / day.y > 2", "big CROSS JOIN (SELECT min(k) AS k FROM day) AS q",
]  # fmt: skip
PARTNERS = [
    "big.k IN (SELECT k FROM day WHERE y = 2)", "big.k NOT IN (SELECT k FROM day WHERE y = 2)",
    "EXISTS (SELECT 1 FROM day WHERE day.k = big.k AND day.y = 1)", "big.d = (SELECT min(d) FROM day WHERE y = 3)",
    "NOT EXISTS (SELECT 1 FROM day WHERE day.k = big.k AND day.y = 1)", "big.i IN (SELECT i FROM part WHERE n > 1)",
    "big.d > (SELECT max(d) FROM day WHERE y = 2) - 7", "big.i <= (SELECT min(y) FROM day) + 4",
    "big.n > (SELECT max(n) FROM part)", "(SELECT 10 / min(y) FROM day) < big.i",
    "big.m::date = (SELECT min(d) FROM day)",
    "big.i > (SELECT y FROM day WHERE k = 1000)",
    "big.k IN (SELECT day.k FROM day JOIN part ON day.k = part.k WHERE part.s = 'a')",
]  # fmt: skip
SHOWN = ["count(*) AS c, sum(big.i) AS x, min(big.s) AS y", "big.i AS x, big.k AS y, big.s AS z, big.d AS d",
         "big.d AS x, big.m AS y, big.f AS z"]  # fmt: skip


class World:
    """A table that was loaded in the order of most of its columns, small tables, and later changes."""

    def __init__(self, seed: int) -> None:
        self.random, self.number = random.Random(seed), 0
        self.rows: dict[str, list[dict[str, Any]]] = {"big": [], "day": [], "part": []}

    def big(self, place: int) -> dict[str, Any]:
        pick = self.random.random
        return {
            "i": place, "k": None if pick() < 0.1 else place // 2,
            "d": None if pick() < 0.1 else DAY + timedelta(place),
            "m": HOUR.replace(tzinfo=None) + timedelta(hours=place), "z": HOUR + timedelta(hours=place),
            "f": float("nan") if pick() < 0.05 else float(place), "r": place / 2,
            "n": Decimal(place) + Decimal("0.25") if pick() < 0.9 else None, "s": f"k{place:03}",
        }  # fmt: skip

    def loaded(self) -> dict[str, pa.Table]:
        self.rows["big"] = [self.big(place) for place in range(100)]
        self.rows["big"][3]["d"], self.rows["big"][5]["s"] = date.max, "K\u00e9"
        self.rows["day"] = [{"k": k, "y": k // 9, "d": DAY + timedelta(k), "s": f"k{k:03}"} for k in range(45)]
        self.rows["part"] = [{"i": i, "k": i // 3, "s": self.random.choice("abc"), "n": Decimal(i % 4)}
                             for i in self.random.sample(range(100), 6)]  # fmt: skip
        return self.tables({name: [(row, 1) for row in rows] for name, rows in self.rows.items()})

    def changed(self) -> dict[str, pa.Table]:
        """Some rows go, some come, most of them where there is no order."""
        made: dict[str, list[tuple[dict[str, Any], int]]] = {"big": [], "day": [], "part": []}
        for name, count in (("big", 12), ("part", 1)):
            for _ in range(count):
                made[name].append((self.rows[name].pop(self.random.randrange(len(self.rows[name]))), -1))
            for _ in range(count):
                row = self.big(self.random.randrange(100)) if name == "big" else {**made[name][0][0], "n": Decimal(2)}
                self.rows[name].append(row)
                made[name].append((row, 1))
        return self.tables({name: rows for name, rows in made.items() if rows})

    def tables(self, rows: dict[str, list[tuple[dict[str, Any], int]]]) -> dict[str, pa.Table]:
        schemas = {"big": SCHEMA, "day": {"k": pa.int32(), "y": pa.int32(), "d": pa.date32(), "s": pa.string()},
                   "part": {"i": pa.int32(), "k": pa.int64(), "s": pa.string(), "n": pa.decimal128(8, 2)}}  # fmt: skip
        return {name: pa.table({**{column: pa.array([row[column] for row, _ in some], kind)
                                   for column, kind in schemas[name].items()},
                                "__diff": pa.array([diff for _, diff in some], pa.int64())})
                for name, some in rows.items()}  # fmt: skip

    def query(self) -> tuple[str, bool]:
        """A query, and whether DuckDB has the same answer."""
        pick = self.random.choice
        source, where = pick(SOURCES), [pick(CONDITIONS) for _ in range(self.random.randrange(3))]
        where += [pick(PARTNERS)] if source == "big" and self.random.random() < 0.4 else []
        shown, errors = pick(SHOWN), False
        if self.random.random() < 0.2:
            errors = True
            where.append(pick(FAILING))
        if self.random.random() < 0.1:
            errors, shown = True, "10 / (big.i - 40) AS x, big.d AS y"
        text = f"SELECT {shown} FROM {source}"
        words = " AND " if "WHERE" in source.split("AS q")[-1] else " WHERE "
        return text + (words + " AND ".join(where) if where else ""), not errors


@pytest.fixture
def sifted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Blocks of few rows; and how often parts of a collection were left out."""
    found = list[int]()
    monkeypatch.setattr(blocks, "ROWS", 4)
    monkeypatch.setattr(blocks, "FEW", 8)
    monkeypatch.setattr(query_run, "_LARGE", 8)
    monkeypatch.setattr(Remembered, "find", lambda *_: None)  # each way makes the query anew
    part = query_run.QueryRun._part

    def noted(self: query_run.QueryRun, start: int, stop: int) -> Run:
        found.append(len(self) - stop + start)
        return part(self, start, stop)

    monkeypatch.setattr(query_run.QueryRun, "_part", noted)
    return found


def answer(engine: hj.Engine, sql: str, time: int | None) -> Bag | type[hj.DataError]:
    try:
        return bag(engine.query(sql, as_of=time))
    except hj.DataError as problem:
        return type(problem)


def whole(engine: hj.Engine, sql: str, time: int | None) -> Bag | type[hj.DataError]:
    """The answer of a query that reads all rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataflow, "sifting_of", lambda _: None)
        return answer(engine, sql, time)


def plain(found: Bag) -> Bag:
    """Rows in which NaN is equal to itself, and a number to a decimal of the same value."""
    return Counter({tuple(str(float(value)) if isinstance(value, int | float | Decimal) else value
                          for value in row): count for row, count in found.items()})  # fmt: skip


def check(engine: hj.Engine, world: World, time: int | None, count: int) -> None:
    with duckdb.connect(config={"threads": 1}) as duck:
        duck.execute("SET TimeZone = 'UTC'")
        rows = {name: [(row, 1) for row in rows] for name, rows in world.rows.items()}
        for name, table in world.tables(rows).items():
            duck.register("given", table.drop_columns(["__diff"]))
            duck.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        for _ in range(count):
            sql, same = world.query()
            found, expected = answer(engine, sql, time), whole(engine, sql, time)
            if isinstance(expected, type) or isinstance(found, type):
                assert found is expected, sql
                continue
            assert plain(found) == plain(expected), sql
            if same and time is None:
                assert plain(found) == plain(bag(duck.sql(sql).to_arrow_table())), sql


@pytest.mark.parametrize("seed", range(6))
def test_a_sifted_query_has_the_answer_of_all_rows(seed: int, sifted: list[int]) -> None:
    world = World(seed)
    with hj.Engine(clock="own", retain=100) as engine:
        engine.execute(DDL)
        engine.apply(world.loaded(), time=1)
        check(engine, world, None, 20)
        assert len(sifted) > 10
        for time in range(2, 4):
            engine.apply(world.changed(), time=time)
            check(engine, world, None, 10)
            check(engine, world, world.random.randrange(1, time + 1), 4)
        engine.compact()
        check(engine, world, None, 10)


@pytest.mark.parametrize("seed", range(3))
def test_a_sifted_query_of_files_has_the_answer_of_all_rows(
    seed: int, sifted: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 8)
    read = list[int]()
    groups = parquet_reader.OpenFile.parts

    def noted(self: parquet_reader.OpenFile, chosen: Any, most: int) -> Any:
        read.append(int((~chosen).sum()))
        return groups(self, chosen, most)

    monkeypatch.setattr(parquet_reader.OpenFile, "parts", noted)
    world = World(100 + seed)
    with hj.Engine(tmp_path / "w", clock="own", retain=100) as engine:
        engine.execute(DDL)
        engine.apply(world.loaded(), time=1)
        engine.flush()
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        check(engine, world, None, 10)
        engine.apply(world.changed(), time=2)
        check(engine, world, None, 10)
        check(engine, world, 1, 5)
    assert sum(read) > 10


def test_a_cross_product_with_a_large_table_needs_no_index() -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE big (k bigint, d bigint); CREATE TABLE few (x bigint)")
        engine.apply({"big": pa.table({"k": range(40_000), "d": [k % 7 for k in range(40_000)]}),
                      "few": pa.table({"x": [1, 2, 9]})})  # fmt: skip
        found = engine.query("SELECT count(*) AS n FROM big, few WHERE few.x IN (SELECT d FROM big)")
        assert found.to_pylist() == [{"n": 80_000}]
