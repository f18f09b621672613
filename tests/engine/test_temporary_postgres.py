"""Random transactions over temporary and lasting tables, against PostgreSQL: the same tables and errors."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from tests.engine.test_dml_postgres import _all, _rows
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

STATEMENTS = 60
MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(3, int(MORE or 0) // STATEMENTS))
LASTING = ("CREATE TABLE t (k integer PRIMARY KEY, a integer)", "CREATE TABLE u (k integer)")
NAMES = ("t", "u", "s", "w")
MADE = (
    "CREATE TEMP TABLE s (k integer PRIMARY KEY, a integer CHECK (a < 8)) ON COMMIT PRESERVE ROWS",
    "CREATE TEMP TABLE w (k integer) ON COMMIT DELETE ROWS", "CREATE TEMP TABLE w AS SELECT k FROM t",
    "CREATE TEMP TABLE w ON COMMIT DROP AS SELECT a AS k FROM s", "CREATE TEMP TABLE t (k integer, a integer)",
    "CREATE TEMP TABLE u AS SELECT k + 1 AS k FROM public.t", "SELECT k INTO TEMP w FROM t",
    "CREATE TEMP VIEW v AS SELECT s.k FROM s JOIN t ON s.k = t.k", "CREATE TEMP VIEW v AS SELECT count(*) AS k FROM w",
    "DROP TABLE IF EXISTS pg_temp.t", "DROP TABLE w", "DROP TABLE IF EXISTS pg_temp.u", "DROP VIEW v",
    "DROP TABLE s CASCADE",
    "ALTER TABLE s ADD COLUMN IF NOT EXISTS n integer DEFAULT 5", "ALTER TABLE s DROP COLUMN n",
    "TRUNCATE s", "TRUNCATE w, u",
)  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_do_what_postgresql_does(seed: int, postgres: Any) -> None:
    random, engine, outcomes = Random(seed), hj.Engine(), Counter[str]()
    postgres.prepare_threshold = None  # a plan that PostgreSQL keeps does not see a table that hides its own
    for sql in (*LASTING, *MADE[:2]):
        engine.execute(sql)
        postgres.execute(sql)
    for _ in range(STATEMENTS):
        sql = _statement(random, postgres.info.transaction_status)
        found, expected = _here(engine, sql), _there(postgres, sql)
        assert found == expected, f"seed {seed}: {sql}"
        outcomes[f"{sql.split()[0]} {found}"] += 1
        if postgres.info.transaction_status == 3:
            continue
        for name in (*NAMES, "v", "public.t", "public.u"):
            there = postgres.execute("SELECT to_regclass(%s) IS NOT NULL", [name]).fetchone()[0]
            assert _is_there(engine, name) == there, f"seed {seed}: {name} after {sql}"
            if there:
                found = _rows(engine.execute(f"TABLE {name}"))
                assert found == _all(postgres, f"TABLE {name}"), f"seed {seed}: {name} after {sql}"
    engine.close()
    if postgres.info.transaction_status:
        postgres.execute("ROLLBACK")
    postgres.execute("DISCARD TEMP")
    assert outcomes["INSERT works"] > 2, outcomes


def _statement(random: Random, status: int) -> str:
    """A statement that fits the transaction: none is open (0), one is, or one has failed (3)."""
    if status == 3:
        return random.choice(("ROLLBACK", "ROLLBACK TO p", "COMMIT", "INSERT INTO s VALUES (1)"))
    if random.random() < 0.25:
        return random.choice(("COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT p", "ROLLBACK TO p") if status else ("BEGIN",))
    name, other = random.choice(NAMES), random.choice(NAMES)
    number = random.randrange(10)
    return random.choice((
        f"INSERT INTO {name} VALUES ({number})", f"INSERT INTO {name} VALUES ({number})",
        f"INSERT INTO {name} (k) SELECT k + {number} FROM {other}", f"UPDATE {name} SET k = k + 1 WHERE k = {number}",
        f"DELETE FROM {name} WHERE k = {number}", f"DELETE FROM {name} USING {other} AS o WHERE {name}.k = o.k + 1",
        f"INSERT INTO s VALUES ({number}, 1) ON CONFLICT (k) DO UPDATE SET a = s.a + excluded.a",
        f"WITH g AS (DELETE FROM {name} WHERE k < {number} RETURNING k) INSERT INTO u SELECT k FROM g",
        f"MERGE INTO {name} AS x USING (SELECT {number} AS k) AS y ON x.k = y.k WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (k) VALUES (y.k)",
        random.choice(MADE), random.choice(MADE), random.choice(MADE),
    ))  # fmt: skip


def _is_there(engine: hj.Engine, name: str) -> bool:
    found = engine.execute(f"SELECT to_regclass('{name}') IS NOT NULL AS there")
    assert found is not None
    there: bool = found.column("there")[0].as_py()
    return there


def _here(engine: hj.Engine, sql: str) -> str:
    try:
        engine.execute(sql)
    except hj.HalfjoinError as error:
        return error.sqlstate[:2]
    return "works"


def _there(postgres: Any, sql: str) -> str:
    import psycopg

    try:
        postgres.execute(sql)
    except psycopg.Error as error:
        return str(error.sqlstate)[:2]
    return "works"
