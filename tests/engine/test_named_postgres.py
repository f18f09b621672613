"""Random scripts with enums, domains and schemas, against PostgreSQL: tables, queries, views, and restarts between."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from tests.engine.test_dml_postgres import _all, _rows
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

STATEMENTS = 40
MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(3, int(MORE or 0) // STATEMENTS))
DDL = (
    "CREATE SCHEMA s", "CREATE TYPE e AS ENUM ('c', 'a', 'd', 'b')",
    "CREATE DOMAIN s.low AS integer DEFAULT 3 CHECK (VALUE > 0) CONSTRAINT below CHECK (VALUE < 9)",
    "CREATE DOMAIN s.late AS e NOT NULL CHECK (VALUE > 'c')",
    "CREATE TABLE t (id integer, e e, p s.low)", "CREATE TABLE s.u (f s.late, e e UNIQUE, n integer CHECK (n < 7))",
)  # fmt: skip
QUERIES = (
    "SELECT e, count(*) AS n, min(p) AS p FROM t GROUP BY e",
    "SELECT max(e) AS hi, min(e) AS lo, count(DISTINCT e) AS n FROM t",
    "SELECT id, e FROM t WHERE e >= 'a' AND e < 'b'",
    "SELECT id, e, rank() OVER (ORDER BY e) AS r FROM t",
    "SELECT id, max(e) OVER (ORDER BY id) AS m, first_value(e) OVER (ORDER BY e DESC NULLS LAST) AS v FROM t",
    "SELECT id, e FROM t WHERE e IS NOT NULL ORDER BY e DESC, id, p LIMIT 2",
    "SELECT DISTINCT ON (e) e, id FROM t ORDER BY e DESC, id",
    "SELECT t.id, u.n, u.f FROM t JOIN s.u ON t.e = u.e AND t.e > u.f::e",
    "SELECT t.id, u.n FROM t LEFT JOIN s.u ON t.e = u.e",
    "SELECT p, array_agg(e ORDER BY e DESC, id)::text[] AS es, mode() WITHIN GROUP (ORDER BY e) AS m FROM t GROUP BY p",
    "SELECT id, greatest(e, 'd') AS g, least(e, 'd') AS l, e::text AS x, e IN ('a', 'b') AS i FROM t",
    "SELECT id, CASE WHEN e BETWEEN 'a' AND 'd' THEN e ELSE 'b' END AS c, e IS DISTINCT FROM 'a' AS d FROM t",
    "SELECT e FROM t UNION SELECT f::e FROM s.u",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY e) AS m FROM t",
    "SELECT id, p + 1 AS q FROM t WHERE (SELECT max(u.e) FROM s.u) > t.e",
)


@pytest.mark.parametrize("seed", SEEDS)
def test_scripts_mean_what_they_do_in_postgresql(seed: int, postgres: Any, tmp_path: Path) -> None:
    random, engine, script = Random(seed), hj.Engine(tmp_path / "w", clock="own"), Script(seed)
    postgres.execute("DROP SCHEMA IF EXISTS s CASCADE")
    for ddl in DDL:
        engine.execute(ddl)
        postgres.execute(ddl)
    for number, query in enumerate(QUERIES):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
    outcomes: Counter[str] = Counter()
    for time in range(1, STATEMENTS + 1):
        sql = script.statement()
        found, expected = _outcome(engine, f"SET TIME = {time}; {sql}"), _expected(postgres, sql)
        assert found == expected, f"seed {seed}: {sql}"
        outcomes[f"{sql.split()[0]} {found}"] += 1
        if time % 10 == 0:
            engine.close()
            engine = hj.Engine(tmp_path / "w")
        for table in ("t", "s.u"):
            assert _rows(engine.read(table)) == _all(postgres, f"TABLE {table}"), f"seed {seed}: {sql}"
        for number in random.sample(range(len(QUERIES)), 4) if time < STATEMENTS else range(len(QUERIES)):
            wanted = _plain(postgres.execute(QUERIES[number]).fetchall())
            assert _here(engine.read(f"v{number}")) == wanted, f"seed {seed}: {sql}: {QUERIES[number]}"
            assert _here(engine.query(QUERIES[number])) == wanted, f"seed {seed}: {sql}: {QUERIES[number]}"
        assert engine.query("SELECT e FROM t ORDER BY e").column("e").to_pylist() == [
            row[0] for row in postgres.execute("SELECT e FROM t ORDER BY e").fetchall()], f"seed {seed}: {sql}"
    engine.close()
    postgres.execute("DROP SCHEMA s CASCADE")
    assert outcomes["INSERT works"] > 3 and outcomes["ALTER works"] > 1, outcomes


class Script:
    """Makes random statements. Labels of the queries keep their names."""

    def __init__(self, seed: int) -> None:
        self.random, self.made = Random(seed), 0

    def statement(self) -> str:
        pick, number = self.random.choice, self.random.randint(0, 9)
        return self.rows(pick, number) if self.random.random() < 0.4 else pick([
            f"UPDATE t SET e = {self.label()} WHERE id = {number}", f"UPDATE t SET p = p + {number} WHERE e > 'c'",
            f"UPDATE s.u SET f = {self.label()} WHERE e = {self.label()}", f"DELETE FROM t WHERE e < {self.label()}",
            f"DELETE FROM s.u WHERE u.e = {self.label()} OR n = {number}", f"SELECT {number}::s.low, {self.label()}::e",
            f"SELECT {self.label()}::text::e", "DROP TYPE e", "DROP DOMAIN s.low", "DROP SCHEMA s",
            "CREATE TYPE e AS ENUM ('x')", "CREATE SCHEMA s", "CREATE SCHEMA IF NOT EXISTS s", "DROP TABLE nosuch.t",
            "CREATE TABLE nosuch.t (a integer)", "CREATE TABLE b (a nosuch)", "SELECT e = 'a'::text FROM t",
            *[self.alter() for _ in range(8)],
        ])  # fmt: skip

    def rows(self, pick: Any, number: int) -> str:
        return str(pick([
            f"INSERT INTO t VALUES ({number}, {self.label()}, {pick([number, number, 'NULL', 'DEFAULT'])})",
            f"INSERT INTO t (id, e) VALUES ({number}, {self.label()}), ({number + 1}, {self.label()})",
            f"INSERT INTO t SELECT {number}, f, n FROM s.u",
            f"INSERT INTO s.u VALUES ({self.label()}, {self.label()}, {number})",
            f"INSERT INTO s.u (f, e) VALUES ('d', {self.label()}) ON CONFLICT (e) DO UPDATE SET n = {number}",
        ]))  # fmt: skip

    def label(self) -> str:
        made = [f"'x{number}'" for number in range(self.made)]
        if self.random.random() < 0.1:
            return self.random.choice(["NULL", "'nosuch'"])
        return self.random.choice(["'a'", "'b'", "'c'", "'d'", *made])

    def alter(self) -> str:
        random = self.random
        if self.made and random.random() < 0.3:
            return f"ALTER TYPE e RENAME VALUE 'x{random.randrange(self.made)}' TO 'x{random.randrange(self.made + 2)}'"
        place = random.choice(["", f" BEFORE '{random.choice('abcdx')}'", f" AFTER '{random.choice('abcd')}'"])
        self.made = min(self.made + 1, 6)
        return f"ALTER TYPE e ADD VALUE {random.choice(['', 'IF NOT EXISTS '])}'x{random.randrange(self.made)}'{place}"


def _plain(rows: Any) -> Counter[Any]:
    """Rows with their arrays as tuples."""
    return Counter(tuple(tuple(value) if isinstance(value, list) else value for value in row) for row in rows)


def _here(table: Any) -> Counter[Any]:
    return _plain(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _outcome(engine: hj.Engine, sql: str) -> str:
    try:
        engine.execute(sql)
    except hj.DataError as error:
        return "23" if "violates check" in str(error) or "does not allow null" in str(error) else "22"
    except hj.HalfjoinError as error:
        return error.sqlstate[:2]
    return "works"


def _expected(postgres: Any, sql: str) -> str:
    import psycopg

    try:
        postgres.execute(sql)
    except psycopg.Error as error:
        return str(error.sqlstate)[:2]
    return "works"
