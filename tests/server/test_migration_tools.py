"""What Flyway, Liquibase and their like ask of a server besides statements: roles, the database's name, sequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

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
