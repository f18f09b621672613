"""What ORMs send when they connect and when they make their tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlglot import exp

import halfjoin as hj
from halfjoin.sql.parse.parameters import exchanged
from halfjoin.sql.parse.parse import trees_of
from tests.support.serving import serving

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def client() -> Iterator[Any]:
    with serving() as server, server.psycopg() as connection:
        yield connection


def test_a_time_zone_may_be_an_interval(client: Any) -> None:
    """Sequelize says so at every connection."""
    client.execute("SET client_min_messages TO warning; SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE;")
    with pytest.raises(psycopg.Error, match="timezone cannot be"):
        client.execute("SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE")
    with pytest.raises(psycopg.Error, match="timezone cannot be"):
        client.execute("SET TIME ZONE INTERVAL")


def test_functions_of_a_session_stand_in_from(client: Any) -> None:
    """TypeORM asks so."""
    assert client.execute("SELECT * FROM current_schema()").fetchall() == [("public",)]
    found = client.execute("SELECT d.x, n, path FROM current_database() AS d(x), current_setting('work_mem') AS n, "
                           "current_schemas(true) AS path").fetchall()  # fmt: skip
    assert found == [("halfjoin", "4MB", ["pg_catalog", "public"])]
    with pytest.raises(psycopg.Error, match="a view cannot call version"):
        client.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM version()")


def test_a_path_of_json_may_be_a_parameter(client: Any) -> None:
    cursor = client.cursor()
    cursor.execute("SELECT jsonb_path_query_first(%s::jsonb, %s)::int", ['{"a": 5}', "$.a"], prepare=True)
    assert cursor.fetchall() == [(5,)]
    with pytest.raises(psycopg.Error, match="jsonpath"):
        cursor.execute("SELECT jsonb_path_exists(%s::jsonb, %s)", ["{}", "$$"])


def test_using_may_say_what_a_new_type_does_without_it() -> None:
    """knex writes it for each column that it alters."""
    engine = hj.Engine()
    engine.execute("""CREATE TABLE t (a integer, "B" varchar(20)); INSERT INTO t VALUES (1, 'x')""")
    engine.execute('ALTER TABLE t ALTER COLUMN a TYPE bigint USING (a::bigint), ALTER "B" TYPE text USING "B"')
    assert engine.query("SELECT * FROM t").to_pylist() == [{"a": 1, "B": "x"}]


def test_values_go_into_a_long_list_in_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """`transform` of sqlglot numbers the whole list anew for each value."""
    (tree,) = trees_of(f"SELECT 1 WHERE 1 IN ({', '.join(['$1'] * 200)})")
    numbered, set_parent = list[int](), exp.Expression._set_parent

    def counted(self: Any, key: str, value: Any, index: Any = None) -> None:
        numbered.append(len(value) if isinstance(value, list) else 1)
        set_parent(self, key, value, index)

    monkeypatch.setattr(exp.Expression, "_set_parent", counted)
    made = exchanged(tree, lambda node: exp.Null() if isinstance(node, exp.Parameter) else None)
    assert sum(numbered) < 1000
    nulls = list(made.find_all(exp.Null))
    assert [(null.index, type(null.parent)) for null in nulls] == [(n, exp.In) for n in range(200)]
    assert made.sql() == f"SELECT 1 WHERE 1 IN ({', '.join(['NULL'] * 200)})"


def test_names_of_types_and_tables_may_be_put_together(client: Any) -> None:
    """TypeORM asks for the types of all columns so."""
    client.execute("""CREATE TYPE "Mood" AS ENUM ('glad'); CREATE TABLE "Men" (a integer, b "Mood", c text[])""")
    types = client.execute("""SELECT ('"' || udt_schema || '"."' || udt_name || '"')::regtype::text,
        (quote_ident(table_catalog) || '.' || quote_ident(table_schema) || '.' || quote_ident(table_name))
        ::regclass::text
        FROM information_schema.columns WHERE table_name = 'Men' ORDER BY ordinal_position""").fetchall()
    assert types == [(type, '"Men"') for type in ("integer", '"Mood"', "text[]")]
    for written in ("""'"pg_catalog"."int4"'::regtype""", """'"public"."Mood"'::regtype""", """'"Mood"'::regtype""",
                    """'"char"'::regtype""", """'halfjoin.public."Men"'::regclass"""):  # fmt: skip
        assert client.execute(f"SELECT {written}::oid").fetchone()[0] > 0


def test_a_side_is_looked_up_by_what_may_fail(client: Any) -> None:
    """GORM and TypeORM ask so for the columns of a table."""
    client.execute("CREATE TABLE t (id serial PRIMARY KEY, a text); COMMENT ON COLUMN t.a IS 'letters'")
    found = client.execute("""SELECT c.column_name, pd.description FROM information_schema.columns AS c
        JOIN pg_type AS pgt ON c.udt_name = pgt.typname LEFT JOIN pg_catalog.pg_description AS pd
        ON pd.objsubid = c.ordinal_position AND pd.objoid = (SELECT oid FROM pg_catalog.pg_class
        WHERE relname = c.table_name AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace
        WHERE nspname = c.table_schema)) WHERE table_name = 't' ORDER BY 1""").fetchall()
    assert found == [("a", "letters"), ("id", None)]


def test_deferred_keys_are_checked_when_they_become_immediate(client: Any) -> None:
    """Django's tests ask so after each of them, and its migrations before they alter a table."""
    client.execute("""CREATE TABLE up (id integer PRIMARY KEY);
        CREATE TABLE down (id integer, up integer REFERENCES up DEFERRABLE INITIALLY DEFERRED)""")
    assert client.execute("SET CONSTRAINTS ALL IMMEDIATE").statusmessage == "SET CONSTRAINTS"
    with client.transaction():
        client.execute("SET CONSTRAINTS ALL IMMEDIATE")
        client.execute("SET CONSTRAINTS ALL DEFERRED")
        client.execute("INSERT INTO down VALUES (1, 1)")
        with pytest.raises(psycopg.errors.ForeignKeyViolation), client.transaction():
            client.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        client.execute("INSERT INTO up VALUES (1)")
        client.execute('SET CONSTRAINTS "down_up_fkey" IMMEDIATE')
    assert client.execute("SELECT * FROM down").fetchall() == [(1, 1)]
    with pytest.raises(psycopg.errors.SyntaxError):
        client.execute("SET CONSTRAINTS ALL")


