"""Every example of the function table, asked of an installed PostgreSQL: the answer in the table is its answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from halfjoin.sql.functions import TABLE
from tests.support.scalar_sql import same

pytest_plugins = ("tests.support.postgres",)


@pytest.fixture(scope="module")
def utf8(postgres: Any) -> Iterator[Any]:
    """A connection to a database that knows the letters of Unicode."""
    import psycopg

    postgres.execute("CREATE DATABASE letters LC_COLLATE 'C' LC_CTYPE 'C.UTF-8' TEMPLATE template0")
    with psycopg.connect(host="127.0.0.1", port=postgres.info.port, user="postgres", dbname="letters",
                         autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("category", sorted({entry.category for entry in TABLE}))
def test_the_table_has_postgresqls_answers(category: str, utf8: Any) -> None:
    wrong = []
    for entry in TABLE:
        for example in entry.examples if entry.category == category else ():
            answer = _asked(utf8, example.sql)
            failed = [text is not None and text.startswith("ERROR: ") for text in (answer, example.answer)]
            if not (all(failed) or same(answer, example.answer)):
                wrong.append(f"{example.sql}: {example.answer}, but PostgreSQL: {answer}")
    assert not wrong, "\n".join(wrong)


def _asked(connection: Any, sql: str) -> str | None:
    from psycopg import Error

    try:
        found: str | None = connection.execute(f"SELECT ({sql})::text").fetchone()[0]
        return found
    except Error as error:
        return f"ERROR: {error.diag.message_primary}"
