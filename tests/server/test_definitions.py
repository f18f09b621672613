"""Definitions as tools for PostgreSQL write them: schemas, columns of views, tables of prepared queries, keys."""

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
        connection.execute("CREATE TABLE t (id serial PRIMARY KEY, a integer CHECK (t.a > 0), b text)")
        connection.execute("INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y'), (3, 'z')")
        yield connection


def rows(client: Any, query: str) -> list[Any]:
    return list(client.execute(query).fetchall())


VIEWS = """
    CREATE VIEW v AS SELECT id, a FROM t;
    CREATE VIEW w AS SELECT v.a + 1 AS c, * FROM v WHERE v.a > 1;
    CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM v GROUP BY a;
    CREATE INDEX i ON m (a);
    CREATE MATERIALIZED VIEW o AS SELECT m.a * 10 AS ten, n FROM m JOIN v USING (a)
"""


def seen(client: Any) -> dict[str, list[Any]]:
    names = {"v": [], "w": [], "m": [], "o": []}
    return {name: rows(client, f"SELECT * FROM {name} ORDER BY 1") for name in names}


def test_a_column_of_a_view_gets_another_name(client: Any) -> None:
    client.execute(VIEWS)
    before = seen(client)
    client.execute("ALTER VIEW v RENAME COLUMN a TO aa; ALTER MATERIALIZED VIEW m RENAME a TO k; "
                   "ALTER VIEW v RENAME id TO number")
    assert seen(client) == before
    client.execute("INSERT INTO t (a, b) VALUES (3, 'q'), (4, 'r')")
    assert rows(client, "SELECT number, aa FROM v WHERE aa > 2 ORDER BY 1") == [(3, 3), (4, 3), (5, 4)]
    assert rows(client, "SELECT k, n FROM m ORDER BY k") == [(1, 1), (2, 1), (3, 2), (4, 1)]
    assert rows(client, "SELECT c, id, a FROM w ORDER BY id") == [(3, 2, 2), (4, 3, 3), (4, 4, 3), (5, 5, 4)]
    assert rows(client, "SELECT ten, n FROM o ORDER BY 1") == [(10, 1), (20, 1), (30, 2), (30, 2), (40, 1)]
    for wrong, error in (("v RENAME nope TO x", psycopg.errors.UndefinedColumn),
                         ("v RENAME aa TO number", psycopg.errors.DuplicateColumn),
                         ("nope RENAME a TO b", psycopg.errors.UndefinedTable)):  # fmt: skip
        with pytest.raises(error):
            client.execute(f"ALTER VIEW {wrong}")
    client.execute("ALTER TABLE t RENAME a TO z")
    assert rows(client, "SELECT aa FROM v ORDER BY 1") == [(1,), (2,), (3,), (3,), (4,)]


def test_tables_views_and_sequences_get_another_schema(tmp_path: Path) -> None:
    with hj.Engine(tmp_path) as engine, serving(engine) as server, server.psycopg() as client:
        client.execute("CREATE TABLE t (id serial PRIMARY KEY, a integer CHECK (t.a > 0)); CREATE SEQUENCE q")
        client.execute("CREATE TABLE u (id integer REFERENCES t); INSERT INTO t (a) VALUES (1), (2), (3)")
        client.execute(VIEWS + "; CREATE SCHEMA s")
        before = seen(client)
        client.execute("ALTER TABLE t SET SCHEMA s; ALTER VIEW v SET SCHEMA s; ALTER MATERIALIZED VIEW m SET SCHEMA s;"
                       "ALTER SEQUENCE q SET SCHEMA s; INSERT INTO s.t (a) VALUES (3); INSERT INTO u VALUES (4)")
        for wrong, error in (("SELECT * FROM v", psycopg.errors.UndefinedTable),
                             ("INSERT INTO s.t (a) VALUES (-1)", psycopg.errors.CheckViolation),
                             ("INSERT INTO u VALUES (9)", psycopg.errors.ForeignKeyViolation),
                             ("ALTER TABLE u SET SCHEMA nope", psycopg.errors.InvalidSchemaName)):  # fmt: skip
            with pytest.raises(error):
                client.execute(wrong)
        client.execute("ALTER TABLE IF EXISTS nope SET SCHEMA s; ALTER VIEW s.v SET SCHEMA public; SET search_path = s")
        client.execute("ALTER MATERIALIZED VIEW m SET SCHEMA public; DELETE FROM t WHERE id = 4 AND false")
    with hj.Engine(tmp_path) as engine:
        engine.execute("DELETE FROM u; DELETE FROM s.t WHERE id = 4")
        with serving(engine) as server, server.psycopg() as client:
            assert seen(client) == before
            assert rows(client, "SELECT nextval('s.q')") == [(1,)]


