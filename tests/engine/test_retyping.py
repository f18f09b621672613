"""ALTER COLUMN ... TYPE, where values change."""

from __future__ import annotations

from pathlib import Path

import pytest

import halfjoin as hj

TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, a integer, s text UNIQUE, n numeric(6, 2) NOT NULL)"
ROWS = "INSERT INTO t VALUES (1, 10, '7', 1.25), (2, NULL, NULL, 2.5)"


def test_values_of_all_times_become_others(tmp_path: Path) -> None:
    with hj.Engine(tmp_path, clock="own") as engine:
        engine.execute(f"{TABLE}; SET TIME = 1; {ROWS}")
        engine.execute("SET TIME = 2; UPDATE t SET a = 30, s = '9' WHERE id = 1")
        engine.execute("ALTER TABLE t ALTER a TYPE text, ALTER s TYPE bigint USING s::bigint * 10 + id, "
                       "ALTER n TYPE integer")  # fmt: skip
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a || '!' AS a, s + 1 AS s FROM t WHERE n = 1")
        assert engine.read("t", as_of=1).to_pylist()[0] == {"id": 1, "a": "10", "s": 71, "n": 1}
    with hj.Engine(tmp_path) as engine:
        engine.execute("SET TIME = 3; INSERT INTO t VALUES (3, 'x', 5, 1.4)")
        assert engine.query("SELECT * FROM v ORDER BY s").to_pylist() == [{"a": "x!", "s": 6}, {"a": "30!", "s": 92}]
        with pytest.raises(hj.InvalidRow, match="second row with the key"):
            engine.execute("SET TIME = 4; INSERT INTO t VALUES (4, 'y', 5, 1)")


@pytest.mark.parametrize(("sql", "state", "why"), [
    ("ALTER s TYPE integer", "42804", "write USING s::integer"),
    ("ALTER s TYPE integer USING s", "42804", r"write USING \(s\)::integer"),
    ("ALTER a TYPE smallint USING 100000", "22003", "smallint out of range: 100000$"),
    ("ALTER s TYPE mood USING 'zz'", "22P02", "invalid input value for enum mood"),
    ("ALTER s TYPE mood USING s", "42804", r"write USING \(s\)::mood"),
    ("ALTER w TYPE boolean USING true", "42804",
     "default for column w cannot be cast automatically to type boolean; write ALTER COLUMN w DROP DEFAULT first"),
    ("ALTER w TYPE smallint USING 1, ALTER w SET DEFAULT true", "42804", "cannot cast type boolean to smallint"),
    ("ALTER n TYPE varchar(1)", "22001", "value too long"),
    ("ALTER n TYPE integer USING nullif(n, 2.5)::integer", "23502", "contains NULLs"),
    ("ALTER id TYPE bigint USING id / 5", "23505", "t_pkey|PRIMARY KEY"),
    ("ALTER s TYPE text USING 'x'", "23505", "t_s_key"),
    ("ALTER s TYPE bigint USING 1 / 0", "22012", "division by zero"),
    ("ALTER id TYPE text", "42804", "give both columns one type"),
    ("ALTER id TYPE bigint USING id + 1", "23503", "u"),
    ("ALTER a TYPE text", "0A000", "column a, which the materialized view v reads"),
    ("ALTER a TYPE bigint USING a + 1", "0A000", "materialized view v reads"),
    ("ALTER a TYPE bigint USING random()::bigint", "42P17", "random"),
    ("ALTER a TYPE bigint USING (SELECT max(a) FROM t)", "0A000", "subquery"),
    ("ALTER a TYPE bigint USING nope", "42703", "nope"),
])  # fmt: skip
def test_what_cannot_be_changes_nothing(sql: str, state: str, why: str) -> None:
    engine = hj.Engine()
    engine.execute(f"{TABLE}; {ROWS}; CREATE TABLE u (id bigint REFERENCES t); INSERT INTO u VALUES (1)")
    engine.execute("CREATE TYPE mood AS ENUM ('calm'); ALTER TABLE t ADD w integer DEFAULT 3")
    engine.execute("UPDATE t SET s = 'y' WHERE id = 2; CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    before = engine.query("SELECT *, pg_typeof(s)::text AS q FROM t ORDER BY id").to_pylist()
    with pytest.raises(hj.HalfjoinError, match=why) as caught:
        engine.execute(f"ALTER TABLE t {sql}")
    assert caught.value.sqlstate == state
    assert engine.query("SELECT *, pg_typeof(s)::text AS q FROM t ORDER BY id").to_pylist() == before


def test_a_column_whose_default_was_dropped_takes_the_type() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, w integer DEFAULT 3); INSERT INTO t VALUES (1)")
    engine.execute("ALTER TABLE t ALTER w DROP DEFAULT, ALTER w TYPE boolean USING w = 3, ALTER w SET DEFAULT false")
    engine.execute("INSERT INTO t VALUES (2)")
    assert engine.query("SELECT w FROM t ORDER BY id").to_pylist() == [{"w": True}, {"w": False}]


def test_a_column_of_a_foreign_key_may_become_another_integer() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE p (id integer PRIMARY KEY); CREATE TABLE c (k integer REFERENCES p ON UPDATE CASCADE)")
    engine.execute("INSERT INTO p VALUES (1); INSERT INTO c VALUES (1)")
    engine.execute("ALTER TABLE c ALTER k TYPE bigint; ALTER TABLE p ALTER id TYPE bigint")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT p.id, c.k FROM p JOIN c ON c.k = p.id")
    engine.execute("UPDATE p SET id = 5000000000")
    assert engine.read("v").to_pylist() == [{"id": 5000000000, "k": 5000000000}]
    with pytest.raises(hj.InvalidRow):
        engine.execute("INSERT INTO c VALUES (2)")


def test_a_transaction_changes_the_rows_that_it_has_changed() -> None:
    engine = hj.Engine()
    engine.execute(f"{TABLE}; {ROWS}; BEGIN; INSERT INTO t VALUES (3, 5, '3', 9); ALTER TABLE t ALTER a TYPE text")
    engine.execute("UPDATE t SET a = a || 'x'; COMMIT")
    assert engine.query("SELECT id, a FROM t ORDER BY id").to_pylist() == [
        {"id": 1, "a": "10x"}, {"id": 2, "a": None}, {"id": 3, "a": "5x"}]  # fmt: skip


def test_a_generated_column_that_fails_has_the_sqlstate_of_its_reason() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE g (a integer, b integer GENERATED ALWAYS AS (1 / a) STORED)")
    with pytest.raises(hj.DataError) as caught:
        engine.execute("INSERT INTO g VALUES (0)")
    assert caught.value.sqlstate == "22012"
