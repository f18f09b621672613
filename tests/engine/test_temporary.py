"""Temporary tables: what a connection has for itself, in memory, until it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.statements.connection import Connection
from halfjoin.sql.parse.prepared import prepared


@pytest.fixture
def engine() -> hj.Engine:
    made = hj.Engine()
    made.execute("CREATE TABLE t (a integer PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    return made


def rows(engine: hj.Engine, sql: str) -> list[tuple[Any, ...]]:
    found = engine.execute(sql)
    assert found is not None
    return sorted(tuple(row.values()) for row in found.to_pylist())


def run(connection: Connection, sql: str) -> list[dict[str, Any]]:
    found = connection.run(prepared(sql)).rows
    return [] if found is None else found.to_pylist()


@pytest.mark.parametrize("sql", ["CREATE TYPE pg_temp.m AS ENUM ('a')", "CREATE DOMAIN pg_temp.m AS integer"])
def test_a_type_is_never_temporary(sql: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match=r"a temporary type or domain is not supported.*create it without"):
        hj.Engine().execute(sql)


def test_a_temporary_table_hides_one_of_its_name(engine: hj.Engine) -> None:
    engine.execute("CREATE TEMP TABLE t AS SELECT 7 AS a")
    assert rows(engine, "SELECT * FROM t") == rows(engine, "SELECT * FROM pg_temp.t") == [(7,)]
    assert engine.read("t").to_pylist() == engine.query("SELECT * FROM t").to_pylist() == [{"a": 7}]
    assert rows(engine, "SELECT a FROM public.t") == [(1,), (2,)]
    engine.execute("DROP TABLE t")
    assert rows(engine, "SELECT a FROM t") == [(1,), (2,)]


def test_a_connection_does_not_see_those_of_others(engine: hj.Engine) -> None:
    one, other = engine.connect(), engine.connect()
    run(one, "CREATE TEMP TABLE mine (a integer)")
    run(other, "CREATE TEMP TABLE mine (b text)")
    run(one, "INSERT INTO mine VALUES (1)")
    assert run(one, "SELECT * FROM mine") == [{"a": 1}]
    assert run(other, "SELECT * FROM mine") == []
    for ask in (lambda: engine.read("mine"), lambda: run(engine.connect(), "SELECT * FROM mine")):
        with pytest.raises(hj.UnknownName):
            ask()
    one.reset()
    with pytest.raises(hj.UnknownName):
        run(one, "SELECT * FROM mine")


def test_no_temporary_row_reaches_the_warehouse(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute("CREATE TABLE t (a integer); SET TIME = 1; INSERT INTO t VALUES (1); RESET TIME")
        before = sorted(path.stat().st_size for path in (tmp_path / "w").rglob("*") if path.is_file())
        engine.execute("CREATE TEMP TABLE s (a integer PRIMARY KEY); INSERT INTO s SELECT generate_series(1, 500)")
        engine.execute("CREATE TEMP VIEW v AS SELECT sum(a) AS a FROM s; UPDATE s SET a = a + 1000")
        assert rows(engine, "SELECT * FROM v") == [(625250,)]
        assert rows(engine, "SELECT s.a FROM s, t WHERE s.a = t.a + 1000 AS OF 1") == [(1001,)]
        assert sorted(path.stat().st_size for path in (tmp_path / "w").rglob("*") if path.is_file()) == before
    with hj.Engine(tmp_path / "w") as engine, pytest.raises(hj.UnknownName):
        engine.read("s")


def test_they_work_where_the_engine_only_reads(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (a integer); INSERT INTO t VALUES (1)")
    with hj.Engine(tmp_path / "w", read_only=True) as engine:
        engine.execute("CREATE TEMP TABLE s AS SELECT a + 1 AS a FROM t; INSERT INTO s VALUES (5)")
        assert rows(engine, "SELECT * FROM s") == [(2,), (5,)]


def test_rollback_takes_back_what_is_temporary(engine: hj.Engine) -> None:
    engine.execute("CREATE TEMP TABLE s (a integer); INSERT INTO s VALUES (1)")
    engine.execute("BEGIN; INSERT INTO s VALUES (2); SAVEPOINT x; INSERT INTO s VALUES (3); "
                   "CREATE TEMP TABLE u (a int); ROLLBACK TO x; INSERT INTO t SELECT a + 10, 'z' FROM s")  # fmt: skip
    assert rows(engine, "SELECT a FROM s") == [(1,), (2,)]
    engine.execute("ROLLBACK")
    assert rows(engine, "SELECT a FROM s") == [(1,)]
    assert rows(engine, "SELECT a FROM t") == [(1,), (2,)]


@pytest.mark.parametrize(("ending", "left"), [("DELETE ROWS", []), ("PRESERVE ROWS", [(1,)]), ("DROP", None)])
def test_a_commit_does_what_on_commit_says(ending: str, left: list[Any] | None, engine: hj.Engine) -> None:
    engine.execute(f"BEGIN; CREATE TEMP TABLE s (a integer) ON COMMIT {ending}; INSERT INTO s VALUES (1)")
    engine.execute("CREATE TEMP VIEW v AS SELECT * FROM s")
    assert rows(engine, "SELECT * FROM v") == [(1,)]
    engine.execute("COMMIT")
    if left is None:
        with pytest.raises(hj.UnknownName):
            engine.execute("SELECT * FROM v")
    else:
        assert rows(engine, "SELECT * FROM v") == left


def test_constraints_of_temporary_tables_hold(engine: hj.Engine) -> None:
    engine.execute("CREATE TEMP TABLE s (a int PRIMARY KEY, b int CHECK (b > 0), c int GENERATED ALWAYS AS (a) STORED)")
    engine.execute("CREATE TEMP TABLE r (a int REFERENCES s ON DELETE CASCADE)")
    engine.execute("INSERT INTO s VALUES (1, 1), (2, 2); INSERT INTO r VALUES (1), (2)")
    for sql, state in (("INSERT INTO s VALUES (1, 1)", "23505"), ("INSERT INTO s VALUES (3, 0)", "23514"),
                       ("INSERT INTO r VALUES (9)", "23503"), ("CREATE TEMP TABLE q (a int REFERENCES t)", "42P16"),
                       ("CREATE TABLE q (a int REFERENCES s)", "42P16")):  # fmt: skip
        with pytest.raises(hj.HalfjoinError) as error:
            engine.execute(sql)
        assert error.value.sqlstate == state
    engine.execute("DELETE FROM s WHERE a = 1")
    assert rows(engine, "SELECT * FROM r") == [(2,)]


def test_a_view_over_a_temporary_table_is_temporary(engine: hj.Engine) -> None:
    engine.execute("CREATE TEMP TABLE s (a integer); CREATE VIEW v AS SELECT a FROM s")
    assert "v" in {row["viewname"] for row in engine.execute(
        "SELECT viewname FROM pg_views WHERE schemaname = 'pg_temp'").to_pylist()}  # type: ignore[union-attr]
    for sql in ("CREATE MATERIALIZED VIEW m AS SELECT a FROM s", "CREATE MATERIALIZED VIEW m AS SELECT a FROM v",
                "CREATE MATERIALIZED VIEW pg_temp.m AS SELECT 1 AS a", "CREATE SINK k FROM s INTO DELTA '/tmp/k'"):
        with pytest.raises(hj.UnsupportedSQL, match="temporary"):
            engine.execute(sql)


def test_sequences_of_a_connection_are_its_own(engine: hj.Engine) -> None:
    engine.execute("CREATE SEQUENCE q; CREATE TEMP SEQUENCE q; CREATE TEMP TABLE s (id serial, a text)")
    assert rows(engine, "SELECT setval('q', 10)") == [(10,)]
    assert rows(engine, "SELECT nextval('q')") == [(11,)]
    assert rows(engine, "SELECT nextval('public.q')") == [(1,)]
    assert rows(engine, "INSERT INTO s (a) VALUES ('x') RETURNING id") == [(1,)]


def test_a_budget_bounds_temporary_rows() -> None:
    engine = hj.Engine(memory="1MB")
    engine.execute("CREATE TEMP TABLE s (a bigint)")
    with pytest.raises(hj.StorageError, match="budget"):
        engine.execute("INSERT INTO s SELECT generate_series(1, 200000)")
    assert rows(engine, "SELECT count(*) FROM s") == [(0,)]


def test_catalogs_tell_what_is_temporary(engine: hj.Engine) -> None:
    engine.execute("CREATE TEMP TABLE s (a integer)")
    assert rows(engine, "SELECT relpersistence FROM pg_class WHERE relname IN ('s', 't') ORDER BY relname") == [
        ("p",), ("t",)]  # fmt: skip
    assert rows(engine, "SELECT table_type FROM information_schema.tables WHERE table_name = 's'") == [
        ("LOCAL TEMPORARY",)]  # fmt: skip


def test_a_connection_finds_the_schema_of_what_is_temporary(engine: hj.Engine) -> None:
    """As clients look for their temporary tables: there is none before the first one."""
    own = "SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()"
    one, other = engine.connect(), engine.connect()
    assert run(one, own) == []
    run(one, "CREATE TEMP VIEW s AS SELECT 1 AS a")
    assert run(one, own) == [{"nspname": "pg_temp"}]
    assert run(one, "SELECT relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()") == [{"relname": "s"}]
    assert run(other, own) == []


def test_select_into_creates_a_table(engine: hj.Engine) -> None:
    engine.execute("SELECT a INTO u FROM t UNION SELECT 5; SELECT b INTO TEMP s FROM t")
    assert rows(engine, "SELECT * FROM u") == [(1,), (2,), (5,)]
    assert rows(engine, "SELECT * FROM pg_temp.s") == [("x",), ("y",)]


def test_copy_finds_a_temporary_table(engine: hj.Engine) -> None:
    engine.execute("CREATE TEMP TABLE s (a integer)")
    assert engine.copy_from("COPY s FROM STDIN", "1\n2\n") == 2
    assert engine.copy_to("COPY s TO STDOUT") in (b"1\n2\n", b"2\n1\n")


@pytest.mark.parametrize("change", [
    "ALTER TABLE n RENAME COLUMN k TO j; ALTER TABLE n RENAME COLUMN x TO k",
    "ALTER TABLE n RENAME TO old; CREATE TABLE n (k text, x text); INSERT INTO n VALUES ('other', '')",
    "DROP TABLE n; CREATE TABLE n (k integer, x integer)",
])  # fmt: skip
def test_a_view_never_reads_what_it_did_not_mean(change: str) -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE n (k integer, x integer); INSERT INTO n VALUES (1, 100)")
        engine.execute("CREATE TEMP VIEW v AS SELECT k FROM n; CREATE TEMP VIEW w AS SELECT k FROM v")
        engine.execute("ALTER TABLE n ADD COLUMN y integer")
        assert rows(engine, "SELECT * FROM w") == [(1,)]
        engine.execute(change)
        for name in ("v", "w"):
            with pytest.raises(hj.Conflict, match="create it again"):
                engine.query(f"SELECT * FROM {name}")
        engine.execute("CREATE TEMP TABLE other (a integer); DROP VIEW w; DROP VIEW v")
        engine.execute("CREATE TEMP VIEW v AS SELECT count(k) AS n FROM n")
        assert len(rows(engine, "SELECT * FROM v")) == 1


def test_a_view_over_a_table_of_its_transaction_lasts_beyond_it() -> None:
    with hj.Engine() as engine:
        engine.execute("BEGIN; CREATE TABLE n (k integer); CREATE TEMP VIEW v AS SELECT k FROM n; COMMIT")
        engine.execute("INSERT INTO n VALUES (1)")
        assert rows(engine, "SELECT * FROM v") == [(1,)]