def test_a_table_of_a_prepared_query(client: Any) -> None:
    client.execute("PREPARE p AS SELECT id, b FROM t WHERE id > $1; PREPARE c AS DELETE FROM t RETURNING id")
    assert client.execute("CREATE TABLE x AS EXECUTE p(1)").statusmessage == "SELECT 2"
    assert rows(client, "SELECT * FROM x ORDER BY id") == [(2, "y"), (3, "z")]
    client.execute("CREATE TEMP TABLE y (q, r) AS EXECUTE p(2) WITH DATA; CREATE TABLE z AS EXECUTE p(2) WITH NO DATA")
    assert rows(client, "SELECT q, r FROM y UNION ALL SELECT id, b FROM z") == [(3, "z")]
    for wrong, error in (("c", psycopg.errors.WrongObjectType), ("no", psycopg.errors.InvalidSqlStatementName)):
        with pytest.raises(error):
            client.execute(f"CREATE TABLE n AS EXECUTE {wrong}")
    assert rows(client, "SELECT count(*) FROM t") == [(3,)]


def test_a_view_without_data_is_filled_all_the_same(client: Any) -> None:
    """pg_dump writes each materialized view so, and refreshes it at the end."""
    said: list[str] = []
    client.add_notice_handler(lambda notice: said.append(notice.message_primary))
    client.execute("CREATE MATERIALIZED VIEW m AS SELECT a FROM t WITH NO DATA")
    client.execute("REFRESH MATERIALIZED VIEW m")
    assert rows(client, "SELECT count(*) FROM m") == [(3,)]
    assert any("WITH NO DATA changes nothing" in one for one in said)


def test_the_condition_of_a_key_must_be_one(client: Any) -> None:
    insert = "INSERT INTO t VALUES (1, 1, 'q') ON CONFLICT (id)"
    with pytest.raises(psycopg.errors.UndefinedColumn, match="nope"):
        client.execute(f"{insert} WHERE nope > 3 DO NOTHING")
    client.execute(f"{insert} WHERE a > 3 AND t.b IS NOT NULL DO UPDATE SET b = excluded.b WHERE t.a = 1")
    assert rows(client, "SELECT b FROM t WHERE id = 1") == [("q",)]


