"""What asyncpg and others prepare, while definitions change; its cursors; and rows as parameters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.serving import Served, serving

asyncpg = pytest.importorskip("asyncpg")


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving() as found:
        yield found


def connected(server: Served, work: Callable[[Any], Awaitable[Any]]) -> Any:
    """What a coroutine of a connection makes."""
    async def run() -> Any:
        client = await asyncpg.connect(host="127.0.0.1", port=server.port, user="halfjoin", database="halfjoin")
        try:
            return await work(client)
        finally:
            await client.close()
    return asyncio.run(run())


def test_a_statement_whose_columns_change_is_told_again_and_again(server: Served) -> None:
    async def work(client: Any) -> None:
        await client.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
        query = await client.prepare("SELECT * FROM t")
        change = await client.prepare("INSERT INTO t VALUES (2) RETURNING *")
        await client.execute("ALTER TABLE t ADD b text")
        for one in (query, query, change, change):
            with pytest.raises(asyncpg.InvalidCachedStatementError):
                await one.fetch()
        assert await client.fetch("SELECT * FROM t") == [(1, None)]  # nothing was inserted
    connected(server, work)


def test_a_cursor_moves_before_it_gives_a_row(server: Served) -> None:
    async def work(client: Any) -> None:
        async with client.transaction():
            cursor = await client.cursor("SELECT n FROM generate_series(1, 9) AS n WHERE n > $1 ORDER BY n", 1)
            assert (await cursor.forward(2), await cursor.fetchrow(), await cursor.fetch(2)) == (2, (4,), [(5,), (6,)])
            assert (await cursor.forward(99), await cursor.fetchrow()) == (3, None)
    connected(server, work)


def test_parameters_may_be_rows(server: Served) -> None:
    async def work(client: Any) -> None:
        await client.execute("CREATE TYPE pair AS (a int, b text); CREATE TYPE nested AS (p pair, n int[])")
        for value in ((1, 'x"\\,)'), (None, None), (0, "")):
            assert await client.fetchval("SELECT $1::pair", value) == value
        assert await client.fetchval("SELECT $1::pair[]", [(1, "x"), None]) == [(1, "x"), None]
        assert await client.fetchval("SELECT $1::nested", ((2, "y"), [1, None])) == ((2, "y"), [1, None])
        with pytest.raises(asyncpg.InvalidBinaryRepresentationError):
            await client.fetchval("SELECT $1::pair", (1,))
    connected(server, work)


def test_a_change_whose_columns_another_client_alters_meanwhile_changes_nothing(server: Served) -> None:
    with server.psycopg() as client:
        client.execute("CREATE TABLE altered (a int)")
        insert = "INSERT INTO altered VALUES (%s) RETURNING *"
        assert client.execute(insert, (1,), prepare=True).fetchall() == [(1,)]
        with ThreadPoolExecutor() as threads:
            def alter(state: Any) -> Any:
                made = threads.submit(client.execute, insert, (2,), prepare=True)
                time.sleep(0.5)  # the statement reads what was there before, and waits for its turn
                server.engine.execute("ALTER TABLE altered ADD b text")
                return made

            made = server.engine._locked(alter, writes=True)
            with pytest.raises(Exception, match="cached plan must not change result type"):
                made.result(60)
        assert client.execute("SELECT * FROM altered").fetchall() == [(1, None)]
