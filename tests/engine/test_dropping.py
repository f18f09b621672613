"""DROP and its kin say the kind of what they mean, and CASCADE tells what went with it."""

from __future__ import annotations

import pytest

import halfjoin as hj

DEFINITIONS = """
    CREATE TABLE t (k integer PRIMARY KEY, a integer);
    CREATE TABLE c (k integer REFERENCES t, a integer, g integer GENERATED ALWAYS AS (a * 2) STORED);
    CREATE VIEW v AS SELECT * FROM t;
    CREATE MATERIALIZED VIEW m AS SELECT k, a FROM v;
    CREATE INDEX i ON t (a);
    CREATE SEQUENCE s;
    CREATE TYPE e AS ENUM ('x', 'y');
    CREATE DOMAIN d AS e;
    CREATE TABLE u (k integer, x e, y d);
"""
KINDS = {"t": "table", "v": "view", "m": "materialized view", "i": "index", "s": "sequence"}


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute(DEFINITIONS)
    return engine


@pytest.mark.parametrize("exists", ["", "IF EXISTS "])
@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("name", KINDS)
def test_what_is_of_another_kind_is_not_dropped(name: str, kind: str, exists: str, engine: hj.Engine) -> None:
    statement = f"DROP {kind.upper()} {exists}{name}"
    if KINDS[name] == kind:
        engine.execute(f"{statement}{' CASCADE' if name != 's' else ''}")
        return
    there = KINDS[name]
    with pytest.raises(hj.Conflict, match=f"^{name} is an? {there}; write DROP {there.upper()} {name}$") as found:
        engine.execute(statement)
    assert found.value.sqlstate == "42809"


@pytest.mark.parametrize(("sql", "code", "why"), [
    ("CREATE OR REPLACE VIEW m AS SELECT 1 AS x", "42809", "m is a materialized view, which a plain one cannot"),
    ("CREATE OR REPLACE VIEW t AS SELECT 1 AS x", "42809", "t is a table, which a view cannot replace"),
    ("DROP DOMAIN e", "42809", "e is a type; write DROP TYPE e"),
    ("DROP INDEX t_pkey", "2BP01", "constraint t_pkey on table t requires it"),
    ("COMMENT ON VIEW m IS 'x'", "42809", "m is a materialized view; write COMMENT ON MATERIALIZED VIEW m"),
    ("ALTER TABLE v ADD x integer", "42809", "it is a view"),
    ("INSERT INTO m VALUES (1, 2)", "42809", "it is a materialized view"),
    ("TRUNCATE v", "42809", "it is a view"),
    ("CREATE TABLE w (k integer REFERENCES m (k))", "42809", "it is a materialized view"),
    ("DROP VIEW nosuch", "42P01", "unknown view 'nosuch'"),
])  # fmt: skip
def test_statements_of_another_kind_are_refused(sql: str, code: str, why: str, engine: hj.Engine) -> None:
    with pytest.raises(hj.HalfjoinError, match=why) as found:
        engine.execute(sql)
    assert found.value.sqlstate == code
    engine.execute("INSERT INTO t VALUES (1, 2)")
    assert engine.query("SELECT * FROM m").to_pylist() == [{"k": 1, "a": 2}]


def test_a_materialized_view_takes_the_place_of_a_plain_one(engine: hj.Engine) -> None:
    engine.execute("CREATE VIEW p AS SELECT k FROM t; CREATE OR REPLACE MATERIALIZED VIEW p AS SELECT a FROM t")
    engine.execute("INSERT INTO t VALUES (1, 2)")
    assert engine.query("SELECT * FROM p").to_pylist() == [{"a": 2}]


@pytest.mark.parametrize(("sql", "gone"), [
    ("DROP TABLE t CASCADE", "3 other objects: view v, materialized view m, constraint c_k_fkey on table c"),
    ("DROP VIEW v CASCADE", "materialized view m"),
    ("DROP TYPE e CASCADE", "3 other objects: type d, column y of table u, column x of table u"),
    ("ALTER TABLE t DROP COLUMN a CASCADE", "2 other objects: view v, materialized view m"),
    ("ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE", "constraint c_k_fkey on table c"),
    ("ALTER TABLE c DROP a CASCADE", "column g of table c"),
    ("DROP TABLE c CASCADE", None), ("DROP MATERIALIZED VIEW m", None), ("DROP TABLE u", None),
])  # fmt: skip
@pytest.mark.parametrize("begun", [False, True])
def test_cascade_tells_once_what_it_drops(begun: bool, sql: str, gone: str | None, engine: hj.Engine,
                                          caplog: pytest.LogCaptureFixture) -> None:
    engine.execute(f"BEGIN; {sql}; COMMIT" if begun else sql)
    assert [one.getMessage() for one in caplog.records] == ([] if gone is None else [f"drop cascades to {gone}"])


def test_cascade_tells_what_was_in_a_schema(engine: hj.Engine, caplog: pytest.LogCaptureFixture) -> None:
    engine.execute("""
        CREATE SCHEMA z; CREATE TABLE z.t (k integer PRIMARY KEY); CREATE INDEX ON z.t (k); CREATE SEQUENCE z.s;
        CREATE VIEW reads AS SELECT k FROM z.t; CREATE TYPE z.e AS ENUM ('x'); DROP SCHEMA z CASCADE
    """)
    (record,) = [one.getMessage() for one in caplog.records if "cascades" in one.getMessage()]
    assert record == "drop cascades to 4 other objects: table z.t, view reads, type z.e, sequence z.s"


def test_of_many_things_that_went_a_hundred_are_named(engine: hj.Engine, caplog: pytest.LogCaptureFixture) -> None:
    engine.execute("".join(f"CREATE VIEW v{n} AS SELECT k FROM u;" for n in range(120)) + "DROP TABLE u CASCADE")
    (record,) = [one.getMessage() for one in caplog.records]
    assert record.startswith("drop cascades to 120 other objects: view v0, ") and record.endswith("view v99, ...")
