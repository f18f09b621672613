"""What clients ask PostgreSQL's catalog: their queries run, and say what a real PostgreSQL says of the same tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.sql.oids import FIRST_OWN

pytest_plugins = ("tests.support.postgres",)

FOLDER = Path(__file__).parent / "catalog"
DDL = (FOLDER / "tables.sql").read_text()
FILES = sorted(FOLDER.glob("*/*.sql"))
OID = re.compile(r"\{oid of ([^}]*)\}")


def queries(file: Path) -> list[str]:
    """The queries of a file, which end in `;` at the end of a line."""
    return [part for part in re.split(r";\s*\n", file.read_text()) if part.strip()]


@pytest.fixture(scope="module")
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute(DDL)
    return engine


@pytest.fixture(scope="module")
def real(postgres_server: Any) -> Iterator[Any]:
    with postgres_server() as connection:
        connection.execute("CREATE ROLE halfjoin SUPERUSER LOGIN CREATEDB CREATEROLE BYPASSRLS")
        connection.execute("ALTER SCHEMA public OWNER TO halfjoin; SET SESSION AUTHORIZATION halfjoin")
        connection.execute(DDL)
        yield connection


def asked(engine: hj.Engine, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query; the numbers in it are the engine's."""
    def number(found: re.Match[str]) -> str:
        return str(engine.query(f"SELECT '{found[1]}'::regclass::oid").column(0)[0])

    table = engine.execute(OID.sub(number, query))
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table is not None else []


@pytest.mark.parametrize("file", FILES, ids=[f"{file.parent.name}-{file.stem}" for file in FILES])
def test_every_query_of_clients_is_answered(engine: hj.Engine, file: Path) -> None:
    for query in queries(file):
        asked(engine, query)


def test_every_query_can_be_asked_of_an_empty_engine() -> None:
    empty = hj.Engine()
    for file in FILES:
        for query in queries(file):
            if not OID.search(query) and "'big'" not in query and "customer" not in query:
                asked(empty, query)


# Queries, by file and place, whose answers differ: PostgreSQL lists what only it has (languages, operators, indexes of
# its catalog), and writes the expressions of views, defaults and checks anew.
DIFFERS = {tuple(line.split()) for line in (FOLDER / "differs.txt").read_text().splitlines()}


@pytest.mark.parametrize("file", FILES, ids=[f"{file.parent.name}-{file.stem}" for file in FILES])
def test_the_answer_is_that_of_postgresql(engine: hj.Engine, real: Any, file: Path) -> None:
    for place, query in enumerate(queries(file), 1):
        if (f"{file.parent.name}/{file.stem}", str(place)) in DIFFERS:
            continue

        def number(found: re.Match[str]) -> str:
            return str(real.execute(f"SELECT '{found[1]}'::regclass::oid").fetchone()[0])

        expected = real.execute(OID.sub(number, query)).fetchall()
        assert plain(asked(engine, query)) == plain(expected), query


def plain(rows: list[tuple[Any, ...]]) -> list[str]:
    """The rows in one order; numbers of the user's things are all the same."""
    return sorted(repr([FIRST_OWN if isinstance(value, int) and value >= FIRST_OWN else
                        value.decode() if isinstance(value, bytes) else value for value in row]) for row in rows)
