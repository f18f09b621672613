"""Random scripts of INSERT, UPDATE, DELETE and MERGE against PostgreSQL: `HALFJOIN_FUZZ_SQL=n` tries n statements.

After each statement the tables are the same, so are its tag and the rows of RETURNING, or the class of its error. Views
over the tables obey the view law, also after a restart.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

STATEMENTS = 40
MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(4, int(MORE or 0) // STATEMENTS))

TABLES = ("t", "u", "w")
DDL = ("CREATE TABLE t (k integer PRIMARY KEY, a integer, b varchar(3) NOT NULL)",
       "CREATE TABLE u (k integer, y bigint)",
       "CREATE TABLE w (p integer, q text, n numeric(6,2), PRIMARY KEY (p, q))")  # fmt: skip
VIEWS = {
    "joined": "SELECT t.k, t.b, u.y FROM t JOIN u ON t.k = u.k",
    "counted": "SELECT k, count(*) AS n, sum(y) AS y FROM u GROUP BY k",
    "left_over": "SELECT t.k, w.n FROM t LEFT JOIN w ON t.a = w.p",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_scripts_do_what_postgresql_does(seed: int, postgres: Any, tmp_path: Path) -> None:
    script, engine = Script(Random(seed)), hj.Engine(tmp_path / "w", clock="own")
    for ddl in DDL:
        engine.execute(ddl)
        postgres.execute(ddl)
    for name, query in VIEWS.items():
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    kinds: Counter[str] = Counter()
    for time in range(1, STATEMENTS + 1):
        sql = script.statement()
        expected, found = _in_postgres(postgres, sql), _here(engine, f"SET TIME = {time}; {sql}")
        assert found == expected, f"seed {seed}: {sql}"
        kinds[f"{sql.split()[0]} {'fails' if isinstance(found, str) else 'works'}"] += 1
        for name in TABLES:
            assert _rows(engine.read(name)) == _all(postgres, f"TABLE {name}"), f"{name}, seed {seed}: {sql}"
        if time % 10 == 0:
            if time % 20 == 0:
                engine.close()
                engine = hj.Engine(tmp_path / "w")
            for name, query in VIEWS.items():
                assert _rows(engine.read(name)) == _all(postgres, query), f"{name}, seed {seed}: {sql}"
    engine.close()
    assert sum(count for kind, count in kinds.items() if kind.endswith("works")) > STATEMENTS // 2, kinds
    assert all(kinds[f"{word} works"] for word in ("INSERT", "UPDATE")), kinds


def _in_postgres(postgres: Any, sql: str) -> Any:
    import psycopg

    try:
        cursor = postgres.execute(sql)
    except psycopg.Error as error:
        return str(error.sqlstate)[:2]
    return cursor.statusmessage, None if cursor.description is None else Counter(cursor.fetchall())


def _here(engine: hj.Engine, sql: str) -> Any:
    try:
        found = engine.execute(sql)
    except hj.HalfjoinError as error:
        return error.sqlstate[:2]
    assert found is not None
    returned = None if found.column_names == ["count"] and "RETURNING" not in sql else _rows(found)
    return found.schema.metadata[b"tag"].decode(), returned


def _rows(table: Any) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _all(postgres: Any, sql: str) -> Counter[tuple[Any, ...]]:
    return Counter(postgres.execute(sql).fetchall())


class Script:
    """Makes random statements. Where a statement joins, a row of the table has one partner, so there is one outcome."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def statement(self) -> str:
        return self.pick(self.insert, self.insert, self.insert, self.update, self.update, self.delete, self.conflict,
                         self.conflict, self.merge, self.common)()  # fmt: skip

    def pick(self, *items: Any) -> Any:
        return self.random.choice(items)

    def number(self) -> str:
        return self.pick(*map(str, range(9)), "NULL", "'4'", "(SELECT max(k) FROM t)", "(SELECT count(*) FROM u)",
                         "2 + 1")  # fmt: skip

    def text(self) -> str:
        return self.pick("'a'", "'b'", "'abc'", "''", "'long'", "NULL", "(SELECT min(b) FROM t)")

    def where(self, alias: str = "") -> str:
        dot = f"{alias}." if alias else ""
        return self.pick(
            "", "", f" WHERE {dot}k = {self.number()}", f" WHERE {dot}k > {self.number()} AND {dot}k < 7",
            f" WHERE EXISTS (SELECT 1 FROM u AS x WHERE x.k = {dot}k)", f" WHERE {dot}k IN (SELECT p FROM w)",
            f" WHERE {dot}k NOT IN (SELECT p FROM w)", f" WHERE {dot}k = (SELECT min(k) FROM u)",
            f" WHERE {dot}k / ({dot}k - 3) > 0",
        )  # fmt: skip

    def values(self, *columns: str) -> str:
        made = {"k": self.number, "a": self.number, "b": self.text, "y": self.number, "p": self.number, "q": self.text,
                "n": lambda: self.pick("1.5", "1.555", "99999", "NULL", "-3", "DEFAULT")}  # fmt: skip
        rows = [", ".join(made[c]() for c in columns) for _ in range(self.random.randint(1, 3))]
        return "VALUES " + ", ".join(f"({row})" for row in rows)

    def insert(self) -> str:
        return self.pick(
            f"INSERT INTO t {self.values('k', 'a', 'b')}{self.returning('t')}",
            f"INSERT INTO u {self.values('k', 'y')}{self.returning('u')}",
            f"INSERT INTO w AS z {self.values('p', 'q', 'n')}",
            f"INSERT INTO u (y) {self.values('y')} RETURNING *",
            f"INSERT INTO t (b, k) {self.values('b', 'k')} RETURNING k + 1 AS more, b || '!' AS b",
            f"INSERT INTO u SELECT k, count(*) FROM u{self.where()} GROUP BY k",
            f"INSERT INTO u SELECT k, a FROM t{self.where()} UNION SELECT p, 7 FROM w RETURNING *",
            "INSERT INTO u SELECT k, row_number() OVER (ORDER BY k) FROM t ORDER BY k DESC LIMIT 2",
            "WITH x AS (SELECT k, y FROM u) INSERT INTO w SELECT DISTINCT k, 'x', least(y, 9) FROM x WHERE k >= 0",
            "INSERT INTO u DEFAULT VALUES RETURNING *",
            "INSERT INTO t DEFAULT VALUES",
            "INSERT INTO t (k, nosuch) VALUES (1, 2)",
            f"INSERT INTO t SELECT k + 10, y, 'n' FROM u{self.where()}",
        )  # fmt: skip

    def returning(self, name: str) -> str:
        return self.pick("", f" RETURNING {name}.*, k + 1 AS one_more", " RETURNING (SELECT count(*) FROM w), k")

    def update(self) -> str:
        return self.pick(
            f"UPDATE t SET a = a + {self.number()}{self.where()}",
            f"UPDATE t SET (a, b) = ({self.number()}, {self.text()}){self.where()} RETURNING *",
            f"UPDATE u SET y = y * 2, k = {self.number()}{self.where()} RETURNING k, y",
            "UPDATE t SET (a, b) = (SELECT max(y), 'mx' FROM u WHERE u.k = t.k) RETURNING k, a",
            f"UPDATE t SET a = s.y FROM (SELECT sum(y) AS y FROM u) AS s{self.where('t')} RETURNING t.k"
            if self.random.random() < 0.1 else
            "UPDATE t SET a = s.y FROM (SELECT k, sum(y) AS y FROM u GROUP BY k) AS s WHERE s.k = t.k RETURNING *",
            "UPDATE u AS z SET y = t.a FROM t WHERE t.k = z.k RETURNING z.y, t.b",
            "UPDATE u SET y = t.a + w.p FROM t JOIN (SELECT DISTINCT p FROM w) AS w ON w.p = t.a WHERE t.k = u.k",
            "UPDATE t SET a = DEFAULT WHERE k < 3",
            f"WITH m AS (SELECT min(k) AS k FROM t) UPDATE t SET b = {self.text()} FROM m WHERE m.k = t.k RETURNING *",
            "UPDATE w SET n = n + 0.125, q = q || p WHERE n < 100",
            "UPDATE t SET nosuch = 1",
            "UPDATE t SET k = 1 WHERE k IN (1, 2)",
        )  # fmt: skip

    def delete(self) -> str:
        return self.pick(
            f"DELETE FROM t{self.pick(' WHERE k = 3', ' WHERE a > 5', ' WHERE k IN (SELECT k FROM u WHERE y > 4)')}",
            f"DELETE FROM u{self.where()} RETURNING k, y + 1 AS y",
            "DELETE FROM u USING t WHERE t.k = u.k AND t.a < 4 RETURNING u.*, t.b",
            "DELETE FROM w AS z USING t, (SELECT DISTINCT k FROM u) AS v WHERE z.p = t.k AND t.k = v.k",
            "WITH x AS (SELECT max(p) AS p FROM w) DELETE FROM w USING x WHERE w.p = x.p RETURNING *",
            "DELETE FROM w WHERE (p, q) IN (SELECT a, b FROM t)",
            "DELETE FROM w WHERE nosuch",
        )  # fmt: skip

    def conflict(self) -> str:
        update = self.pick("a = excluded.a", "a = t.a + excluded.a, b = excluded.b", "b = left(t.b || 'x', 3)",
                           "(a, b) = (excluded.k, t.b)", "a = (SELECT max(y) FROM u WHERE k = excluded.k)")  # fmt: skip
        condition = self.pick("", "", " WHERE t.a > excluded.a", " WHERE excluded.b <> t.b")
        return self.pick(
            f"INSERT INTO t {self.values('k', 'a', 'b')} ON CONFLICT (k) DO UPDATE SET {update}{condition} "
            "RETURNING *",
            f"INSERT INTO t {self.values('k', 'a', 'b')} ON CONFLICT DO NOTHING{self.returning('t')}",
            f"INSERT INTO t SELECT k, max(y), 'q' FROM u WHERE k IS NOT NULL GROUP BY k ON CONFLICT (k) DO UPDATE "
            f"SET {update}{condition}",
            f"INSERT INTO w {self.values('p', 'q', 'n')} ON CONFLICT (q, p) DO UPDATE SET n = w.n + 1 RETURNING *",
            "INSERT INTO w SELECT k, 'a', least(y, 9) FROM u WHERE k > 2 ORDER BY 1, 3 ON CONFLICT (p, q) DO NOTHING",
            "INSERT INTO t VALUES (1, 2, 'x') ON CONFLICT (a) DO NOTHING",
            "INSERT INTO t VALUES (1, 2, 'x') ON CONFLICT ON CONSTRAINT t_pkey DO UPDATE SET b = 'c'",
            "INSERT INTO u VALUES (1, 2) ON CONFLICT DO NOTHING",
        )  # fmt: skip

    def common(self) -> str:
        return self.pick(
            f"WITH gone AS (DELETE FROM u{self.where()} RETURNING *) INSERT INTO w SELECT DISTINCT k, 'g', least(y, 9) "
            "AS y FROM gone WHERE k IS NOT NULL ORDER BY k, y ON CONFLICT DO NOTHING RETURNING *",
            f"WITH gone AS (DELETE FROM t WHERE k < {self.number()} RETURNING k, a), more AS (INSERT INTO u SELECT * "
            "FROM gone RETURNING y) UPDATE w SET n = 1 + (SELECT count(*) FROM more) RETURNING q, n, "
            "(SELECT count(*) FROM t)",
            f"WITH changed (key) AS (UPDATE t SET a = {self.number()}{self.where()} RETURNING k), x AS (SELECT key + 1 "
            "AS k FROM changed) DELETE FROM u USING x WHERE u.k = x.k RETURNING u.*",
            f"WITH added AS (INSERT INTO t {self.values('k', 'a', 'b')} RETURNING k) INSERT INTO u (k) SELECT k + 1 "
            "FROM added RETURNING k, (SELECT count(*) FROM t)",
            "WITH x AS (DELETE FROM u) INSERT INTO u SELECT k, y FROM x",
        )  # fmt: skip

    def merge(self) -> str:
        source = self.pick("(SELECT k, max(y) AS y FROM u GROUP BY k) AS s",
                           "(SELECT * FROM u WHERE k IN (SELECT k FROM t)) AS s",  # so twice, and no other error
                           f"({self.values('k', 'y')}) AS s (k, y)")  # fmt: skip
        clauses = self.random.sample([
            "WHEN MATCHED AND s.y > 6 THEN DELETE", "WHEN MATCHED AND t.a IS NULL THEN DO NOTHING",
            "WHEN MATCHED THEN UPDATE SET a = s.y, b = 'mrg'", "WHEN MATCHED THEN UPDATE SET (a) = ROW(t.a + 1)",
            "WHEN NOT MATCHED AND s.k > 4 THEN DO NOTHING", "WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.y, 'new')",
            "WHEN NOT MATCHED AND s.y = 1 THEN INSERT (b, k) VALUES ('one', s.k)",
        ], self.random.randint(1, 4))  # fmt: skip
        into = self.pick(f"t USING {source} ON t.k = s.k {' '.join(clauses)}",
                         "u USING t ON u.k = t.k WHEN MATCHED AND t.a > 3 THEN UPDATE SET y = t.a WHEN NOT MATCHED "
                         "THEN INSERT VALUES (t.k, DEFAULT)",
                         "u USING w ON u.k = w.p AND u.y < 5 WHEN MATCHED THEN DELETE")  # fmt: skip
        return f"MERGE INTO {into}"
