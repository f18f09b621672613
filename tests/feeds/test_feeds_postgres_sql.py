"""CREATE SOURCE ... FROM POSTGRES: tables are made, followed and kept through restarts; DROP SOURCE frees the slot."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.feeds.postgres.reader import PostgresReader
from tests.support.postgres import Database
from tests.support.sourced import dsn_of, ordered

pytest_plugins = ("tests.support.postgres",)
psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[test-postgres]'")

TABLES = """
CREATE TYPE state AS ENUM ('open', 'done');
CREATE TABLE parent (id int PRIMARY KEY, state state, price numeric(10,2), doc text);
CREATE TABLE child (id int PRIMARY KEY, parent int NOT NULL, n int,
                    FOREIGN KEY (parent) REFERENCES parent ON UPDATE CASCADE ON DELETE CASCADE);
CREATE TABLE bag (x int, y text);
ALTER TABLE bag REPLICA IDENTITY FULL; ALTER TABLE parent ALTER doc SET STORAGE EXTERNAL;
CREATE PUBLICATION p FOR TABLE parent, child, bag"""
NAMES = ("parent", "child", "bag")
VIEW = """
SELECT p.state, count(*) AS parents, sum(p.price) AS price, sum(length(p.doc)) AS docs,
       sum((SELECT sum(c.n) FROM child c WHERE c.parent = p.id)) AS n,
       count(*) FILTER (WHERE p.id IN (SELECT x FROM bag)) AS bagged
