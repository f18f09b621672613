"""What is wrong has PostgreSQL's SQLSTATE, by which drivers choose the class of their exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.serving import Served, serving

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[test-postgres]'")
pytest_plugins = ("tests.support.postgres",)

DDL = """CREATE TYPE mood AS ENUM ('sad');
CREATE TABLE c (id bigint PRIMARY KEY, name text NOT NULL, code char(3), m mood);
CREATE TABLE o (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, c bigint REFERENCES c (id),
                p integer CHECK (p > 0), twice integer GENERATED ALWAYS AS (p * 2) STORED);
CREATE VIEW v AS SELECT id FROM c;
CREATE SEQUENCE s; CREATE SCHEMA sales; CREATE INDEX o_c ON o (c)"""
WRONG = """
SELECT 1/0; SELECT sqrt(-1); SELECT ln(0); SELECT foo(1); SELECT lower(1); SELECT 1 + 'a'::text
SELECT * FROM c WHERE name = 5; SELECT max(id), name FROM c; SELECT count(*) FROM c GROUP BY 1
SELECT string_agg(name) FROM c; SELECT count(count(*)) FROM c; SELECT id FROM c WHERE count(*) > 1
INSERT INTO c (id, id) VALUES (1, 1); INSERT INTO c (nope) VALUES (1); INSERT INTO c (id) VALUES (1, 2)
SELECT 1 UNION SELECT 1, 2; SELECT 1 UNION SELECT true; SELECT (SELECT 1, 2)
SELECT (SELECT x FROM (VALUES (1), (2)) t (x)); SELECT 1 FROM c a, c a; SELECT 1::nope
WITH a AS (SELECT 1), a AS (SELECT 2) SELECT 1; SELECT * FROM c WHERE true AND 5; SELECT CASE WHEN 1 THEN 2 END
SELEC id FROM c; foo; SELECT id FROM c JOIN o; SELECT id FROM c WHERE id IN (); SELECT E'\\u12'; DELETE c WHERE id = 1
SELECT rank() OVER w FROM c; SELECT lower(name) OVER () FROM c; SELECT id[1] FROM c; SELECT (id).x FROM c
SELECT 1 = ANY (1); SELECT 1::numeric(0); SELECT to_char(1); SELECT coalesce(); SELECT id FROM c LIMIT id
SELECT * FROM (VALUES (1)) t (a, b); SELECT * FROM c x (a, b, c, d, e, f); SELECT * FROM generate_series(1)
SELECT * FROM unnest(1); SELECT * FROM nofunc(1); WITH a (x, y) AS (SELECT 1) SELECT * FROM a
SELECT any_value2(1) FILTER (WHERE true); SELECT lower(name) FILTER (WHERE true) FROM c
SELECT lower(DISTINCT name) FROM c; SELECT sum(id) OVER (ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM c
INSERT INTO c VALUES (true, 'a'); INSERT INTO c (id, name) SELECT name, name FROM c; UPDATE c SET id = name
INSERT INTO c VALUES (1, 'a') ON CONFLICT DO UPDATE SET name = 'x'; UPDATE c SET id = id, name
CREATE TABLE x (a int, PRIMARY KEY (b)); CREATE TABLE x (a int REFERENCES c (nope)); CREATE TABLE x (a varchar(x))
CREATE VIEW x AS SELECT id, id FROM c; CREATE MATERIALIZED VIEW x AS SELECT 1 a, 2 a
CREATE TABLE x (a int, a int); CREATE TABLE x (a int PRIMARY KEY, b int PRIMARY KEY); CREATE TABLE c (a int)
CREATE VIEW v AS SELECT 1; CREATE MATERIALIZED VIEW v AS SELECT 1; CREATE SCHEMA sales; CREATE INDEX o_c ON o (c)
DROP TABLE nothing; DROP VIEW nothing; DROP TABLE c; ALTER TABLE c ADD COLUMN name text
ALTER TABLE c DROP COLUMN nope; SELECT nextval('nothing'); SELECT currval('s'); SELECT setval('s', 0)
SELECT 'nope'::regclass; SELECT 99999::smallint; SELECT 'abc'::date; SELECT '2020-13-01'::date; SELECT 'x'::uuid
SELECT '{'::jsonb; SELECT '{1'::int[]; SELECT 'mad'::mood; SELECT 123456::numeric(4,2)
SELECT substring('abc' FROM 1 FOR -1); SELECT array[1] || 'x'::text; SELECT array[[1],[2,3]]
SELECT row_number() FROM c; SELECT id FROM c WHERE rank() OVER () = 1; SELECT sum(DISTINCT id) OVER () FROM c
SELECT 1 LIMIT -1; SELECT 1 OFFSET -1; SELECT 1 ORDER BY 2; SELECT DISTINCT id FROM c ORDER BY name
SELECT 'x'::varchar(0); SELECT * FROM c JOIN o USING (nope); SELECT id FROM c, o; INSERT INTO c VALUES (1, NULL)
INSERT INTO o (c) VALUES (99); INSERT INTO o (p) VALUES (-1); INSERT INTO o (id, c) VALUES (1, 1)
INSERT INTO o (c, twice) VALUES (1, 1); UPDATE o SET id = 5; INSERT INTO c VALUES (1, 'a', 'long')
INSERT INTO c VALUES (1, 'a') ON CONFLICT (name) DO NOTHING; EXECUTE nothing; DECLARE k CURSOR FOR SELECT 1; FETCH k
CLOSE k; SAVEPOINT k; SET nothing = 1; SHOW nothing; SELECT $1; SELECT 1 =; SELECT 'abc; SELECT "abc; SELECT /* abc
SELECT $$abc; SELECT * FROM c WHERE id IN (SELECT 1, 2); SELECT any_value(1) FILTER (WHERE 2)
WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 'x'::text FROM r) SELECT * FROM r
SELECT * FROM c WHERE (id, name) = (1); WITH RECURSIVE r (a) AS (SELECT a FROM r) SELECT * FROM r; SELECT 5 % 0
SELECT DISTINCT ON (name) id FROM c ORDER BY id; SELECT array_agg(DISTINCT name ORDER BY id) FROM c
SELECT count() FROM c; SELECT id AS x, name AS x FROM c ORDER BY x; SELECT ARRAY[]; SELECT id FROM c FOR UPDATE OF o
SELECT 1_000; SELECT 5k; SELECT sum(id) OVER (ORDER BY name RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM c
PREPARE p AS SELECT $1::int; EXECUTE p; EXECUTE p (1, 2); EXECUTE p ('x'); PREPARE p AS SELECT 1; DEALLOCATE nothing
"""


@pytest.fixture(scope="module")
def both(postgres_of_module: Any) -> Iterator[tuple[Any, Any]]:
    with serving() as server, server.psycopg() as ours:
        for connection in (ours, postgres_of_module):
            connection.execute(DDL)
        yield ours, postgres_of_module


def _code(connection: Any, sql: str) -> str:
    try:
        connection.execute(sql)
    except psycopg.Error as error:
        return str(error.sqlstate)
    return "works"


def test_what_is_wrong_has_the_sqlstate_of_postgresql(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    for sql in (one.strip() for one in WRONG.replace("\n", ";").split(";") if one.strip()):
        assert (sql, _code(ours, sql)) == (sql, _code(theirs, sql))


MISPLACED = """
SELECT id + name FROM c; SELECT name::int + true FROM c; SELECT name || id || m = 3 FROM c; SELECT true + true
SELECT id FROM c WHERE (id + 1) = (name); SELECT id LIKE 'a' FROM c; SELECT id NOT LIKE 'a' FROM c; SELECT 'a' < 1
SELECT id BETWEEN 'a' AND 'b' FROM c; SELECT id FROM c WHERE id = 'abc'; SELECT COALESCE(1, 'x'); SELECT ARRAY[1, 'x']
SELECT CASE WHEN true THEN 1 ELSE 'x' END; SELECT COALESCE(id, name) FROM c; SELECT GREATEST(1, true); SELECT 1::nope
SELECT ARRAY[1, true]; SELECT 1 UNION SELECT true; SELECT CAST(1 AS nope); SELECT 1::date; SELECT now()::int
SELECT 'nope'::regclass; SELECT NOT id FROM c; SELECT id IS TRUE FROM c; SELECT * FROM c WHERE true AND 5
SELECT id FROM c WHERE; SELECT 1 +; SELECT id FROM c,; SELECT id FROM c LIMIT; SELECT id FORM c
SELECT id FROM c ORDER id; UPDATE c SET name = 1 WHERE nope
INSERT INTO nope VALUES (1); UPDATE nope SET id = 1; DELETE FROM nope; INSERT INTO c (id, nope) VALUES (1, 2)
INSERT INTO c (id, id) VALUES (1, 1); UPDATE c SET nope = 1; DELETE FROM c WHERE id = 'x'; CREATE TABLE x (a int,)
"""


def test_an_error_is_placed_where_postgresql_places_it(both: tuple[Any, Any]) -> None:
    for sql in (one.strip() for one in MISPLACED.replace("\n", ";").split(";") if one.strip()):
        places = []
        for connection in both:
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(sql)
            places.append((caught.value.diag.sqlstate, caught.value.diag.statement_position))
        assert (sql, places[0]) == (sql, places[1])


def test_an_error_of_a_query_says_what_is_wrong_and_no_more(both: tuple[Any, Any]) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero) as caught:
        both[0].execute("SELECT 1 / 0")
    assert caught.value.diag.message_primary == "division by zero in 1 / 0" and caught.value.diag.table_name is None


def test_a_quote_without_an_end_is_underlined(served_text: Served) -> None:
    with served_text.psycopg() as connection, pytest.raises(psycopg.errors.SyntaxError) as caught:
        connection.execute("SELECT 1;\nSELECT 'é', $x$one")
    assert caught.value.diag.statement_position == "23"
    assert caught.value.diag.message_primary == "unterminated dollar-quoted string"


@pytest.fixture
def served_text() -> Iterator[Served]:
    with serving() as server:
        yield server
