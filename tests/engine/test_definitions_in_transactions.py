"""BEGIN ... COMMIT with CREATE, ALTER and DROP among changes of rows: one step, and the outcome of PostgreSQL."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.sql.parse.prepared import prepared
from tests.engine.test_alter_postgres import ALTERS, DDL, VIEWS, _change, _done
from tests.engine.test_dml_postgres import _all, _rows
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(4, int(MORE or 0) // 60))
SCRIPTS = {
    "a migration": """CREATE TABLE version (n integer NOT NULL); INSERT INTO version VALUES (1);
        CREATE TABLE t (id serial PRIMARY KEY, a integer UNIQUE); INSERT INTO t (a) VALUES (5), (NULL), (7);
        UPDATE version SET n = 2; CREATE INDEX i ON t (a);
        CREATE TABLE u (k integer REFERENCES t, s text DEFAULT 'x'); INSERT INTO u (k) VALUES (2)""",
    "a column is filled before NOT NULL": """CREATE TABLE t (k integer, a integer); INSERT INTO t VALUES (1, 1), (2, 2);
        COMMIT; BEGIN; ALTER TABLE t ADD b integer; UPDATE t SET b = k * 2; ALTER TABLE t ALTER b SET NOT NULL;
        ALTER TABLE t ADD PRIMARY KEY (k), DROP a; INSERT INTO t VALUES (3, 9); ALTER TABLE t ALTER b TYPE bigint""",
    "a swap of names": """CREATE TABLE t AS SELECT 1 AS k; COMMIT; BEGIN;
        CREATE TABLE t_new AS SELECT k + 1 AS k, 'x' AS s FROM t; INSERT INTO t_new VALUES (9, 'y');
        ALTER TABLE t RENAME TO t_old; ALTER TABLE t_new RENAME TO t; DROP TABLE t_old""",
    "a savepoint": """CREATE TABLE t (k serial, a integer); INSERT INTO t (a) VALUES (1); SAVEPOINT s;
        ALTER TABLE t ADD b integer DEFAULT 4; INSERT INTO t (a) VALUES (2); DROP TABLE t; ROLLBACK TO s;
        INSERT INTO t (a) VALUES (3)""",
    "names of values": """CREATE TYPE e AS ENUM ('a', 'b'); CREATE TABLE t (x e); INSERT INTO t VALUES ('a'), ('b');
        ALTER TYPE e RENAME VALUE 'a' TO 'c'; INSERT INTO t VALUES ('c')""",
    "a key that both tables get": """CREATE TABLE u (k integer PRIMARY KEY); CREATE TABLE t (k integer);
        INSERT INTO t VALUES (1); INSERT INTO u VALUES (1); ALTER TABLE t ADD FOREIGN KEY (k) REFERENCES u;
        TRUNCATE t; DELETE FROM u; INSERT INTO u VALUES (2); INSERT INTO t VALUES (2)""",
    "numbers that begin anew": """CREATE TABLE t (k serial, a integer); INSERT INTO t (a) VALUES (1), (2); COMMIT;
        BEGIN; TRUNCATE t RESTART IDENTITY; INSERT INTO t (a) VALUES (3), (4); COMMIT; BEGIN;
        INSERT INTO t (a) VALUES (5)""",
}


@pytest.mark.parametrize("place", ["memory", "warehouse"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_transaction_ends_as_in_postgresql(name: str, place: str, postgres: Any, tmp_path: Path) -> None:
    engine = hj.Engine(tmp_path / "w") if place == "warehouse" else hj.Engine()
    for end in ("ROLLBACK", "COMMIT"):
        script = f"BEGIN; {SCRIPTS[name]}; {end}"
        postgres.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        postgres.execute(script)
        before = engine.stats().upper
        engine.execute(script)
        tables = [one for (one,) in postgres.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
        for again in range(2 if place == "warehouse" else 1):
            assert set(engine.execute("SHOW TABLES").column("name").to_pylist()) == set(tables)
            for table in tables:
                assert _rows(engine.read(table)) == _all(postgres, f"TABLE {table}"), (end, again)
            if place == "warehouse":
                engine.close()
                engine = hj.Engine(tmp_path / "w")
        if end == "ROLLBACK" and "COMMIT" not in script:
            assert engine.stats().upper == before
        for table in tables if end == "ROLLBACK" else ():
            engine.execute(f"DROP TABLE {table}")
    engine.close()


@pytest.mark.parametrize("last", [
    "SELECT 1 / 0 FROM t", "INSERT INTO fresh VALUES (1)", "CREATE TABLE t (k integer)", "ALTER TABLE old ADD a text",
    "ALTER TABLE old ADD CHECK (a > 1)", "DROP TABLE nosuch", "CREATE MATERIALIZED VIEW w AS SELECT nosuch FROM t",
])  # fmt: skip
def test_of_a_transaction_that_fails_nothing_is_left(last: str, tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute("CREATE TABLE old (a integer); CREATE MATERIALIZED VIEW v AS SELECT a FROM old; SET TIME = 1")
        engine.execute("INSERT INTO old VALUES (1); SET TIME = 2")
        with pytest.raises(hj.HalfjoinError):
            engine.execute("BEGIN; CREATE TABLE fresh (k integer PRIMARY KEY); INSERT INTO fresh VALUES (1); "
                           "CREATE TABLE t (k integer); INSERT INTO t VALUES (1); INSERT INTO old VALUES (2); "
                           f"ALTER TABLE old ADD b integer; DROP MATERIALIZED VIEW v; {last}; COMMIT")
        assert engine.execute("SHOW TABLES").column("name").to_pylist() == ["old"]
        assert engine.read("v").to_pylist() == [{"a": 1}] and engine.read("old").column_names == ["a"]
        assert engine.stats().upper == 2


def test_others_see_nothing_before_commit_and_views_obey_their_law(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute("CREATE TABLE t (k integer); SET TIME = 1; INSERT INTO t VALUES (1); SET TIME = 2; BEGIN")
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM t GROUP BY k; "
                       "INSERT INTO t VALUES (1), (2)")
        assert engine.execute("SELECT * FROM v ORDER BY k").to_pylist() == [{"k": 1, "n": 2}, {"k": 2, "n": 1}]
        with pytest.raises(hj.UnknownName):
            engine.read("v")
        engine.execute("COMMIT")
        assert engine.read("v", as_of=1).to_pylist() == [{"k": 1, "n": 1}]
        assert _rows(engine.read("v")) == Counter([(1, 2), (2, 1)])


def test_a_batch_between_changes_and_commit_is_a_conflict(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute("CREATE TABLE t (k integer); CREATE TABLE u (k integer); SET TIME = 9; BEGIN")
        engine.execute("CREATE TABLE w (k integer); INSERT INTO t VALUES (1); ALTER TABLE t RENAME TO x")
        engine.apply({"u": [{"k": 5}]}, time=1)
        engine.execute("COMMIT; BEGIN; CREATE TABLE y (k integer); INSERT INTO x VALUES (2)")
        assert engine.read("u").num_rows == 1 and engine.read("x").to_pylist() == [{"k": 1}]
        engine.apply({"x": [{"k": 5}]}, time=10)
        with pytest.raises(hj.Conflict) as caught:
            engine.execute("SET TIME = 20; COMMIT")
        assert caught.value.sqlstate == "40001"
        assert "y" not in engine.execute("SHOW TABLES").column("name").to_pylist()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_transactions_do_what_postgresql_does(seed: int, postgres: Any, tmp_path: Path) -> None:
    random, engine = Random(seed), hj.Engine(tmp_path / "w", clock="own")
    for ddl in DDL:
        engine.execute(ddl)
        postgres.execute(ddl)
    views = ["starred", *random.sample([name for name in VIEWS if name != "starred"], 2)]
    for name in views:
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
        postgres.execute(f"CREATE VIEW {name} AS {VIEWS[name]}")
    for time in range(1, 13):
        engine.execute(f"SET TIME = {time}; BEGIN")
        postgres.execute("BEGIN")
        there = engine.execute("SHOW TABLES").column("name").to_pylist()
        done, name = [], "moved" if "moved" in there else "t"
        for _ in range(5):
            sql = random.choice(ALTERS) if random.random() < 0.5 else _change(random).replace("{t}", name)
            found, expected = _in_savepoint(engine, postgres, sql)
            done.append(sql)
            assert found == expected, (seed, done)
            there = engine.execute("SHOW TABLES").column("name").to_pylist()
            name = "moved" if "moved" in there else "t"
        end = random.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        engine.execute(end)
        postgres.execute(end)
        if time % 4 == 0:
            engine.close()
            engine = hj.Engine(tmp_path / "w")
        for table in engine.execute("SHOW TABLES").column("name").to_pylist():
            assert _rows(engine.read(table)) == _all(postgres, f"TABLE {table}"), (table, seed, done, end)
        for view in views:
            assert _rows(engine.read(view)) == _all(postgres, f"TABLE {view}"), (view, seed, done, end)
    engine.close()


def _in_savepoint(engine: hj.Engine, postgres: Any, sql: str) -> tuple[str, str]:
    """What a statement did here and there; if it failed, the transaction goes on without it."""
    import psycopg

    engine.execute("SAVEPOINT one")
    postgres.execute("SAVEPOINT one")
    expected = "works"
    try:
        postgres.execute(sql)
    except psycopg.Error as error:
        expected = str(error.sqlstate)[:2]
        postgres.execute("ROLLBACK TO one")
    found = _done(engine, sql)
    if found != "works":
        engine.execute("ROLLBACK TO one")
    return found, expected


def test_a_table_is_dropped_made_anew_and_filled_in_one_transaction() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE df (a integer); INSERT INTO df VALUES (1)")
    engine.execute("BEGIN; DROP TABLE df; CREATE TABLE df (a integer); INSERT INTO df VALUES (2); COMMIT")
    assert engine.read("df").to_pylist() == [{"a": 2}]
    engine.execute("BEGIN; INSERT INTO df VALUES (3); DROP TABLE df; CREATE TABLE df (b text);"
                   "INSERT INTO df VALUES ('x'); COMMIT")  # fmt: skip
    assert engine.read("df").to_pylist() == [{"b": "x"}]


DRAWN = ("timestamptz DEFAULT now()", "timestamp DEFAULT localtimestamp", "uuid DEFAULT gen_random_uuid()",
         "float8 DEFAULT random()", "timestamptz DEFAULT clock_timestamp()", "bigint DEFAULT nextval('s')")
THREE = "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)"


@pytest.mark.parametrize("value", DRAWN)
@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_a_column_has_the_values_that_the_transaction_has_seen(value: str, key: str, tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(f"CREATE SEQUENCE s; CREATE TABLE t (a int{key}, b int); {THREE}")
        there = engine.execute(f"BEGIN; ALTER TABLE t ADD COLUMN w {value}; SELECT a, w FROM t")
        assert there is not None
        seen = {row["a"]: row["w"] for row in there.to_pylist()}
        assert len(seen) == 3 and None not in seen.values()
        engine.execute("UPDATE t SET b = b + 10 WHERE a < 3; DELETE FROM t WHERE a = 3;"
                       "CREATE TABLE u AS SELECT * FROM t; COMMIT")
        found = engine.query("SELECT * FROM t ORDER BY a").to_pylist()
        assert found == [{"a": a, "b": a + 10, "w": seen[a]} for a in (1, 2)]
        assert engine.query("SELECT * FROM u ORDER BY a").to_pylist() == found


def test_other_numbers_than_the_transaction_has_seen_are_a_conflict(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(f"CREATE SEQUENCE s; CREATE TABLE t (a int, b int); {THREE}")
        engine.execute("BEGIN; ALTER TABLE t ADD COLUMN w bigint DEFAULT nextval('s'); DELETE FROM t WHERE a = 1")
        other = engine.connect()
        other.run(prepared("SELECT nextval('s')"))
        with pytest.raises(hj.Conflict, match="other rows than the transaction has seen"):
            engine.execute("COMMIT")
        assert engine.read("t").num_rows == 3
