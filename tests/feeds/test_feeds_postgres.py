"""A source FROM POSTGRES: the tables equal the server's, transaction by transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.postgres import Database
from tests.support.sourced import Followed, dsn_of, ordered

pytest_plugins = ("tests.support.postgres",)
psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[test-postgres]'")

ALL_TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'very "good"');
CREATE DOMAIN positive AS integer NOT NULL CHECK (VALUE > 0);
CREATE TABLE kinds (
    id bigint PRIMARY KEY, si smallint, i integer, r real, d double precision, n numeric(12,3), wide numeric,
    b boolean, t text, v varchar(20), c char(6), by bytea, da date, ti time, ts timestamp, tz timestamptz,
    ms timestamp(3), u uuid, j jsonb, iv interval, m mood, ia integer[], ta text[], na numeric(8,2)[], ma mood[],
    p positive, doubled bigint GENERATED ALWAYS AS (id * 2) STORED
)"""


BAG = """
CREATE TABLE bag (x int); ALTER TABLE bag REPLICA IDENTITY FULL; CREATE PUBLICATION p FOR ALL TABLES"""


@pytest.fixture
def server(postgres_server: Database) -> Iterator[Any]:
    """A connection to a database of its own. Its slots are dropped in the end."""
    with postgres_server() as connection:
        connection.execute("SET synchronous_commit = on")  # else a commit is in the log a moment later
        yield connection
        connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
        connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                           "WHERE database = current_database()")  # fmt: skip


def same(followed: Followed, server: Any, *tables: str) -> None:
    """Assert that tables have the server's rows."""
    for table in tables:
        assert followed.rows(f"SELECT * FROM {table}") == ordered(server.execute(f"SELECT * FROM {table}").fetchall())


def test_every_type_arrives_as_it_is(server: Any) -> None:
    server.execute(ALL_TYPES)
    server.execute("CREATE PUBLICATION p FOR TABLE kinds")
    values = [
        "1, -32768, 2147483647, 1.17549435e-38, 'NaN', -999999999.999, 1234567890.0123456789, true, '', 'ünï', 'ab ', "
        r"'\x00ff', '0001-01-01', '23:59:59.999999', '2020-02-29 12:00:00.000001', '2020-01-01 00:00:00+05:30', "
        "'2020-01-01 00:00:00.1235', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{\"b\": [1, null], \"a\": 1.5}', "
        "'1 year -3 days 04:05:06.7', 'very \"good\"', '{1,NULL,-3}', '{\"a b\",\"q\\\"\",NULL,\"NULL\",\"\"}', "
        "'{1.5,-2.25}', '{sad,ok}', 7",
        f"2, {', '.join(['NULL'] * 24)}, 1",
        r"3, 0, 0, 0.0, '-Infinity', 0, 0.0000000000, false, E'tab\t''quote\\ \n', 'x', '', '', '9999-12-31', '00:00', "
        "'0001-01-01', '1999-12-31 23:59:59.5Z', '2020-01-01', gen_random_uuid(), 'null', '-1 month', 'sad', '{}', "
        "'{}', '{}', '{}', 1",
    ]  # fmt: skip
    columns = "id, si, i, r, d, n, wide, b, t, v, c, by, da, ti, ts, tz, ms, u, j, iv, m, ia, ta, na, ma, p"
    for row in values[:2]:
        server.execute(f"INSERT INTO kinds ({columns}) VALUES ({row})")
    followed = Followed(server)
    followed.catch_up()
    server.execute(f"INSERT INTO kinds ({columns}) VALUES ({values[2]})")
    server.execute("UPDATE kinds SET si = 5 WHERE id = 1")
    followed.catch_up()
    texts = ", ".join(f"CAST({name} AS text)" for name in columns.split(", "))
    found = server.execute(f"SELECT {texts} FROM kinds").fetchall()
    assert followed.rows(f"SELECT {texts} FROM kinds") == ordered(found)


