"""Clients of the server see rows as PostgreSQL writes them, in text and in binary."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.serving import serving

psycopg = pytest.importorskip("psycopg")

STATEMENTS = ("CREATE TYPE pair AS (a integer, b text)",
              "CREATE TYPE deep AS (p pair, i interval, n numeric(8,2), ps pair[])",
              "CREATE TABLE t (k integer PRIMARY KEY, r pair, d deep)",
              "INSERT INTO t VALUES (1, ROW(1, 'x y'), ROW(ROW(2, 'y'), '1 day', 1.5, ARRAY[ROW(3, 'z')::pair]))")


def test_clients_see_rows_as_postgresql_writes_them() -> None:
    with serving() as server, server.psycopg() as client:
        for statement in STATEMENTS:
            client.execute(statement)
        assert client.execute("SELECT r, d, ROW(k, true, r) AS made, ARRAY[r, NULL] AS rs FROM t").fetchone() == (
            '(1,"x y")', '("(2,y)","1 day",1.50,"{""(3,z)""}")', ("1", "t", '(1,"x y")'), '{"(1,\\"x y\\")",NULL}')
        cursor = client.cursor(binary=True)
        made = "SELECT ROW(k, true, 'x'::text, NULL::date) AS made, NULLIF(ROW(k), ROW(1)) AS n FROM t"
        assert cursor.execute(made).fetchone() == ((1, True, "x", None), None)
        client.execute("INSERT INTO t (k, r) VALUES (2, %s), (%s, ROW(%s, %s))", ("(5,q)", 3, 6, "w"))
        found = client.execute("SELECT (r).* FROM t WHERE r >= ROW(5, '')::pair ORDER BY r")
        assert found.fetchall() == [(5, "q"), (6, "w")]
        types = client.execute("SELECT typname, typtype, typcategory FROM pg_type WHERE typname ~ 'pair' ORDER BY 1")
        assert types.fetchall() == [("_pair", "b", "A"), ("pair", "c", "C")]
        kinds = client.execute("SELECT data_type, udt_name FROM information_schema.columns WHERE column_name = 'r'")
        assert kinds.fetchall() == [("USER-DEFINED", "pair")]


def test_psycopg_finds_the_fields_of_a_type() -> None:
    composite = pytest.importorskip("psycopg.types.composite")
    with serving() as server, server.psycopg() as client:
        for statement in STATEMENTS:
            client.execute(statement)
        for name in ("pair", "deep"):
            info = composite.CompositeInfo.fetch(client, name)
            composite.register_composite(info, client)
            made = info.python_type
        assert info.field_names == ("p", "i", "n", "ps") and made is not None
        row, deep, rows = client.execute("SELECT r, d, ARRAY[r] FROM t").fetchone()
        assert (row.a, row.b, deep.p.a, deep.n, deep.ps[0].b, rows) == (1, "x y", 2, Decimal("1.50"), "z", [row])
        client.execute("INSERT INTO t (k, r) VALUES (2, %s)", (type(row)(7, "q"),))
        assert client.execute("SELECT (r).a FROM t WHERE k = 2").fetchone() == (7,)


def test_copy_takes_and_gives_rows() -> None:
    with serving() as server, server.psycopg() as client:
        for statement in STATEMENTS:
            client.execute(statement)
        with client.cursor().copy("COPY t (k, r) FROM STDIN") as copy:
            copy.write(b'2\t(5,"a\\\\b")\n3\t\\N\n')
        asked = "COPY (SELECT k, r FROM t WHERE k > 1 ORDER BY k) TO STDOUT WITH (FORMAT csv)"
        with client.cursor().copy(asked) as copy:
            assert b"".join(map(bytes, copy)) == b'2,"(5,ab)"\n3,\n'
