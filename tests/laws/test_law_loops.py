"""Loop law: a recursive view is what its rounds give over the tables at each time, whatever came and went before."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import halfjoin as hj
from tests.oracle.mutual import SIZE, Bag, contents, random_program, text

pytest_plugins = ("tests.support.postgres",)
FUZZED = int(os.environ.get("HALFJOIN_FUZZ_SQL", "24"))
FIRST = int(os.environ.get("HALFJOIN_SEED", "0")) % 1_000_000_000
Update = tuple[Any, int, int]  # a row, a time, a diff


def _at(updates: list[Update], time: int) -> Bag:
    found: Bag = Counter()
    for row, at, diff in updates:
        if at <= time:
            found[row] += diff
    return +found


def _next(random: Random, updates: list[Update], fresh: Any, upper: int) -> Update:
    """A row that comes, or one that is there and goes, at a time that may stay open."""
    time = upper + random.randrange(3)
    there = [row for row, count in _at(updates, 1 << 40).items() if count > 0]
    if there and random.random() < 0.45:
        row = random.choice(there)
        return row, max([time, *(at for one, at, _ in updates if one == row)]), -1
    return fresh, time, 1


def _row(names: str, update: Update) -> dict[str, Any]:
    row, time, diff = update
    return {**dict(zip(names, row, strict=True)), "__time": time, "__diff": diff}


@pytest.mark.parametrize("seed", range(FIRST, FIRST + FUZZED))
def test_mutual_recursion_is_what_its_rounds_give(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    program, limit = random_program(random), random.choice([1, 2, 3, 4, 9])
    folder = tmp_path / "w" if seed % 3 == 0 else None
    engine = hj.Engine(folder, retain=1_000)
    engine.execute("CREATE TABLE inp (a bigint, b bigint)")
    views: dict[str, int] = {}
    updates: list[Update] = []
    upper = 0
    for step in range(random.randint(2, 5)):
        if step == 0 or random.random() < 0.3:
            name, shown = f"w{len(views)}", random.randrange(len(program))
            engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {text(program, limit, shown)}")
            views[name] = shown
        if folder is not None and random.random() < 0.4:
            engine.close()
            engine = hj.Engine(folder, memory=random.choice([None, 1]))
        batch = []
        for _ in range(random.randint(1, 4)):
            updates.append(_next(random, updates, (random.randrange(SIZE), random.randrange(SIZE)), upper))
            batch.append(_row("ab", updates[-1]))
        engine.apply({"inp": batch}, time=max(time for _, time, _ in updates), close=False)
        upper += random.randrange(1, 4)
        engine.advance(upper)
    upper = max(upper, *(time for _, time, _ in updates)) + 1
    engine.advance(upper)
    since = {one.name: one.since for one in engine.stats().collections}
    for time in range(upper):
        expected = contents(program, _at(updates, time), limit)
        for name, shown in views.items():
            if time >= since[name]:
                found = Counter(tuple(row.values()) for row in engine.read(name, as_of=time).to_pylist())
                assert found == expected[shown], (name, time, text(program, limit, shown))
    adhoc = engine.query(text(program, limit, 0)).to_pylist()
    assert Counter(tuple(row.values()) for row in adhoc) == expected[0]
    engine.close()


TABLES = {"edges": "ab", "roots": "a", "stops": "a"}
RECURSIVE = {
    "reachable": """
        WITH RECURSIVE r(n) AS (SELECT a FROM roots UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n)
        SELECT n FROM r""",
    "closure": """
        WITH RECURSIVE r(x, y) AS (SELECT a, b FROM edges UNION SELECT r.x, e.b FROM r JOIN edges e ON e.a = r.y)
        SELECT x, y FROM r""",
    "paths": """
        WITH RECURSIVE r(n, d) AS (
            SELECT a, 0::bigint FROM roots
            UNION ALL
            SELECT e.b, r.d + 1 FROM r JOIN edges e ON e.a = r.n WHERE r.d < 4)
        SELECT n, d, count(*) AS paths FROM r GROUP BY n, d""",
    "around stops": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots
            UNION
            SELECT e.b FROM r JOIN edges e ON e.a = r.n WHERE NOT EXISTS (SELECT 1 FROM stops s WHERE s.a = e.b))
        SELECT r.n, s.a FROM r LEFT JOIN stops s ON s.a = r.n + 1""",
    "rounds by themselves": """
        WITH RECURSIVE r(n, d) AS (
            SELECT a, 0::bigint FROM roots
            UNION ALL
            SELECT DISTINCT e.b, r.d + 1 FROM r JOIN edges e ON e.a = r.n WHERE r.d < 4)
        SELECT n, d FROM r""",
    "new in each round": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots
            UNION
            SELECT n FROM (
                SELECT e.b AS n, row_number() OVER (ORDER BY e.b, e.a) AS k FROM r JOIN edges e ON e.a = r.n) x
            WHERE k <= 2)
        SELECT n FROM r""",
    "one after the other": """
        WITH RECURSIVE
            r(n) AS (SELECT a FROM roots UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n),
            below(n) AS (SELECT n FROM r UNION SELECT n - 1 FROM below WHERE n > 0)
        SELECT r.n, below.n AS below FROM r JOIN below ON below.n = r.n + 1""",
    "one in the other": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots
            UNION
            SELECT r.n + x.m FROM r, (
                WITH RECURSIVE s(m) AS (SELECT a FROM stops UNION SELECT m + 1 FROM s WHERE m < 4) SELECT m FROM s) x
            WHERE r.n < 9)
        SELECT n FROM r""",
    "one in the other, which reads it": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots
            UNION
            SELECT x.m + 1 FROM (
                WITH RECURSIVE s(m) AS (SELECT n FROM r UNION SELECT e.b FROM s JOIN edges e ON e.a = s.m)
                SELECT m FROM s) x
            WHERE x.m < 9)
        SELECT n FROM r""",
    "padded": """
        WITH RECURSIVE r(n) AS (
            SELECT a FROM roots
            UNION
            SELECT coalesce(e.b, greatest(r.n - 1, 0)) FROM r LEFT JOIN edges e ON e.a = r.n)
        SELECT n FROM r""",
}


@pytest.mark.parametrize("name", RECURSIVE)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(2, FUZZED // 8)))
def test_with_recursive_is_what_duckdb_computes(name: str, seed: int) -> None:
    random = Random(seed)
    engine = hj.Engine(retain=1_000)
    for table, columns in TABLES.items():
        engine.execute(f"CREATE TABLE {table} ({', '.join(f'{column} bigint' for column in columns)})")
    updates: dict[str, list[Update]] = {table: [] for table in TABLES}
    views, upper = list[str](), 0
    for step in range(6):
        if step in (0, 3):
            views.append(f"v{step}")
            engine.execute(f"CREATE MATERIALIZED VIEW v{step} AS {RECURSIVE[name]}")
        batch = {}
        for table, columns in TABLES.items():
            for _ in range(random.randrange(4)):
                fresh = tuple(random.randrange(6) for _ in columns)
                updates[table].append(_next(random, updates[table], fresh, upper))
                batch.setdefault(table, []).append(_row(columns, updates[table][-1]))
        engine.apply(batch, time=upper + 2, close=False)
        upper += random.randrange(1, 4)
        engine.advance(upper)
    upper += 4
    engine.advance(upper)
    since = {one.name: one.since for one in engine.stats().collections}
    oracle = duckdb.connect(config={"threads": 1})
    for table, columns in TABLES.items():
        oracle.execute(f"CREATE TABLE {table} ({', '.join(f'{column} bigint' for column in columns)})")
    for time in range(upper):
        oracle.execute("; ".join(_filled(table, _at(updates[table], time)) for table in TABLES))
        expected = Counter(oracle.execute(RECURSIVE[name]).fetchall())
        for view in views:
            if time >= since[view]:
                found = Counter(tuple(row.values()) for row in engine.read(view, as_of=time).to_pylist())
                assert found == expected, (view, time)


def _filled(table: str, rows: Bag) -> str:
    """SQL that gives an oracle's table these rows."""
    values = ", ".join(f"({', '.join(map(str, row))})" for row in rows.elements())
    return f"DELETE FROM {table}" + f"; INSERT INTO {table} VALUES {values}" * bool(values)