def test_tables_of_one_transaction_change_in_one_batch(server: Any) -> None:
    server.execute("CREATE TABLE a (id int PRIMARY KEY, v int); CREATE TABLE b (id int PRIMARY KEY, v int);"
                   "CREATE PUBLICATION p FOR ALL TABLES")  # fmt: skip
    followed = Followed(server)
    followed.catch_up()
    followed.engine.execute("CREATE MATERIALIZED VIEW s AS SELECT (SELECT sum(v) FROM a) + (SELECT sum(v) FROM b) AS s")
    for amount in range(1, 4):
        with server.transaction():
            server.execute("INSERT INTO a VALUES (%s, %s)", [amount, amount])
            server.execute("INSERT INTO b VALUES (%s, %s)", [amount, -amount])
    assert followed.catch_up() == 1  # several transactions may be one batch
    assert followed.rows("SELECT s FROM s") == [(0,)]
    same(followed, server, "a", "b")


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_values_that_were_not_sent_are_those_before(server: Any, identity: str) -> None:
    server.execute("CREATE TABLE big (id int PRIMARY KEY, n int, doc text NOT NULL, more text);"
                   "ALTER TABLE big ALTER doc SET STORAGE EXTERNAL, ALTER more SET STORAGE EXTERNAL;"
                   f"ALTER TABLE big REPLICA IDENTITY {identity}; CREATE PUBLICATION p FOR TABLE big;"
                   "INSERT INTO big SELECT i, 0, repeat(i::text, 9000), repeat('m', 5000) FROM generate_series(1, 6) i")
    followed = Followed(server)
    followed.catch_up()
    for statement in (
        "UPDATE big SET n = n + 1",
        "UPDATE big SET n = 7, more = NULL WHERE id = 2",
        "UPDATE big SET id = id + 10",  # the old key's row has the values
        "BEGIN; UPDATE big SET id = 21 WHERE id = 11; UPDATE big SET id = 31 WHERE id = 21;"
        "UPDATE big SET n = 9 WHERE id = 31; UPDATE big SET id = 12, n = 8 WHERE id = 99; COMMIT",
        "BEGIN; UPDATE big SET doc = repeat('new', 3000) WHERE id = 13; UPDATE big SET id = 43 WHERE id = 13; COMMIT",
        "BEGIN; INSERT INTO big VALUES (50, 0, repeat('z', 9000), repeat('y', 9000)); "
        "UPDATE big SET n = 1 WHERE id = 50; UPDATE big SET id = 51 WHERE id = 50; COMMIT",
        "BEGIN; DELETE FROM big WHERE id = 14; UPDATE big SET id = 14 WHERE id = 15; COMMIT",  # a key changes hands
        "BEGIN; TRUNCATE big; INSERT INTO big VALUES (1, 1, repeat('t', 9000), NULL); UPDATE big SET n = 2;"
        "UPDATE big SET id = 2; COMMIT",
    ):
        server.execute(statement)
        followed.catch_up()
        same(followed, server, "big")
    for number in range(3):
        server.execute("UPDATE big SET id = id + 1, n = n + %s", [number])
    followed.catch_up()  # all in one batch
    same(followed, server, "big")


def test_a_table_without_a_key_keeps_equal_rows(server: Any) -> None:
    server.execute("CREATE TABLE bag (x int, y text); ALTER TABLE bag REPLICA IDENTITY FULL;"
                   "CREATE PUBLICATION p FOR ALL TABLES;"
                   "INSERT INTO bag SELECT i % 3, NULL FROM generate_series(1, 9) i")  # fmt: skip
    followed = Followed(server)
    followed.catch_up()
    for statement in ("INSERT INTO bag VALUES (1, 'a'), (1, 'a')", "UPDATE bag SET y = 'b' WHERE x = 1 AND y IS NULL",
                      "DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE x = 2 LIMIT 1)",
                      "BEGIN; INSERT INTO bag VALUES (4, 'c'); TRUNCATE bag; INSERT INTO bag VALUES (5, 'd'); COMMIT"):
        server.execute(statement)
        followed.catch_up()
        same(followed, server, "bag")


