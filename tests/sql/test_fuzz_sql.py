"""Random queries and views over random tables against a real PostgreSQL: `HALFJOIN_FUZZ_SQL=n` tries n new ones."""

from __future__ import annotations

import os
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

import halfjoin as hj
from tests.oracle.choice import Seeded
from tests.oracle.queries import Queries
from tests.oracle.schema import TABLES, random_row
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
ROUNDS = 4  # of changes to the tables
QUERIES = 20 if MORE else 6  # between two of them
VIEWS = 2  # made between two of them
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(1, int(MORE or 0) // (ROUNDS * QUERIES)))

Row = tuple[object, ...]


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_are_postgresqls(seed: int, postgres: Any) -> None:
    choices = Seeded(seed)
    engine, contents, views = hj.Engine(), {table.name: Counter[Row]() for table in TABLES}, dict[str, str]()
    for table in TABLES:
        engine.execute(table.ddl)
        postgres.execute(table.ddl)
    tried = refused = 0
    for time in range(1, ROUNDS + 1):
        batch = {}
        for table in TABLES:
            gone = [row for row in contents[table.name].elements() if choices.integer(0, 99) < 30]
            come = [random_row(choices, table) for _ in range(choices.integer(0, 6))]
            contents[table.name].subtract(gone)
            if table.key:  # at most one row of a key
                taken = {row[0] for row in contents[table.name].elements()}
                come = list({row[0]: row for row in come if row[0] not in taken}.values())
            contents[table.name].update(come)
            batch[table.name] = table.arrow([(row, time, -1) for row in gone] + [(row, time, 1) for row in come])
            postgres.execute(f"TRUNCATE {table.name}")
            kept = [[list(value) if isinstance(value, tuple) else value for value in row]
                    for row in contents[table.name].elements()]
            with postgres.cursor() as cursor:
                if kept:
                    cursor.executemany(f"INSERT INTO {table.name} VALUES ({', '.join(['%s'] * len(kept[0]))})", kept)
        engine.apply(batch, time=time)
        for name, sql in views.items():
            assert _answer(engine.read(name)) == _expected(postgres, sql), f"view, seed {seed}: {sql}"
        for _ in range(QUERIES):
            sql = Queries(choices).query()
            expected = _expected(postgres, sql)
            if expected is None:
                continue
            tried += 1
            try:
                found = _answer(engine.query(sql))
            except hj.UnsupportedSQL:
                refused += 1
                continue
            assert found == expected, f"query, seed {seed}: {sql}"
        for _ in range(VIEWS):
            name, sql = f"v{len(views)}", Queries(choices, maintained=True).query()
            engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
            views[name] = sql
            assert _answer(engine.read(name)) == _expected(postgres, sql), f"view, seed {seed}: {sql}"
    assert refused <= tried // 4, f"{refused} of {tried} queries were refused"


def _expected(postgres: Any, sql: str) -> Counter[Row] | None:
    """PostgreSQL's answer. None if it has none, as for a FULL JOIN whose condition is not an equality of both sides."""
    from psycopg import errors

    try:
        return Counter(tuple(map(_shown, row)) for row in postgres.execute(sql).fetchall())
    except (errors.FeatureNotSupported, errors.QueryCanceled):
        return None


def _answer(table: Any) -> Counter[Row]:
    return Counter(zip(*([_shown(value) for value in column.to_pylist()] for column in table.columns), strict=True))


def _shown(value: object) -> object:
    """A row with decimals by value, so that the number of an average's digits does not matter."""
    if isinstance(value, Decimal):
        return round(value, 9).normalize() + 0
    return value