def _in_postgres(postgres: Any, query: str, there: dict[str, Bag]) -> Bag:
    postgres.execute("; ".join(_filled(table, there[table]) for table in TABLES))
    return Counter(postgres.execute(query).fetchall())


@pytest.mark.parametrize("memory", [None, 1, 20_000])
@pytest.mark.parametrize("name", RECURSIVE)
def test_with_recursive_is_postgresqls_through_restarts(
    name: str, memory: int | None, tmp_path: Path, postgres: Any
) -> None:
    random, there = Random(len(name)), {table: Counter[Any]() for table in TABLES}
    for table, columns in TABLES.items():
        columns_of = ", ".join(f"{column} bigint" for column in columns)
        postgres.execute(f"CREATE TABLE {table} ({columns_of})")
    for step in range(6):
        with hj.Engine(tmp_path / "w", clock="own", memory=memory) as engine:
            if step == 0:
                for table, columns in TABLES.items():
                    engine.execute(f"CREATE TABLE {table} ({', '.join(f'{column} bigint' for column in columns)})")
            if step in (0, 3):
                engine.execute(f"CREATE MATERIALIZED VIEW v{step} AS {RECURSIVE[name]}")
            batch = {}
            for table, columns in TABLES.items():
                for _ in range(random.randrange(1, 4)):
                    row, diff = tuple(random.randrange(6) for _ in columns), 1
                    if +there[table] and random.random() < 0.4:
                        row, diff = random.choice(sorted(+there[table])), -1
                    there[table][row] += diff
                    update = {**dict(zip(columns, row, strict=True)), "__diff": diff}
                    batch.setdefault(table, []).append(update)
            engine.apply(batch, time=step + 1)
            expected = _in_postgres(postgres, RECURSIVE[name], there)
            for found in (*(engine.read(f"v{made}") for made in (0, 3) if made <= step), engine.query(RECURSIVE[name])):
                assert Counter(tuple(row.values()) for row in found.to_pylist()) == expected, step