def test_a_large_transaction_comes_in_pieces_of_one_time(server: Any) -> None:
    server.execute("CREATE TABLE a (id int PRIMARY KEY, v int); CREATE TABLE b (id int PRIMARY KEY, v int);"
                   "CREATE PUBLICATION p FOR ALL TABLES; INSERT INTO a SELECT i, 0 FROM generate_series(1, 20) i")
    followed = Followed(server, rows=10)
    followed.catch_up()
    followed.engine.execute("CREATE MATERIALIZED VIEW s AS SELECT count(*) AS n, sum(v) AS v FROM a")
    server.execute("INSERT INTO b VALUES (0, 0)")
    with server.transaction():
        server.execute("UPDATE a SET v = v + 1; INSERT INTO b SELECT i, i FROM generate_series(1, 70) i;"
                       "UPDATE a SET v = v + 1 WHERE id <= 15; DELETE FROM a WHERE id = 20")  # fmt: skip
    server.execute("INSERT INTO b VALUES (-1, 0)")
    seen, pieces = set(), 0
    while (found := followed.poll()) is not None:
        seen.update(followed.rows("SELECT n, v FROM s"))
        pieces += not found.last
        if pieces % 2:
            followed.killed()
    assert pieces > 3
    assert seen == {(20, 0), (19, 34)}
    same(followed, server, "a", "b")


@pytest.mark.parametrize("rows", [2, 3, 10])
def test_nothing_new_means_nothing_new_wherever_a_fetch_ends(server: Any, rows: int) -> None:
    server.execute("CREATE TABLE a (id int PRIMARY KEY); CREATE PUBLICATION p FOR ALL TABLES")
    followed = Followed(server, rows=rows)
    followed.catch_up()
    for count in range(1, 15):
        for _ in range(count):
            server.execute("INSERT INTO a SELECT count(*) FROM a")
        followed.catch_up()
        same(followed, server, "a")


def test_a_large_snapshot_comes_in_pieces_of_one_time(server: Any) -> None:
    server.execute("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (x int); CREATE TABLE c (id int PRIMARY KEY);"
                   "ALTER TABLE b REPLICA IDENTITY FULL; CREATE PUBLICATION p FOR ALL TABLES;"
                   "INSERT INTO a SELECT generate_series(1, 95); INSERT INTO b SELECT 1 FROM generate_series(1, 40)")
    followed = Followed(server, rows=20)
    followed.engine.execute("CREATE MATERIALIZED VIEW s AS SELECT count(*) AS n FROM a")
    for number in range(4):  # killed in its middle, it begins again
        followed.poll()
        server.execute(f"DELETE FROM a WHERE id = {number}; INSERT INTO c VALUES ({number})")
    followed.killed()
    seen = set()
    while followed.poll() is not None:
        seen.update(followed.rows("SELECT n FROM s"))
    assert seen == {(0,), (92,)}
    same(followed, server, "a", "b", "c")


def test_a_snapshot_among_writers_loses_and_doubles_nothing(server: Any) -> None:
    server.execute(BAG)
    stop, failures = threading.Event(), []

    def write(number: int) -> None:
        try:
            with psycopg.connect(dsn_of(server), autocommit=True) as mine:
                while not stop.is_set():
                    mine.execute(f"INSERT INTO bag VALUES ({number}); INSERT INTO bag VALUES (-{number})")
        except BaseException as problem:
            failures.append(problem)

    writers = [threading.Thread(target=write, args=[number]) for number in range(1, 4)]
    for writer in writers:
        writer.start()
    try:
        for attempt in range(3):
            followed = Followed(server, slot=f"among_{attempt}", rows=50)
            while followed.position is None or "changes" not in followed.position:
                followed.poll()
            followed.poll()
            assert followed.rows("SELECT coalesce(sum(x), 0) FROM bag") == [(0,)]
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not failures
    server.execute("SELECT 1")
    followed.catch_up()
    same(followed, server, "bag")


