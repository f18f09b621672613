"""A source FROM POSTGRES: what the server lacks or has changed is said, with what to do; nothing is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.feeds.postgres.place import Place
from halfjoin.engine.feeds.postgres.reader import POSTGRES, dropped
from halfjoin.engine.feeds.postgres.server import PostgresOptions, Server, lsn, number
from halfjoin.engine.feeds.source import Opening
from tests.support.postgres import Database
from tests.support.sourced import Followed, dsn_of, ordered

pytest_plugins = ("tests.support.postgres",)


@pytest.fixture
def server(postgres_server: Database) -> Iterator[Any]:
    """A connection to a database of its own. Its slots are dropped in the end."""
    with postgres_server() as connection:
        connection.execute("SET synchronous_commit = on")
        yield connection
        connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
        connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                           "WHERE database = current_database()")  # fmt: skip


def following(server: Any, columns: str = "id int PRIMARY KEY, v text", of: str = "TABLE a") -> Followed:
    """A table `a` that is followed; the publication is for it, or `of` what it says."""
    server.execute(f"CREATE TABLE a ({columns}); CREATE PUBLICATION p FOR {of}")
    followed = Followed(server, "a")
    followed.catch_up()
    return followed


def refused(followed: Followed, match: str) -> hj.HalfjoinError:
    """The error of a poll. The next reader finds the same."""
    with pytest.raises(hj.HalfjoinError, match=match):
        followed.catch_up()
    followed.killed()
    with pytest.raises(hj.HalfjoinError, match=match) as found:
        followed.catch_up()
    followed.killed()
    return found.value


def test_a_publication_that_is_missing(server: Any) -> None:
    with pytest.raises(hj.Conflict, match=r"no publication p .*run CREATE PUBLICATION p FOR TABLE public\.a"):
        Followed(server, "public.a")


@pytest.mark.parametrize(("made", "tables", "match"), [
    ("CREATE PUBLICATION p FOR TABLE b", "a", "does not have the table public.a; run ALTER PUBLICATION p ADD TABLE"),
    ("CREATE PUBLICATION p FOR TABLE a", "c", "unknown table 'c' of the server"),
    ("CREATE PUBLICATION p FOR TABLE a WITH (publish = 'insert')", "a", r"leaves out some kinds.*SET \(publish = "),
    ("CREATE PUBLICATION p FOR TABLE parted", "parted", "publish_via_partition_root = true"),
    ("CREATE PUBLICATION p FOR ALL TABLES", "odd", r"columns of public.odd.*r \(type int4range.*make the table before"),
    ("CREATE PUBLICATION p FOR TABLE a; SELECT pg_create_logical_replication_slot('errors', 'pgoutput')", "a",
     "has a replication slot errors already"),
])  # fmt: skip
def test_what_create_source_refuses(server: Any, made: str, tables: str, match: str) -> None:
    server.execute("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY);"
                   "CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id);"
                   "CREATE TABLE odd (id int PRIMARY KEY, r int4range, i inet, j json, x xml)")  # fmt: skip
    for statement in made.split("; "):
        server.execute(statement)
    with pytest.raises(hj.HalfjoinError, match=match):
        Followed(server, tables, slot="errors")


def test_a_table_that_is_there_may_have_text_for_other_types(server: Any) -> None:
    server.execute("CREATE TABLE odd (id int PRIMARY KEY, r int4range); CREATE PUBLICATION p FOR TABLE odd;"
                   "INSERT INTO odd VALUES (1, '[1,5)')")  # fmt: skip
    engine = hj.Engine()
    engine.execute("CREATE TABLE odd (id bigint PRIMARY KEY, r text)")
    options = PostgresOptions(dsn=dsn_of(server), publication="p", slot="odd", tables="odd")
    opening = Opening("s", "1", options, [engine._writer.state.catalog.table("odd")])
    reader = POSTGRES.open(opening)
    position = None
    for _ in range(3):
        found = reader.poll(position, 0)
        assert found is not None
        engine.apply(dict(found.batches))
        position = found.position
    reader.close()
    assert engine.query("SELECT id, r FROM odd").to_pylist() == [{"id": 1, "r": "[1,5)"}]


def test_a_table_that_is_there_takes_ranges_as_text_and_rows_as_rows(server: Any) -> None:
    server.execute("CREATE TYPE pair AS (a int, b text); CREATE TYPE odd AS (n numeric);"
                   "CREATE TABLE t (id int PRIMARY KEY, r int4range, p pair, ps pair[], n odd);"
                   "CREATE PUBLICATION p FOR TABLE t; INSERT INTO t VALUES (1, '[1,5)', ROW(1, 'a, b'), '{}')")
    source = f"CREATE SOURCE s FROM POSTGRES (dsn '{dsn_of(server)}', publication 'p', slot 'rows') INTO TABLES"
    with hj.Engine() as engine:
        with pytest.raises(hj.UnsupportedSQL, match="make the table before the source"):
            engine.execute(source)
        engine.execute("CREATE TYPE pair AS (a int, b text); CREATE TYPE odd AS (n numeric);"
                       "CREATE TABLE t (id int PRIMARY KEY, r text, p pair, ps pair[], n odd)")
        engine.execute(source)
        engine.run_sources()
        server.execute("UPDATE t SET p.b = NULL, ps = ARRAY[p, NULL] WHERE id = 1")
        engine.run_sources()
        assert engine.query("SELECT r, p, ps FROM t").to_pylist() == [
            {"r": "[1,5)", "p": {"a": 1, "b": None}, "ps": [{"a": 1, "b": "a, b"}, None]}]
        server.execute("UPDATE t SET n = ROW(1.5) WHERE id = 1")
        with pytest.raises(hj.InvalidRow, match="numerics might be rounded"):
            engine.run_sources()


def test_a_role_without_replication(server: Any) -> None:
    server.execute("DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN; CREATE TABLE a (id int PRIMARY KEY);"
                   "CREATE PUBLICATION p FOR TABLE a")  # fmt: skip
    options = PostgresOptions(dsn=dsn_of(server).replace("user=postgres", "user=reader"), publication="p", slot="r")
    with pytest.raises(hj.HalfjoinError, match=r"role reader may not.*ALTER ROLE reader REPLICATION"):
        POSTGRES.tables(options, ())
    server.execute("ALTER ROLE reader REPLICATION")
    POSTGRES.tables(options, ())


def test_a_server_that_is_away_and_a_password(server: Any) -> None:
    away = dsn_of(server).replace(f"port={server.info.port}", "port=1") + " password=secret1"
    with pytest.raises(hj.StorageError, match="cannot be reached") as found:
        Server(PostgresOptions(dsn=away, publication="p", slot="s"))
    assert "secret1" not in str(found.value)
    opening = Opening("s", "1", PostgresOptions(dsn=away, publication="p", slot="kept"), ())
    with pytest.raises(hj.HalfjoinError, match=r"kept stays on the server.*pg_drop_replication_slot\('kept'\)"):
        dropped(opening)
    with pytest.raises(hj.HalfjoinError, match="not one that libpq reads"):
        Server(PostgresOptions(dsn="what=1", publication="p", slot="s"))


def test_a_new_column_is_followed_once_the_table_has_it(server: Any) -> None:
    followed = following(server)
    server.execute("INSERT INTO a VALUES (1, 'a'), (2, 'b')")
    server.execute("ALTER TABLE a ADD COLUMN note text")
    server.execute("INSERT INTO a VALUES (3, 'c', 'new'); UPDATE a SET note = 'x' WHERE id = 1")
    problem = refused(followed, 'has a column note, and a does not')
    assert 'ALTER TABLE "a" ADD COLUMN "note" text' in str(problem)
    assert followed.rows("SELECT * FROM a") == [(1, "a"), (2, "b")]  # what came before
    followed.engine.execute("ALTER TABLE a ADD COLUMN note text")
    followed.catch_up()
    assert followed.rows("SELECT * FROM a") == ordered(server.execute("SELECT * FROM a").fetchall())


def test_a_column_that_goes_or_changes_its_type(server: Any) -> None:
    followed = following(server, "id int PRIMARY KEY, v varchar(3), w int")
    server.execute("ALTER TABLE a DROP COLUMN w; INSERT INTO a VALUES (1, 'a')")
    refused(followed, 'has lost the column w.*ALTER TABLE "a" DROP COLUMN "w"')
    followed.engine.execute("ALTER TABLE a DROP COLUMN w")
    followed.catch_up()
    server.execute("ALTER TABLE a ALTER v TYPE varchar(9); UPDATE a SET v = 'b'")
    followed.catch_up()  # nothing was changed by that
    assert followed.rows("SELECT * FROM a") == [(1, "b")]
    server.execute("UPDATE a SET v = 'too long'")
    refused(followed, "'too long' is not a valid varchar")
    followed.engine.execute("ALTER TABLE a ALTER v TYPE varchar(9)")
    followed.catch_up()
    server.execute("ALTER TABLE a ALTER v TYPE text USING 'other'; INSERT INTO a VALUES (2, 'c')")
    refused(followed, r"type of public.a.v was changed")


ANOTHER = [
    ("BEGIN; DROP TABLE a; CREATE TABLE a (id int PRIMARY KEY, v text, w text); INSERT INTO a VALUES (2, 'b'); COMMIT",
     "public.a is another table"),
    ("BEGIN; DROP TABLE a; CREATE TABLE a (id int PRIMARY KEY, v text, w text); COMMIT", "public.a is another table"),
    ("CREATE TABLE b (LIKE a INCLUDING ALL); BEGIN; ALTER TABLE a RENAME TO c; ALTER TABLE b RENAME TO a; COMMIT;"
     "INSERT INTO a VALUES (2, 'b')", "public.a is another table"),
    ("ALTER TABLE a RENAME TO b; INSERT INTO b VALUES (2, 'b'); ALTER TABLE b RENAME TO a",
     "public.a is another table"),
    ("CREATE SCHEMA s; ALTER TABLE a SET SCHEMA s; TRUNCATE s.a; ALTER TABLE s.a SET SCHEMA public",
     "public.a is another table"),
    ("ALTER TABLE a DROP COLUMN v; ALTER TABLE a ADD COLUMN v text", "the column v of public.a is another one"),
    ("ALTER TABLE a RENAME v TO x; ALTER TABLE a RENAME w TO v; ALTER TABLE a RENAME x TO w", "is another one"),
    ("ALTER TABLE a DROP CONSTRAINT a_pkey; INSERT INTO a VALUES (1, 'b')", "not identified by a key any more"),
    ("ALTER TABLE a REPLICA IDENTITY FULL; ALTER TABLE a DROP CONSTRAINT a_pkey; INSERT INTO a VALUES (1, 'b')",
     "not identified by a key any more"),
]  # fmt: skip


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize(("change", "why"), ANOTHER)
def test_what_has_the_name_of_another_is_not_taken_for_it(server: Any, change: str, why: str, stopped: bool) -> None:
    followed = following(server, "id int PRIMARY KEY, v text, w text", "ALL TABLES")
    server.execute("INSERT INTO a VALUES (1, 'a')")
    followed.catch_up()
    if stopped:
        followed.killed()
    server.execute(change)
    refused(followed, why)
    again = Followed(server, "a", slot="again", engine=followed.engine)
    if "CONSTRAINT" not in change:
        again.catch_up()
        assert again.rows("SELECT id, v, w FROM a") == ordered(server.execute("SELECT id, v, w FROM a").fetchall())


def test_a_column_that_went_here_as_well_may_come_again(server: Any) -> None:
    followed = following(server, "id int PRIMARY KEY, v text")
    for change in ("DROP COLUMN v", "ADD COLUMN v text"):
        server.execute(f"ALTER TABLE a {change}")
        followed.engine.execute(f"ALTER TABLE a {change}")
        server.execute("INSERT INTO a SELECT count(*) FROM a")
        followed.killed()
        followed.catch_up()
    server.execute("UPDATE a SET v = 'x'")
    followed.catch_up()
    assert followed.rows("SELECT * FROM a") == ordered(server.execute("SELECT * FROM a").fetchall())


def test_a_position_of_an_older_version_learns_what_its_tables_are(server: Any) -> None:
    followed = following(server, of="ALL TABLES")
    assert followed.position is not None
    followed.position = Place.model_validate_json(followed.position).model_copy(update={"origins": {}}).text()
    followed.killed()
    followed.catch_up()
    server.execute("INSERT INTO a VALUES (1, 'a')")
    followed.catch_up()
    assert followed.rows("SELECT * FROM a") == [(1, "a")]
    server.execute("BEGIN; DROP TABLE a; CREATE TABLE a (id int PRIMARY KEY, v text); COMMIT")
    refused(followed, "public.a is another table")


def test_a_slot_that_is_gone_or_was_moved(server: Any) -> None:
    followed = following(server)
    server.execute("INSERT INTO a VALUES (1, 'a')")
    followed.killed()
    server.execute("SELECT pg_replication_slot_advance('halfjoin', pg_current_wal_flush_lsn())")
    refused(followed, "another reader moved it, or it was made anew.*DROP SOURCE and CREATE SOURCE again")
    server.execute("SELECT pg_drop_replication_slot('halfjoin')")
    refused(followed, "is not there any more, so the changes since .* are lost")
    again = Followed(server, "a", engine=followed.engine)  # as DROP SOURCE and CREATE SOURCE do
    again.catch_up()
    assert again.rows("SELECT * FROM a") == [(1, "a")]


def test_a_table_that_leaves_the_publication(server: Any) -> None:
    followed = following(server)
    server.execute("CREATE TABLE b (id int); ALTER PUBLICATION p SET TABLE b")
    refused(followed, "publication p does not have the table public.a")


def test_a_table_without_a_key_needs_whole_rows(server: Any) -> None:
    followed = following(server, "x int")
    server.execute("INSERT INTO a VALUES (1)")
    followed.catch_up()
    assert followed.rows("SELECT * FROM a") == [(1,)]
    server.execute("ALTER TABLE a ADD COLUMN k int NOT NULL DEFAULT 1; CREATE UNIQUE INDEX i ON a (k);"
                   "ALTER TABLE a REPLICA IDENTITY USING INDEX i; UPDATE a SET x = 2")  # fmt: skip
    followed.engine.execute("ALTER TABLE a ADD COLUMN k int DEFAULT 1")
    followed.killed()
    refused(followed, "no PRIMARY KEY, and the server does not send the rows.*REPLICA IDENTITY FULL")


def test_a_value_that_the_engine_does_not_have(server: Any) -> None:
    followed = following(server, "id int PRIMARY KEY, n numeric(5,2), d date")
    server.execute("INSERT INTO a VALUES (1, 'NaN', NULL)")
    refused(followed, "'NaN' is not a valid numeric")


def test_places_in_the_log_are_numbers() -> None:
    assert (lsn(number("0/0")), lsn(number("16/B374D848"))) == ("0/0", "16/B374D848")
