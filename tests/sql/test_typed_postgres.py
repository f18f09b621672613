"""Values of all types as keys, also across types: queries and views have PostgreSQL's rows, however rows come and go.

`HALFJOIN_FUZZ_SQL=n` tries n new queries.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

import halfjoin as hj
from tests.oracle.choice import Choices, Seeded, chance
from tests.oracle.typed import DDL, TYPES, Columns, Typed, literal, shown
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
ROUNDS, VIEWS, QUERIES = 5, 4, 4  # of changes; what is made and asked between two of them
SEEDS = range(FIRST, FIRST + (max(1, int(MORE) // (ROUNDS * (VIEWS + QUERIES))) if MORE else 6))
_DECIMALS = re.compile(r"-?\d+\.\d+")

Bag = Counter[tuple[str | None, ...]]


@pytest.mark.parametrize("seed", SEEDS)
def test_keys_of_any_type(seed: int, postgres: Any) -> None:
    choices, engine, views = Seeded(seed), hj.Engine(), dict[str, tuple[str, Columns]]()
    tables = {name: (("id", "integer"), *((f"{name}{number}", choices.one_of(tuple(TYPES))) for number in range(4)))
              for name in ("a", "b")}  # fmt: skip
    created = [f"CREATE TABLE {name} ({', '.join(f'{column} {type}' for column, type in columns)})"
               for name, columns in tables.items()]  # fmt: skip
    for statement in (*DDL, *created):
        engine.execute(statement)
        postgres.execute(statement)
    grammar = Typed(choices, tables)
    for _ in range(ROUNDS):
        for name, columns in tables.items():
            change = _change(choices, name, columns)
            engine.execute(change)
            postgres.execute(change)
        for name, (sql, columns) in views.items():
            assert _answer(engine, f"SELECT * FROM {name}", columns) == _expected(postgres, sql, columns), sql
        for _ in range(QUERIES):
            sql, columns = grammar.query()
            if (expected := _expected(postgres, sql, columns)) is not None:
                assert _answer(engine, sql, columns) == expected, sql
        for _ in range(VIEWS):
            sql, columns = grammar.query()
            if (expected := _expected(postgres, sql, columns)) is not None:
                name = f"v{len(views)}"
                engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
                views[name] = sql, columns
                assert _answer(engine, f"SELECT * FROM {name}", columns) == expected, sql


def _change(choices: Choices, name: str, columns: Columns) -> str:
    """A statement that changes a table."""
    column, type = choices.one_of(columns[1:])
    if chance(choices, 20):
        return f"UPDATE {name} SET {column} = {literal(choices, type)} WHERE id % 3 = {choices.integer(0, 2)}"
    if chance(choices, 20):
        return f"DELETE FROM {name} WHERE {column} IS NOT DISTINCT FROM {literal(choices, type)} OR id % 4 = 0"
    rows = (", ".join((str(choices.integer(0, 9)), *(literal(choices, kind) for _, kind in columns[1:])))
            for _ in range(choices.integer(2, 6)))  # fmt: skip
    return f"INSERT INTO {name} VALUES {', '.join(f'({row})' for row in rows)}"


def _texts(sql: str, columns: Columns) -> str:
    return f"SELECT {', '.join(f'{shown(name, type)} AS {name}' for name, type in columns)} FROM ({sql}) AS q"


def _expected(postgres: Any, sql: str, columns: Columns) -> Bag | None:
    """PostgreSQL's answer. None if it has none: for a FULL JOIN with a condition that it cannot sort or hash by."""
    from psycopg import errors

    try:
        return Counter(tuple(map(_plain, row)) for row in postgres.execute(_texts(sql, columns)).fetchall())
    except (errors.FeatureNotSupported, errors.UndefinedFunction):
        return None


def _answer(engine: hj.Engine, sql: str, columns: Columns) -> Bag:
    table = engine.query(_texts(sql, columns))
    return Counter(zip(*([_plain(value) for value in column.to_pylist()] for column in table.columns), strict=True))


def _plain(text: str | None) -> str | None:
    """Without the zeros behind the decimals of a number: jsonb has none."""
    return text and _DECIMALS.sub(lambda found: f"{Decimal(found[0]).normalize():f}", text)
