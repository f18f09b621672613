"""What Flyway, Liquibase and their like ask of a server besides statements: roles, the database's name, sequences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from tests.support.serving import Served, serving

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def server() -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.fixture
def client(server: Served) -> Iterator[Any]:
    with server.psycopg() as connection:
        yield connection


def one(client: Any, query: str) -> Any:
    return client.execute(query).fetchone()[0]


def test_a_role_is_that_of_the_user(client: Any) -> None:
    """Flyway sets the role after each step; PostgreSQL's answers."""
    for form in ("SET ROLE 'halfjoin'", "SET ROLE halfjoin", "SET role = halfjoin", "SET LOCAL ROLE halfjoin"):
        with client.transaction():
            client.execute(form)
            assert one(client, "SHOW role") == one(client, "SELECT current_setting('role')") == "halfjoin"
            client.execute("SET ROLE NONE")
            assert one(client, "SHOW role") == "none"
            client.execute(form)
            client.execute("RESET ROLE")
            assert one(client, "SHOW role") == "none"
    for form in ("SET SESSION AUTHORIZATION halfjoin", "SET SESSION AUTHORIZATION DEFAULT",
                 "SET SESSION SESSION AUTHORIZATION 'halfjoin'", "RESET SESSION AUTHORIZATION"):  # fmt: skip
        client.execute(form)
        assert one(client, "SHOW SESSION AUTHORIZATION") == "halfjoin"
    for form in ("SET ROLE someone", "SET SESSION AUTHORIZATION someone"):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match='role "someone" does not exist'):
            client.execute(form)


def test_the_database_has_the_name_under_which_a_client_came(server: Served) -> None:
    """Liquibase and dbt look for tables under the name of their settings, and write it before schemas."""
    with server.psycopg(dbname="shop") as client:
        assert one(client, "SELECT current_database()") == "shop"
        assert one(client, "SELECT datname FROM pg_database") == "shop"
        client.execute('CREATE TABLE "shop"."public"."t" (k integer)')
        client.execute('CREATE MATERIALIZED VIEW shop.public.v AS SELECT k FROM "shop"."public"."t" WHERE k > 1')
        client.execute("CREATE VIEW w AS SELECT * FROM shop.public.v; INSERT INTO halfjoin.public.t VALUES (1), (2)")
        assert one(client, "SELECT table_catalog FROM information_schema.tables WHERE table_name = 't'") == "shop"
        client.execute("ALTER MATERIALIZED VIEW shop.public.v RENAME TO u")
    with server.psycopg(dbname="other") as client:
        assert client.execute("SELECT * FROM w").fetchall() == [(2,)]
        for _ in range(3):
            assert client.execute("SELECT * FROM other.public.w WHERE k > 0").fetchall() == [(2,)]
        with pytest.raises(psycopg.Error, match="there is one database"):
            client.execute("SELECT * FROM shop.public.w")


def test_a_warehouse_opens_again_whatever_its_clients_called_it(tmp_path: Path) -> None:
    """The texts of definitions have the name that their client had."""
    with hj.Engine(tmp_path) as engine, serving(engine) as server, server.psycopg(dbname="shop") as client:
        client.execute("CREATE TABLE shop.public.t (k integer, CONSTRAINT few CHECK (t.k < 9)); "
                       "CREATE TYPE shop.public.mood AS ENUM ('a')")
        client.execute("CREATE MATERIALIZED VIEW shop.public.v AS SELECT k FROM shop.public.t")
        client.execute("CREATE VIEW shop.public.w AS SELECT * FROM shop.public.v")
        client.execute("CREATE INDEX i ON shop.public.t (k); CREATE INDEX j ON shop.public.v (k)")
        client.execute("ALTER TABLE shop.public.t RENAME TO u; ALTER TYPE shop.public.mood ADD VALUE 'b'")
    with hj.Engine(tmp_path) as engine:
        engine.execute("INSERT INTO u VALUES (1); ALTER TABLE u RENAME COLUMN k TO l")
        assert engine.query("SELECT * FROM w").to_pylist() == [{"k": 1}]
        assert engine.query("SELECT indexname FROM pg_indexes ORDER BY 1").to_pylist() == [
            {"indexname": "i"}, {"indexname": "j"}]  # fmt: skip


def test_rights_are_the_same_for_all(client: Any) -> None:
    """What dumps and migrations say of rights and extensions beside their tables."""
    said: list[str] = []
    client.add_notice_handler(lambda diagnostic: said.append(diagnostic.message_primary))
    client.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO someone")
    client.execute('CREATE EXTENSION IF NOT EXISTS plpgsql; CREATE EXTENSION IF NOT EXISTS "plpgsql" SCHEMA pg_catalog')
    assert said == ["each user may do everything: GRANT changes nothing",
                    *['extension "plpgsql" already exists, skipping'] * 2]  # fmt: skip
    client.execute("CREATE TABLE public.t (owner integer, b integer)")
    for statement in ("ALTER TABLE public.t OWNER TO postgres", 'ALTER MATERIALIZED VIEW v OWNER TO "an owner"'):
        assert client.execute(statement).statusmessage == statement.split(" public")[0].split(" v ")[0]
        assert said[-1] == "each user may do everything: OWNER TO changes nothing"
    client.execute("ALTER TABLE t RENAME COLUMN owner TO boss")
    assert [column.name for column in client.execute("TABLE t").description] == ["boss", "b"]
    for statement, why in (("REVOKE ALL ON SCHEMA public FROM PUBLIC", "each user may do everything"),
                           ("CREATE ROLE someone LOGIN", "CREATE ROLE is not supported"),
                           ("CREATE EXTENSION IF NOT EXISTS citext", "CREATE EXTENSION is not supported")):  # fmt: skip
        with pytest.raises(psycopg.errors.FeatureNotSupported, match=why):
            client.execute(statement)


@pytest.mark.parametrize(("given", "shown"), [
    ("5000", "5s"), ("0", "0"), ("'1500ms'", "1500ms"), ("'90s'", "90s"), ("'2min'", "2min"), ("'1.5s'", "1500ms"),
])  # fmt: skip
def test_times_are_shown_with_their_units(client: Any, given: str, shown: str) -> None:
    for name in ("statement_timeout", "lock_timeout"):
        client.execute(f"SET {name} = {given}")
        assert one(client, f"SHOW {name}") == one(client, f"SELECT current_setting('{name}')") == shown


def test_a_sequence_tells_its_last_number_and_its_type(client: Any) -> None:
    client.execute("CREATE SEQUENCE q INCREMENT 5; CREATE SEQUENCE small AS smallint")
    last = "SELECT pg_sequence_last_value('q'::regclass)"
    assert one(client, last) is None
    client.execute("SELECT nextval('q'), nextval('q')")
    assert one(client, last) == 6
    assert client.execute("SELECT pg_sequence_last_value(seqrelid), format_type(seqtypid, NULL) FROM pg_sequence "
                          "ORDER BY 2").fetchall() == [(6, "bigint"), (None, "smallint")]  # fmt: skip


def test_types_of_arguments_have_their_names(client: Any) -> None:
    """Flyway asks so before it drops a schema's functions."""
    assert one(client, "SELECT oidvectortypes(proargtypes) FROM pg_proc WHERE proname = 'split_part'") == (
        "text, text, integer")  # fmt: skip
    assert one(client, "SELECT oidvectortypes(NULL)") is None
