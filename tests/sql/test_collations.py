"""COLLATE in definitions and queries: a collation by code point changes nothing, any other is refused."""

from __future__ import annotations

import pytest

import halfjoin as hj


@pytest.fixture
def engine() -> hj.Engine:
    made = hj.Engine()
    made.execute("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    return made


COLLATIONS = ('"C"', 'pg_catalog."C"', '"POSIX"', '"C.UTF-8"', 'pg_catalog."default"', "ucs_basic")


@pytest.mark.parametrize("collation", COLLATIONS)
def test_a_column_may_name_the_order_that_all_texts_have(engine: hj.Engine, collation: str) -> None:
    engine.execute(f"""
        CREATE TABLE u (a text COLLATE {collation} PRIMARY KEY, b varchar(9) COLLATE {collation} NOT NULL DEFAULT 'x',
                        c text[] COLLATE {collation});
        ALTER TABLE t ADD COLUMN c text COLLATE {collation} DEFAULT 'y';
        ALTER TABLE t ALTER COLUMN b TYPE varchar(5) COLLATE {collation};
        CREATE DOMAIN word AS text COLLATE {collation} NOT NULL;
        ALTER TABLE t ADD COLUMN d word COLLATE {collation} DEFAULT 'z';
        CREATE UNIQUE INDEX by_b ON t (b COLLATE {collation} text_pattern_ops);
        INSERT INTO u (a) VALUES ('b'), ('B'), ('ä'), ('a'); INSERT INTO t VALUES (1, 'b')
    """)
    assert engine.query(f"SELECT a COLLATE {collation} AS a, b FROM u ORDER BY a COLLATE {collation}").to_pylist() == [
        {"a": a, "b": "x"} for a in ("B", "a", "b", "ä")
    ]
    assert engine.query("SELECT * FROM t").to_pylist() == [{"a": 1, "b": "b", "c": "y", "d": "z"}]
    with pytest.raises(hj.InvalidRow, match=r"second row with the key \(b\)"):
        engine.execute("INSERT INTO t VALUES (2, 'b')")


@pytest.mark.parametrize("sql", [
    'CREATE TABLE u (a text COLLATE "de_DE")', 'ALTER TABLE t ADD COLUMN c text COLLATE "de_DE"',
    'ALTER TABLE t ALTER COLUMN b TYPE text COLLATE "de_DE"', 'CREATE UNIQUE INDEX ON t (b COLLATE "de_DE")',
    'CREATE INDEX ON t (b COLLATE "de_DE")', 'SELECT b COLLATE "de_DE" FROM t',
    'CREATE DOMAIN word AS text COLLATE "de_DE"',
])  # fmt: skip
def test_the_order_of_a_language_is_refused(engine: hj.Engine, sql: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match=r'text compares by code point only[\s\S]*write COLLATE "C" or nothing'):
        engine.execute(sql)


@pytest.mark.parametrize("sql", [
    'CREATE TABLE u (a integer COLLATE "C")', 'ALTER TABLE t ALTER COLUMN a TYPE bigint COLLATE "C"',
    'SELECT a COLLATE "C" FROM t',
])  # fmt: skip
def test_what_is_no_text_has_no_collation(engine: hj.Engine, sql: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match=r"collations are not supported by type (integer|bigint)") as raised:
        engine.execute(sql)
    assert raised.value.sqlstate == "42804"