def test_a_serial_is_a_default_of_a_sequence(client: Any) -> None:
    """Alembic and others compare it with what they have made. An identity is none."""
    client.execute("""CREATE TABLE s (a serial PRIMARY KEY, "B" bigserial,
        c integer GENERATED BY DEFAULT AS IDENTITY)""")
    found = client.execute("""SELECT column_default, is_identity, attidentity, pg_get_expr(adbin, adrelid)
        FROM information_schema.columns JOIN pg_attribute ON attrelid = 's'::regclass AND attname = column_name
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE table_name = 's'
        ORDER BY ordinal_position""").fetchall()
    first, second = "nextval('s_a_seq'::regclass)", """nextval('"s_B_seq"'::regclass)"""
    assert found == [(first, "NO", "", first), (second, "NO", "", second), (None, "YES", "d", None)]
    assert client.execute("""SELECT sequence_name FROM information_schema.sequences ORDER BY 1""").fetchall() == [
        ("s_B_seq",), ("s_a_seq",)]  # fmt: skip
    assert client.execute("SELECT array_agg(k) FROM pg_index, generate_subscripts(indkey, 1) AS k").fetchone() == ([0],)


def test_drizzle_finds_serials_and_the_classes_of_indexes(client: Any) -> None:
    """By what it compares a schema with: arrays of types' names, names in texts, operator classes."""
    client.execute("CREATE SCHEMA s; CREATE TABLE t (id serial PRIMARY KEY, u uuid UNIQUE, n varchar(9) UNIQUE); "
                   "CREATE TABLE s.t (id bigserial PRIMARY KEY, a integer[] UNIQUE)")  # fmt: skip
    assert client.execute("""
        SELECT a.attrelid::regclass::text FROM pg_attribute a JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
        WHERE a.atttypid = ANY ('{int,int8,int2}'::regtype[]) AND pg_get_expr(d.adbin, d.adrelid) = 'nextval('''
            || pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass || '''::regclass)'
        ORDER BY 1""").fetchall() == [("s.t",), ("t",)]  # fmt: skip
    found = client.execute("SELECT concat('t'::regclass, 1), format('%s', 's.t'::regclass), "
                           "'{t,NULL}'::regclass[] IS NULL").fetchall()  # fmt: skip
    assert found == [("t1", "s.t", False)]
    assert client.execute("SELECT i.indexrelid::regclass::text, c.opcname FROM pg_index i JOIN pg_opclass c "
                          "ON c.oid = ANY (i.indclass) ORDER BY 1").fetchall() == [
        ("s.t_a_key", "array_ops"), ("s.t_pkey", "int8_ops"), ("t_n_key", "text_ops"), ("t_pkey", "int4_ops"),
        ("t_u_key", "uuid_ops")]  # fmt: skip


