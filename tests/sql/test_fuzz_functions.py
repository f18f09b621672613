"""Random expressions of the function table over columns, in queries and in views, against a real PostgreSQL.

`HALFJOIN_FUZZ_SQL=n` tries n new expressions.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pytest

import halfjoin as hj
from tests.oracle.choice import Seeded
from tests.oracle.over_columns import DDL, expression, row
from tests.sql.test_functions_postgres import LIMITS, agree
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
ROWS, LATER, EACH = 12, 3, 60  # rows of the table, those of a second batch, and expressions over them
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(2, int(MORE or 0) // EACH))

Answers = dict[int, str | None]


@pytest.fixture(scope="module")
def utf8(postgres_server: Any) -> Iterator[Any]:
    """A connection to a database that knows the letters of Unicode."""
    with postgres_server("LC_COLLATE 'C' LC_CTYPE 'C.UTF-8' TEMPLATE template0") as connection:
        yield connection


@pytest.mark.parametrize("seed", SEEDS)
def test_expressions_over_columns_are_postgresqls(seed: int, utf8: Any) -> None:
    choices, engine, tried, bad = Seeded(seed), hj.Engine(), 0, list[str]()
    rows = [row(choices, number) for number in range(ROWS)]
    utf8.execute("DROP TABLE IF EXISTS t")
    for run in (utf8.execute, engine.execute):
        run(DDL)
        run(f"INSERT INTO t VALUES {', '.join(rows[:-LATER])}")
    views: list[str] = []
    for _ in range(EACH):
        sql = expression(choices)
        wanted, failing = _of_postgres(utf8, sql, range(ROWS - LATER))
        try:
            found = _of_engine(engine, _query(sql, wanted))
        except hj.HalfjoinError as error:
            if wanted and not any(limit in str(error) for limit in LIMITS):
                bad.append(f"{sql}: {error}, but PostgreSQL: {wanted}")
            continue
        tried += len(wanted)
        bad += _differences(sql, found, wanted)
        bad += [f"{sql}: no error for row {number}" for number in failing if not _fails(engine, sql, number)]
        if not failing and _made(engine, f"v{len(views)}", sql):
            views.append(sql)
    bad += _of_views(engine, utf8, views, range(ROWS - LATER))
    for run in (utf8.execute, engine.execute):
        run(f"INSERT INTO t VALUES {', '.join(rows[-LATER:])}; DELETE FROM t WHERE id < {LATER}")
    bad += _of_views(engine, utf8, views, range(LATER, ROWS))
    assert not bad, f"seed {seed}: {rows}\n" + "\n".join(bad)
    assert tried > ROWS * EACH // 4 and len(views) > EACH // 6


def _query(sql: str, ids: Collection[int]) -> str:
    return f"SELECT id, ({sql})::text AS x FROM t WHERE id IN ({', '.join(map(str, ids)) or -1})"


def _of_postgres(connection: Any, sql: str, ids: Collection[int]) -> tuple[Answers, list[int]]:
    """The answers of the rows that have one, and the others, whose answer is an error."""
    from psycopg import Error

    try:
        return dict(connection.execute(_query(sql, ids)).fetchall()), []
    except Error:
        if len(ids) == 1:
            return {}, list(ids)
    parts = [_of_postgres(connection, sql, [number]) for number in ids]
    return {number: text for part, _ in parts for number, text in part.items()}, [n for _, bad in parts for n in bad]


def _of_engine(engine: hj.Engine, sql: str) -> Answers:
    ids, texts = (column.to_pylist() for column in engine.query(sql).columns)
    return dict(zip(ids, texts, strict=True))


def _fails(engine: hj.Engine, sql: str, number: int) -> bool:
    try:
        engine.query(_query(sql, [number]))
    except hj.HalfjoinError:
        return True
    return False


def _made(engine: hj.Engine, name: str, sql: str) -> bool:
    """Whether the expression can be a view: not if its answer is that of the clock, or it is refused."""
    try:
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT id, ({sql})::text AS x FROM t")
    except hj.UnsupportedSQL:
        return False
    return True


def _of_views(engine: hj.Engine, connection: Any, views: Sequence[str], ids: Collection[int]) -> list[str]:
    """The differences of views from PostgreSQL's answers. A view with a failing row is not readable."""
    bad: list[str] = []
    for number, sql in enumerate(views):
        wanted, failing = _of_postgres(connection, sql, ids)
        try:
            bad += _differences(f"view of {sql}", _of_engine(engine, f"SELECT id, x FROM v{number}"), wanted)
        except hj.HalfjoinError as error:
            if not failing and not any(limit in str(error) for limit in LIMITS):
                bad.append(f"view of {sql}: {error}, but PostgreSQL: {wanted}")
        else:
            bad += [f"view of {sql}: no error for rows {failing}"] if failing else []
    return bad


def _differences(sql: str, found: Answers, wanted: Answers) -> list[str]:
    return [f"{sql}: row {number}: {found.get(number)!r}, but PostgreSQL: {text!r}"
            for number, text in wanted.items() if not agree(found.get(number, ""), text)]  # fmt: skip