def test_a_commit_that_is_written_and_not_visible_yet_is_not_lost(server: Any) -> None:
    """Its commit is before the place where the slot begins, and a snapshot does not see it: it waits for a standby."""
    server.execute("CREATE TABLE a (id int PRIMARY KEY); CREATE PUBLICATION p FOR ALL TABLES")
    dsn = dsn_of(server)
    waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = %s"
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second, psycopg.connect(dsn, autocommit=True) as third:
        threads = []

        def begun(work: Any) -> None:
            threads.append(threading.Thread(target=work))
            threads[-1].start()

        def until(event: str) -> None:
            while not server.execute(waits, [event]).fetchone()[0]:
                pass

        server.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try:
            server.execute("SELECT pg_reload_conf()")
            server.execute("SET synchronous_commit = local")
            first.execute("SET synchronous_commit = local")
            second.execute("SET synchronous_commit = local")
            third.execute("SET synchronous_commit = on")
            while third.execute("SHOW synchronous_standby_names").fetchone()[0] != "nobody":
                pass
            first.rollback()
            first.execute("SET synchronous_commit = local")
            first.execute("INSERT INTO a VALUES (1)")
            followed = Followed(server)
            followed.poll()
            begun(followed.poll)  # makes the slot, and waits for the transactions that are open
            until("transactionid")
            second.execute("INSERT INTO a VALUES (2)")
            first.commit()
            while second.info.backend_pid not in [pid for (pid,) in server.execute(
                "SELECT unnest(pg_blocking_pids(pid)) FROM pg_stat_activity WHERE wait_event = 'transactionid'"
            ).fetchall()]:
                pass
            begun(lambda: third.execute("INSERT INTO a VALUES (3)"))
            until("SyncRep")
            second.commit()
            threads[0].join(60)
            for _ in range(3):
                assert followed.poll() is None  # the third is still open
            assert followed.rows("SELECT id FROM a") == []
        finally:
            server.execute("ALTER SYSTEM RESET synchronous_standby_names")
            server.execute("SELECT pg_reload_conf()")
            for thread in threads:
                thread.join(60)
    followed.catch_up()
    same(followed, server, "a")


def test_killed_before_the_slot_is_moved(server: Any) -> None:
    server.execute(BAG)
    followed = Followed(server)
    for number in range(12):
        server.execute("INSERT INTO bag VALUES (%s), (%s)", [number, number])
        followed.poll(acknowledge=False)
        followed.killed()
    followed.catch_up()
    same(followed, server, "bag")


def test_partitions_are_one_table_and_conditions_hold(server: Any) -> None:
    server.execute("CREATE TABLE parted (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);"
                   "CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10);"
                   "CREATE TABLE high PARTITION OF parted FOR VALUES FROM (10) TO (100);"
                   "CREATE TABLE shown (id int PRIMARY KEY, v int, secret text);"
                   "INSERT INTO parted SELECT i, i FROM generate_series(1, 20) i;"
                   "INSERT INTO shown SELECT i, i, 'x' FROM generate_series(1, 20) i;"
                   "CREATE PUBLICATION p FOR TABLE parted, shown (id, v) WHERE (id > 5) "
                   "WITH (publish_via_partition_root = true)")  # fmt: skip
    followed = Followed(server, "parted, shown")
    followed.catch_up()
    server.execute("UPDATE parted SET v = 0 WHERE id = 8; DELETE FROM parted WHERE id = 20")
    server.execute("UPDATE shown SET id = -4 WHERE id = 10; UPDATE shown SET id = 30 WHERE id = 1")
    followed.catch_up()
    same(followed, server, "parted")
    assert followed.rows("SELECT * FROM shown") == ordered(
        server.execute("SELECT id, v FROM shown WHERE id > 5").fetchall()
    )


def test_the_slot_follows_the_position(server: Any) -> None:
    server.execute("CREATE TABLE a (id int PRIMARY KEY); CREATE PUBLICATION p FOR ALL TABLES")
    followed = Followed(server)
    followed.catch_up()
    kept = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE database = current_database()"
    before = server.execute(kept).fetchone()
    server.execute("INSERT INTO a SELECT generate_series(1, 100)")
    followed.poll(acknowledge=False)
    assert server.execute(kept).fetchone() == before
    followed.killed()
    followed.poll()
    server.execute("INSERT INTO a VALUES (0)")
    followed.poll()
    assert server.execute(kept).fetchone() > before
    assert followed.reader is not None
    assert (followed.reader.lag().amount or 0) < 10_000