FROM parent p GROUP BY p.state"""


@pytest.fixture
def server(postgres_server: Database) -> Iterator[Any]:
    """A connection to a database of its own with the tables. Its slots are dropped in the end."""
    with postgres_server() as connection:
        connection.execute("SET synchronous_commit = on")  # else a commit is in the log a moment later
        connection.execute(TABLES)
        yield connection
        connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
        connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                           "WHERE database = current_database()")  # fmt: skip


def source(server: Any, into: str = "TABLES", slot: str = "halfjoin_sql") -> str:
    return (f"CREATE SOURCE s FROM POSTGRES (dsn '{dsn_of(server)}', tables 'public.parent, child, bag', "
            f"publication 'p', slot '{slot}') INTO {into}")  # fmt: skip


def contents(server: Any, engine: hj.Engine | None = None) -> list[list[tuple[Any, ...]]]:
    """The rows of all tables: the engine's, or the server's."""
    if engine is None:
        return [ordered(server.execute(f"SELECT * FROM {name}").fetchall()) for name in NAMES]
    return [ordered(tuple(row.values()) for row in engine.query(f"SELECT * FROM {name}").to_pylist()) for name in NAMES]


def slots(server: Any) -> int:
    found = server.execute("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()").fetchone()
    return int(found[0])


def test_tables_are_made_and_followed_and_the_slot_is_dropped(server: Any, tmp_path: Path) -> None:
    server.execute("INSERT INTO parent VALUES (1, 'open', 1.5, 'a'); INSERT INTO child VALUES (1, 1, 1)")
    with hj.Engine(tmp_path / "warehouse") as engine:
        engine.execute(source(server))
        engine.run_sources(0)
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
        server.execute("INSERT INTO bag VALUES (1, NULL), (1, NULL); UPDATE parent SET id = 2, state = 'done'")
        engine.run_sources(0)
        assert contents(server, engine) == contents(server)
    with hj.Engine(tmp_path / "warehouse") as engine:
        server.execute("INSERT INTO parent VALUES (1, 'open', 2.5, 'a'); DELETE FROM bag WHERE x = 1")
        engine.run_sources(0)
        assert contents(server, engine) == contents(server)
        assert ordered(map(tuple, map(dict.values, engine.read("v").to_pylist()))) == ordered(
            server.execute(VIEW).fetchall())  # fmt: skip
        assert slots(server) == 1
        engine.execute("DROP SOURCE s")
        engine.stop_sources()  # waits for what is given back
        assert slots(server) == 0
        server.execute("UPDATE parent SET price = 0")
        engine.execute(source(server, "parent, child, bag"))  # over the tables that are there: what differs is applied
        engine.run_sources(0)
        assert contents(server, engine) == contents(server)


@pytest.mark.parametrize("started", [False, True])
def test_a_source_is_made_anew_with_its_slot(server: Any, tmp_path: Path, started: bool) -> None:
    """As errors and the manual advise where changes are lost."""
    server.execute("INSERT INTO parent VALUES (1, 'open', 1.5, 'a'); INSERT INTO child VALUES (1, 1, 1)")
    with hj.Engine(tmp_path / "warehouse") as engine:
        engine.execute(source(server))
        engine.run_sources(0)
        server.execute("UPDATE parent SET price = 3")
        if started:
            engine.start_sources()
        engine.execute("DROP SOURCE s; " + source(server, "parent, child, bag"))
        engine.stop_sources()
        server.execute("UPDATE parent SET price = 4")
        engine.run_sources(0)
        assert contents(server, engine) == contents(server)
        engine.execute("DROP SOURCE s")
        options: dict[str, Any] = {"dsn": dsn_of(server), "publication": "p", "slot": "halfjoin_sql",
                                   "tables": "parent, child, bag"}  # fmt: skip
        engine.create_source("s", "postgres", ["parent", "child", "bag"], **options)
        engine.run_sources(0)
        assert contents(server, engine) == contents(server)


class Killed(BaseException):
    """Stands for the end of the process."""


class Writers:
    """Some connections with transactions that are open at once. `states`: the tables after each commit, in order."""

    def __init__(self, server: Any, random: random.Random, count: int) -> None:
        self._server, self._random = server, random
        self._connections = [psycopg.connect(dsn_of(server)) for _ in range(count)]
        for one in self._connections:
            one.execute("SET synchronous_commit = on; SET lock_timeout = 1")
            one.commit()
        self.states = [contents(server)]

    def step(self) -> None:
        """One statement of one of the transactions, or its end."""
        chance = self._random
        one = chance.choice(self._connections)
        try:
            if chance.random() < 0.3:
                self._ended(one, commit=chance.random() < 0.8)
                return
            statement = self._statement()
            one.execute("SAVEPOINT s" if chance.random() < 0.2 else "SELECT 1")
            one.execute(statement)
            if statement.startswith("TRUNCATE"):  # until its end nobody can read the table
                self._ended(one, commit=True)
        except psycopg.Error:  # a key twice, or a row that another transaction holds
            one.rollback()

    def _ended(self, one: Any, *, commit: bool) -> None:
        one.commit() if commit else one.rollback()
        now = contents(self._server)
        if now != self.states[-1]:
            self.states.append(now)

    def _statement(self) -> str:
        chance = self._random
        key, other, n = chance.randrange(12), chance.randrange(12), chance.randrange(100)
        doc = chance.choice(["NULL", f"'d{n}'", f"repeat('{n}-', 2000)"])
        return chance.choices([
            f"INSERT INTO parent VALUES ({key}, 'open', {n}.25, {doc})",
            f"INSERT INTO child SELECT {n}, id, {n} FROM parent LIMIT 1",
            f"INSERT INTO bag SELECT {key}, {doc} FROM generate_series(1, {chance.randrange(1, 30)})",
            f"UPDATE parent SET price = price + 1, state = 'done' WHERE id <> {key}",
            f"UPDATE parent SET id = {other} WHERE id = {key}",
            f"UPDATE parent SET doc = {doc} WHERE id < {key}",
            f"UPDATE child SET n = n + 1, id = id + {n} WHERE parent = {key}",
            f"UPDATE bag SET x = x + 1 WHERE x < {key}",
            f"DELETE FROM parent WHERE id = {key}",
            f"DELETE FROM bag WHERE x = {key}",
            chance.choice(["TRUNCATE bag", "TRUNCATE child", "TRUNCATE parent CASCADE"]),
        ], [6, 5, 4, 4, 3, 3, 3, 3, 2, 2, 0.4])[0]  # fmt: skip

    def end(self) -> None:
        """Commit what is open."""
        for one in self._connections:
            self._ended(one, commit=True)


@pytest.mark.parametrize("seed", range(6))
def test_every_poll_shows_a_state_of_the_server(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    rows = chance.choice([10, 50, 100_000])  # about the most of a batch
    death = {"poll": 0.0, "acknowledge": 0.0}
    opened, poll, acknowledge = PostgresReader.__init__, PostgresReader.poll, PostgresReader.acknowledge

    def dying(self: Any, name: str, work: Any, *given: Any) -> Any:
        found = work(self, *given) if name == "poll" else None
        if chance.random() < death[name]:
            self.close()
            raise Killed
        return found if name == "poll" else work(self, *given)

    monkeypatch.setattr(PostgresReader, "__init__", lambda self, opening: opened(self, opening, rows))
    for name, work in (("poll", poll), ("acknowledge", acknowledge)):
        monkeypatch.setattr(PostgresReader, name, lambda self, *given, of=(name, work): dying(self, *of, *given))
    writers = Writers(server, chance, 3)
    for _ in range(30):
        writers.step()
    engine = hj.Engine(tmp_path / "warehouse")
    engine.execute(source(server))
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
    seen = -1
    for _ in range(10):
        for _ in range(chance.randrange(25)):
            writers.step()
        if seen < 0:
            writers.end()  # the slot is made when the transactions before it have ended
        death.update(poll=chance.choice([0, 0.3]), acknowledge=chance.choice([0, 0.3]))
        try:
            engine.run_sources(0)
        except Killed:
            if chance.random() < 0.5:
                engine.close()
                engine = hj.Engine(tmp_path / "warehouse")
        now = contents(server, engine)
        if now != [[], [], []] or seen >= 0:
            assert now in writers.states
            last = len(writers.states) - 1 - writers.states[::-1].index(now)
            assert last >= seen
            seen = writers.states.index(now, max(seen, 0))
    writers.end()
    death.update(poll=0, acknowledge=0)
    engine.run_sources(0)
    assert contents(server, engine) == contents(server)
    assert ordered(map(tuple, map(dict.values, engine.read("v").to_pylist()))) == ordered(
        server.execute(VIEW).fetchall())  # fmt: skip
    engine.close()


def test_renamed_tables_keep_following_theirs(server: Any, tmp_path: Path) -> None:
    server.execute("CREATE TABLE a (id int PRIMARY KEY, x text); CREATE TABLE b (id int PRIMARY KEY, x text); "
                   "INSERT INTO a VALUES (1, 'a'); INSERT INTO b VALUES (1, 'b'); CREATE PUBLICATION q FOR TABLE a, b")
    with hj.Engine(tmp_path / "warehouse") as engine:
        engine.execute(f"CREATE SOURCE s FROM POSTGRES (dsn '{dsn_of(server)}', publication 'q', "
                       "slot 'halfjoin_named') INTO TABLES")
        engine.run_sources(0)
        engine.execute("ALTER TABLE a RENAME TO c; ALTER TABLE b RENAME TO a; ALTER TABLE c RENAME TO b")
        server.execute("UPDATE a SET x = 'of a'")
        engine.run_sources(0)
        engine.execute("ALTER TABLE b RENAME TO d")
        server.execute("INSERT INTO a VALUES (2, 'of a')")
        engine.run_sources(0)
        assert [row["x"] for row in engine.read("d").to_pylist()] == ["of a", "of a"]
        assert [row["x"] for row in engine.read("a").to_pylist()] == ["b"]
