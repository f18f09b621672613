"""information_schema, SHOW CREATE, DESCRIBE, SET and SHOW: what exists, as PostgreSQL tells it."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

DDL = (
    'CREATE TABLE p (k integer PRIMARY KEY, "A b" varchar(3) DEFAULT \'x\' UNIQUE, s numeric(5,2) NOT NULL, d date, '
    "g bigint GENERATED ALWAYS AS (k * 2) STORED, f double precision, CHECK (k > 0), CONSTRAINT apart CHECK (k <> s), "
    "UNIQUE (s, d))",
    "CREATE TABLE c (i smallint, k integer REFERENCES p, at timestamptz, PRIMARY KEY (i, k))",
    'CREATE VIEW v AS SELECT k, "A b" AS b FROM p WHERE d IS NULL',
)


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine()
    for ddl in DDL:
        engine.execute(ddl)
    return engine


@pytest.mark.parametrize("query", [
    "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public'",
    "SELECT table_name, column_name, ordinal_position, is_nullable, data_type, character_maximum_length, "
    "numeric_precision, numeric_scale, is_generated FROM information_schema.columns WHERE table_schema = 'public'",
    "SELECT constraint_name, table_name, constraint_type FROM information_schema.table_constraints "
    "WHERE table_schema = 'public' AND constraint_name NOT LIKE '%not_null'",
    "SELECT constraint_name, table_name, column_name, ordinal_position FROM information_schema.key_column_usage "
    "WHERE table_schema = 'public'",
    "SELECT table_name FROM information_schema.views WHERE table_schema = 'public'",
])  # fmt: skip
def test_it_is_what_postgresql_says(engine: hj.Engine, query: str, postgres: Any) -> None:
    for ddl in DDL:
        postgres.execute(ddl)
    found = engine.query(query).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == sorted(postgres.execute(query).fetchall())
    assert len(found) > 0


def test_show_create_makes_the_same_again(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW m (a, b) WITH (RETAIN HISTORY FOR '1 hour') AS SELECT k, s FROM p")
    again = hj.Engine()
    for kind, name in (("TABLE", "p"), ("TABLE", "c"), ("VIEW", "v"), ("MATERIALIZED VIEW", "m")):
        (row,) = engine.execute(f"SHOW CREATE {kind} {name}").to_pylist()
        again.execute(row["create_statement"])
        assert again.execute(f"SHOW CREATE {kind} {name}").to_pylist() == [row]
        assert again.execute(f"DESCRIBE {name}") == engine.execute(f"SHOW COLUMNS FROM {name}")


def test_settings_have_their_values(engine: hj.Engine) -> None:
    engine.execute("SET application_name TO 'me'; SET timezone = 'UTC'; SET client_encoding = utf8; SET TIME = 7")
    shown = {row["name"]: row["setting"] for row in engine.execute("SHOW SETTINGS").to_pylist()}
    assert shown["application_name"] == "me" and shown["time"] == "7" and shown["search_path"] == "public"
    assert engine.execute("SHOW application_name").to_pylist() == [{"application_name": "me"}]
    engine.execute("RESET application_name")
    assert engine.execute("SHOW application_name").to_pylist() == [{"application_name": ""}]
    for sql, error in (("SET timezone = 'Europe/Rome'", hj.UnsupportedSQL), ("SET nosuch = 1", hj.UnknownName),
                       ("SHOW nosuch", hj.UnknownName)):  # fmt: skip
        with pytest.raises(error):
            engine.execute(sql)


def test_a_view_does_not_read_definitions(engine: hj.Engine) -> None:
    with pytest.raises(hj.UnsupportedSQL, match="a view cannot read information_schema"):
        engine.execute("CREATE VIEW x AS SELECT * FROM information_schema.tables")
    assert hj.Engine().query("SELECT count(*) AS n FROM information_schema.tables "
                             "WHERE table_schema = 'public'").to_pylist() == [{"n": 0}]
    assert engine.query("SELECT k FROM public.p").num_rows == 0