def test_keys_take_many_nulls_and_say_so(client: Any) -> None:
    client.execute("CREATE TABLE k (a integer UNIQUE NULLS DISTINCT, b integer, UNIQUE NULLS DISTINCT (b))")
    client.execute("CREATE UNIQUE INDEX ON k (a, b) NULLS DISTINCT; INSERT INTO k VALUES (NULL, NULL), (NULL, NULL)")
    for refused in ("CREATE TABLE n (a integer UNIQUE NULLS NOT DISTINCT)", "ALTER TABLE k ADD UNIQUE NULLS NOT "
                    "DISTINCT (a)", "CREATE UNIQUE INDEX ON k (a) NULLS NOT DISTINCT"):  # fmt: skip
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="NULL any number of times"):
            client.execute(refused)
    client.execute("CREATE TABLE one (a text, c text GENERATED ALWAYS AS (coalesce(a, '')) STORED UNIQUE)")
    client.execute("INSERT INTO one VALUES (NULL)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        client.execute("INSERT INTO one VALUES (NULL)")


def test_the_rows_of_a_table_have_a_type(client: Any) -> None:
    client.execute('CREATE VIEW v AS SELECT id FROM t; CREATE SCHEMA s; CREATE TABLE s.u (k integer); '
                   'CREATE TABLE "text" (k integer)')  # fmt: skip
    assert rows(client, "SELECT 't'::regtype, 't[]'::regtype, '_v'::regtype, 's.u'::regtype, to_regtype('u'), "
                        "'text'::regtype::oid = 25") == [("t", "t[]", "v[]", "s.u", None, True)]  # fmt: skip
    assert rows(client, "SELECT c.relname, t.typtype, format_type(c.reltype, NULL) FROM pg_class c JOIN pg_type t "
                        "ON t.oid = c.reltype AND t.typrelid = c.oid WHERE relname IN ('t', 'v') ORDER BY 1") == [
        ("t", "c", "t"), ("v", "c", "v")]  # fmt: skip


def test_an_index_is_in_the_schema_of_its_table(tmp_path: Path) -> None:
    """Alembic and Django name the same index once in each schema, and drop it with the schema's name."""
    indexes = "SELECT schemaname, indexname FROM pg_indexes WHERE indexname LIKE 'ix%' ORDER BY 1, 2"
    with hj.Engine(tmp_path) as engine, serving(engine) as server, server.psycopg() as client:
        client.execute("CREATE SCHEMA s; CREATE TABLE s.t (k integer, a integer); CREATE TABLE t (k integer)")
        client.execute("CREATE INDEX ix ON s.t (k); CREATE INDEX IF NOT EXISTS ix ON t (k)")
        client.execute("CREATE UNIQUE INDEX ixu ON s.t (a); CREATE UNIQUE INDEX ixu ON t (k)")
        assert rows(client, indexes) == [("public", "ix"), ("public", "ixu"), ("s", "ix"), ("s", "ixu")]
        client.execute("ALTER INDEX s.ix RENAME TO ixy; COMMENT ON INDEX s.ixy IS 'it'; DROP INDEX s.ixu")
        client.execute("DROP INDEX CONCURRENTLY IF EXISTS public.ix")
        assert rows(client, indexes) == [("public", "ixu"), ("s", "ixy")]
    with hj.Engine(tmp_path) as engine, serving(engine) as server, server.psycopg() as client:
        with pytest.raises(psycopg.errors.UndefinedObject):
            client.execute("DROP INDEX ixy")
        client.execute("ALTER TABLE s.t RENAME TO u; CREATE SCHEMA r; ALTER TABLE s.u SET SCHEMA r")
        assert rows(client, indexes) == [("public", "ixu"), ("r", "ixy")]
        (found,) = rows(client, "SELECT pg_get_indexdef('r.ixy'::regclass)")
        assert found == ("CREATE INDEX ixy ON r.u USING btree (k)",)
        client.execute("SET search_path = r, public; CREATE UNIQUE INDEX ixz ON u (a); DROP INDEX ixy; DROP INDEX ixz")
        assert rows(client, indexes) == [("public", "ixu")]


def test_an_index_that_was_kept_without_a_schema_is_found(server: Served) -> None:
    """So earlier versions kept it."""
    server.engine.execute("CREATE SCHEMA s; CREATE TABLE s.t (k integer); CREATE INDEX ix ON s.t (k)")
    catalog = server.engine._session.writer.state.catalog  # type: ignore[union-attr]
    catalog.indexes = {"ix": catalog.indexes["s.ix"].model_copy(update={"name": "ix"})}
    with server.psycopg() as client:
        client.execute("CREATE INDEX IF NOT EXISTS ix ON s.t (k); COMMENT ON INDEX s.ix IS 'it'; DROP INDEX s.ix")
        assert rows(client, "SELECT count(*) FROM pg_indexes") == [(0,)]


def test_an_identity_changes_in_one_statement(client: Any) -> None:
    """Alembic writes all that is to change after one ALTER COLUMN."""
    client.execute("CREATE TABLE n (id integer GENERATED ALWAYS AS IDENTITY, b integer)")
    client.execute("ALTER TABLE n ALTER COLUMN id SET GENERATED BY DEFAULT SET START WITH 100 SET INCREMENT BY 5")
    client.execute("INSERT INTO n VALUES (1, 1); INSERT INTO n (b) VALUES (2), (3)")
    client.execute("ALTER TABLE n ALTER id SET GENERATED ALWAYS RESTART WITH 7; INSERT INTO n (b) VALUES (4)")
    assert rows(client, "SELECT id FROM n ORDER BY b") == [(1,), (100,), (105,), (7,)]
    with pytest.raises(psycopg.errors.SyntaxError):
        client.execute("ALTER TABLE n ALTER id RESTART WITH 7 RESTART WITH 8")
    with pytest.raises(psycopg.errors.GeneratedAlways):
        client.execute("INSERT INTO n VALUES (1, 1)")


def test_defaults_read_as_in_postgres(client: Any) -> None:
    """TypeORM compares them with its own texts, and would alter a column each time it starts."""
    client.execute("""CREATE TABLE d (
        a numeric(10,2) DEFAULT '0', b numeric DEFAULT '1.5', c numeric(10,2) DEFAULT '-2',
        d numeric(5,2) DEFAULT '1e2', e bigint DEFAULT '5', f smallint DEFAULT '6', g integer DEFAULT '7',
        h float8 DEFAULT '0', i real DEFAULT '1.5', j numeric(6,1) DEFAULT 0, k bigint DEFAULT -1,
        l numeric DEFAULT -1.5, m numeric DEFAULT '0')""")
    assert [text for text, in rows(client, "SELECT column_default FROM information_schema.columns "
                                           "WHERE table_name = 'd' ORDER BY ordinal_position")] == [
        "'0'::numeric", "1.5", "'-2'::numeric", "'100'::numeric", "'5'::bigint", "'6'::smallint", "7",
        "'0'::double precision", "'1.5'::real", "0", "'-1'::integer", "'-1.5'::numeric", "'0'::numeric"]  # fmt: skip


def test_uuids_have_the_name_of_an_extension(client: Any) -> None:
    """TypeORM makes the extension, and its defaults call it."""
    client.execute('CREATE EXTENSION IF NOT EXISTS "uuid-ossp"; CREATE EXTENSION pgcrypto')
    client.execute("CREATE TABLE u (k integer, id uuid DEFAULT uuid_generate_v4()); INSERT INTO u SELECT a FROM t")
    assert rows(client, "SELECT count(DISTINCT id) FROM u") == [(3,)]
    client.execute("ALTER TABLE u ADD COLUMN more uuid NOT NULL DEFAULT uuid_generate_v4()")
    assert rows(client, "SELECT count(DISTINCT more), count(DISTINCT uuid_generate_v4()) FROM u") == [(3, 3)]
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        client.execute("CREATE EXTENSION hstore")


def test_what_is_done_by_itself_is_taken_and_what_is_not_there_says_why(client: Any) -> None:
    said: list[str] = []
    client.add_notice_handler(lambda notice: said.append(notice.message_primary))
    for vain in ("CHECKPOINT", "REINDEX TABLE t", "CLUSTER t", "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO x"):
        client.execute(vain)
    assert len(said) == 4 and all("nothing" in one for one in said)
    for refused in ("PREPARE TRANSACTION 'x'", "COMMIT PREPARED 'x'", "CREATE RULE r AS ON INSERT TO t DO NOTHING",
                    "CREATE POLICY p ON t", "CREATE PUBLICATION p FOR ALL TABLES"):  # fmt: skip
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            client.execute(refused)


def test_a_table_takes_its_sequences_into_another_schema() -> None:
    engine = hj.Engine()
    engine.execute("CREATE SCHEMA s; CREATE TABLE s.t (id serial, n integer GENERATED ALWAYS AS IDENTITY)")
    engine.execute("COMMENT ON SEQUENCE s.t_id_seq IS 'it'; ALTER TABLE s.t SET SCHEMA s")
    engine.execute("ALTER TABLE s.t SET SCHEMA public")
    told = engine.execute("SELECT pg_get_serial_sequence('t', 'id') AS a, pg_get_serial_sequence('t', 'n') AS b")
    assert told.to_pylist() == [{"a": "public.t_id_seq", "b": "public.t_n_seq"}]
    assert engine.execute("SHOW COMMENTS").to_pylist() == [{"kind": "sequence", "name": "t_id_seq", "comment": "it"}]
    assert engine.execute("INSERT INTO t DEFAULT VALUES RETURNING id, n").to_pylist() == [{"id": 1, "n": 1}]
    with pytest.raises(hj.UnsupportedSQL, match="cannot move an owned sequence") as caught:
        engine.execute("ALTER SEQUENCE t_id_seq SET SCHEMA s")
    assert caught.value.sqlstate == "0A000"
    engine.execute("CREATE SEQUENCE q; ALTER SEQUENCE q SET SCHEMA public")
    with pytest.raises(hj.Conflict, match="exists already"):
        engine.execute("ALTER TABLE t RENAME TO t")
    engine.execute("CREATE SEQUENCE s.t_id_seq")
    with pytest.raises(hj.Conflict, match=r"s\.t_id_seq exists already"):
        engine.execute("ALTER TABLE t SET SCHEMA s")
    assert engine.execute("INSERT INTO t DEFAULT VALUES RETURNING id").to_pylist() == [{"id": 2}]