def test_a_loop_that_does_not_settle_is_an_error_and_heals() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE edges (a bigint, b bigint)")
    engine.execute("""
        CREATE MATERIALIZED VIEW v AS
        WITH MUTUALLY RECURSIVE (ERROR AT RECURSION LIMIT 20)
            r (n bigint, d bigint) AS (SELECT 1, 0 UNION SELECT e.b, r.d + 1 FROM r JOIN edges e ON e.a = r.n)
        SELECT n, d FROM r""")
    engine.apply({"edges": [{"a": 1, "b": 2}]}, time=1)
    assert engine.read("v").num_rows == 2
    applied = engine.apply({"edges": [{"a": 2, "b": 1}]}, time=2)
    assert "changes after 20 rounds still" in applied.errors["v"]
    with pytest.raises(hj.DataError, match="changes after 20 rounds still"):
        engine.read("v")
    assert engine.read("v", as_of=1).num_rows == 2
    engine.apply({"edges": hj.deletes([{"a": 2, "b": 1}])}, time=3)
    assert engine.read("v").num_rows == 2


NESTED = """
    WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 3)
        outside (n bigint) AS (SELECT k FROM t UNION SELECT n + 10 FROM inside WHERE n < 20),
        inside (n bigint) AS (
            WITH MUTUALLY RECURSIVE (ERROR AT RECURSION LIMIT 4)
                up (n bigint) AS (
                    SELECT n FROM outside UNION SELECT n + 1 FROM up WHERE n % 10 < (SELECT max(k) FROM u))
            SELECT n FROM up)
    SELECT n FROM inside"""


def test_a_loop_in_a_loop_fails_in_the_round_where_it_goes_on() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint); CREATE TABLE u (k bigint)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {NESTED}")
    engine.apply({"t": [{"k": 0}], "u": [{"k": 2}]}, time=1)
    assert sorted(row["n"] for row in engine.read("v").to_pylist()) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    applied = engine.apply({"u": [{"k": 5}]}, time=2)
    assert "changes after 4 rounds still" in applied.errors["v"]
    engine.apply({"u": hj.deletes([{"k": 5}])}, time=3)
    assert engine.read("v").num_rows == 9


def test_what_settles_in_a_later_round_has_failed_before() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint)")
    engine.execute("""
        CREATE MATERIALIZED VIEW v AS
        WITH MUTUALLY RECURSIVE
            outside (n bigint) AS (SELECT k FROM t UNION SELECT 0 FROM outside),
            inside (n bigint) AS (
                WITH MUTUALLY RECURSIVE (ERROR AT RECURSION LIMIT 4)
                    up (n bigint) AS (SELECT n FROM outside
                                      UNION
                                      SELECT n + 1 FROM up WHERE n < 9 AND 0 NOT IN (SELECT n FROM outside))
                SELECT n FROM up)
        SELECT n FROM inside""")
    engine.apply({"t": [{"k": 7}]}, time=1)
    assert sorted(row["n"] for row in engine.read("v").to_pylist()) == [0, 7]
    assert "changes after 4 rounds still" in engine.apply({"t": [{"k": 1}]}, time=2).errors["v"]
    engine.apply({"t": hj.deletes([{"k": 1}])}, time=3)
    assert sorted(row["n"] for row in engine.read("v").to_pylist()) == [0, 7]


def test_a_user_may_have_a_column_of_that_name() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k bigint, __round bigint)")
    engine.execute("""
        CREATE MATERIALIZED VIEW v AS
        WITH MUTUALLY RECURSIVE r (k bigint, __round bigint) AS (
            SELECT k, max(__round) FROM (SELECT k, __round FROM t UNION ALL SELECT k, least(__round + 1, 5) FROM r) x
            GROUP BY k)
        SELECT k, __round FROM r""")
    engine.apply({"t": [{"k": 1, "__round": 2}, {"k": 2, "__round": 7}]}, time=1)
    assert sorted(tuple(row.values()) for row in engine.read("v").to_pylist()) == [(1, 5), (2, 7)]
    engine.apply({"t": hj.deletes([{"k": 2, "__round": 7}])}, time=2)
    assert engine.read("v").to_pylist() == [{"k": 1, "__round": 5}]


@pytest.mark.parametrize("limit", [
    "RETURN AT RECURSION LIMIT 0", "RETURN AT RECURSION LIMIT 1.5", "ERROR RECURSION LIMIT 5",
    "RETURN AT RECURSION LIMIT", "AT RECURSION LIMIT 5",
])  # fmt: skip
def test_a_limit_is_a_positive_number_of_rounds(limit: str) -> None:
    with pytest.raises(hj.HalfjoinError, match="a limit of rounds, a positive integer"):
        hj.Engine().execute(f"CREATE MATERIALIZED VIEW v AS WITH MUTUALLY RECURSIVE ({limit}) "
                            "r (n bigint) AS (SELECT 1) SELECT n FROM r")  # fmt: skip