def test_subscripts_never_fail(client: Any) -> None:
    """So what is joined by them may be of an outer join's side. Drizzle asks so for the columns of indexes."""
    client.execute("CREATE TABLE t (id integer); CREATE TABLE i (id integer, a integer[]); "
                   "CREATE TABLE u (id integer, n integer, s text); INSERT INTO t VALUES (1), (2), (3); "
                   "INSERT INTO i VALUES (1, '{5,6}'), (2, '{7}'), (3, NULL); INSERT INTO u VALUES (1, 6, 'x')")
    query = ("SELECT t.id, k.x, k.n, u.s FROM t LEFT JOIN i ON i.id = t.id CROSS JOIN LATERAL "
             "(SELECT unnest(i.a), generate_subscripts(i.a, 1)) AS k (x, n) LEFT JOIN u ON u.id = i.id AND u.n = k.x")
    client.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    wanted = [(1, 5, 1, None), (1, 6, 2, "x"), (2, 7, 1, None)]
    assert client.execute(f"{query} ORDER BY 1, 2").fetchall() == wanted
    client.execute("INSERT INTO u VALUES (2, 7, 'y'); UPDATE i SET a = '{1}' WHERE id = 1")
    assert client.execute("SELECT * FROM v ORDER BY 1").fetchall() == [(1, 1, 1, None), (2, 7, 1, "y")]
    for call, found in (("'{{1,2,3},{4,5,6}}'::int[][], 2", [1, 2, 3]), ("'{4,5,6}'::int[], 1, true", [3, 2, 1]),
                        ("NULL::int[], 1", []), ("'{}'::int[], 1", []), ("'{4}'::int[], 2", [])):  # fmt: skip
        assert [n for (n,) in client.execute(f"SELECT generate_subscripts({call})").fetchall()] == found


def test_parameters_of_on_conflict_have_the_types_of_their_places(client: Any) -> None:
    """Prisma's upsert repeats the key in WHERE."""
    client.execute("CREATE TABLE t (id integer PRIMARY KEY, label text, n bigint)")
    sql = b"""INSERT INTO t (id, label) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET label = $3,
        n = coalesce(t.n, 0) + $4 WHERE t.id = $5 AND excluded.id < $6 RETURNING label, n"""
    for label in (b"a", b"b"):
        found = client.pgconn.exec_params(sql, [b"1", label, b"c", b"7", b"1", b"9"])
        assert found.error_message == b""
    assert (found.get_value(0, 0), found.get_value(0, 1)) == (b"c", b"7")


def test_what_is_prepared_is_explained(client: Any) -> None:
    """sqlx's macros ask so for each statement, while a program is compiled."""
    client.execute("CREATE TABLE t (id integer PRIMARY KEY, a text)")
    for name, sql in ((b"one", b"SELECT a FROM t WHERE id = $1"), (b"two", b"INSERT INTO t VALUES ($1) RETURNING a")):
        assert client.pgconn.prepare(name, sql).error_message == b""
    (plan,) = client.execute("EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE one(NULL)").fetchone()
    assert plan[0]["columns"] == [["a", "text"]]  # a json, which psycopg reads
    assert client.execute("EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE two(NULL)", prepare=True).fetchone() == (
        [{"statement": "INSERT"}],)  # fmt: skip
    assert "looks up" in str(client.execute("EXPLAIN VERBOSE EXECUTE one(1)").fetchall())
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        client.execute("EXPLAIN EXECUTE nothing")
    assert client.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_the_database_has_a_number_that_pgadmin_shows() -> None:
    """It hides databases with PostgreSQL's own numbers, except that of `postgres`."""
    asked = "SELECT oid FROM pg_database WHERE oid > 16383::oid OR datname IN ('postgres', 'edb')"
    with serving() as server:
        for name in ("postgres", "shop"):
            with server.psycopg(dbname=name) as connection:
                (number,) = connection.execute(asked).fetchone()
                assert (number == 5) == (name == "postgres")
                assert connection.execute("SELECT datid FROM pg_stat_activity").fetchone() == (number,)


def test_a_schema_may_be_somebodys(client: Any) -> None:
    """pgAdmin names the owner of each schema that it makes."""
    for statement in ("CREATE SCHEMA one AUTHORIZATION postgres", "CREATE SCHEMA IF NOT EXISTS one AUTHORIZATION me",
                      "CREATE SCHEMA AUTHORIZATION two", "CREATE SCHEMA three AUTHORIZATION CURRENT_USER"):  # fmt: skip
        assert client.execute(statement).statusmessage == "CREATE SCHEMA"
    names = client.execute("SELECT nspname FROM pg_namespace WHERE oid >= 16384 ORDER BY 1").fetchall()
    assert names == [("one",), ("three",), ("two",)]
    with pytest.raises(psycopg.Error, match="this schema has no name"):
        client.execute("CREATE SCHEMA AUTHORIZATION CURRENT_USER")
