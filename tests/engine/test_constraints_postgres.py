"""Random changes of tables with UNIQUE, CHECK, FOREIGN KEY, DEFAULT and GENERATED against PostgreSQL.

After each statement or transaction the tables are the same, and so is the class of an error. Views obey the view law,
also after a restart.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from tests.engine.test_dml_postgres import _all, _here, _in_postgres, _rows
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

STATEMENTS = 40
MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(3, int(MORE or 0) // STATEMENTS))

TABLES = ("p", "c", "d")
DDL = (
    "CREATE TABLE p (k integer PRIMARY KEY, a integer DEFAULT 1 + 1 CHECK (a < 8), b text UNIQUE, "
    "g integer GENERATED ALWAYS AS (k * 10 + a) STORED, CONSTRAINT apart CHECK (k <> a), UNIQUE (a, b))",
    "CREATE TABLE c (id integer, k integer REFERENCES p, b text CONSTRAINT to_b REFERENCES p (b))",
    "CREATE TABLE d (i integer PRIMARY KEY, above integer, FOREIGN KEY (above) REFERENCES d (i))",
)
VIEW = "SELECT p.g, c.id, c.b FROM p LEFT JOIN c ON c.k = p.k"


@pytest.mark.parametrize("seed", SEEDS)
def test_constraints_are_postgresqls(seed: int, postgres: Any, tmp_path: Path) -> None:
    random, engine = Random(seed), hj.Engine(tmp_path / "w", clock="own")
    for ddl in DDL:
        engine.execute(ddl)
        postgres.execute(ddl)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
    outcomes: Counter[str] = Counter()
    for time in range(1, STATEMENTS + 1):
        sql = _statement(random)
        expected, found = _in_postgres(postgres, sql), _here(engine, f"SET TIME = {time}; {sql}")
        assert found == expected, f"seed {seed}: {sql}"
        outcomes[found if isinstance(found, str) else "works"] += 1
        for name in TABLES:
            assert _rows(engine.read(name)) == _all(postgres, f"TABLE {name}"), f"{name}, seed {seed}: {sql}"
        if time % 20 == 0:
            engine.close()
            engine = hj.Engine(tmp_path / "w")
        assert _rows(engine.read("v")) == _all(postgres, VIEW), f"seed {seed}: {sql}"
    engine.close()
    assert outcomes["works"] > 8 and outcomes["23"] > 3, outcomes


def _statement(random: Random) -> str:
    def number() -> str:
        return random.choice([*"0123456", "NULL", "DEFAULT"])

    def text() -> str:
        return random.choice(["'x'", "'y'", "'z'", "NULL"])

    def rows(*makers: Any) -> str:
        return ", ".join(f"({', '.join(one() for one in makers)})" for _ in range(random.randint(1, 2)))

    return random.choice([
        lambda: f"INSERT INTO p (k, a, b) VALUES {rows(number, number, text)}",
        lambda: f"INSERT INTO p (k, b, g) VALUES ({number()}, {text()}, {random.choice(['1', 'DEFAULT', 'DEFAULT'])}) "
                "RETURNING *",
        lambda: f"INSERT INTO p (k, a, b) VALUES {rows(number, number, text)} ON CONFLICT DO NOTHING",
        lambda: f"INSERT INTO p (k, b) VALUES {rows(number, text)} ON CONFLICT (b) DO UPDATE SET a = p.a + 1",
        lambda: f"UPDATE p SET a = {number()} WHERE k < {random.randint(1, 6)} RETURNING k, g",
        lambda: f"UPDATE p SET k = k + 10 WHERE k = {random.randint(0, 6)}",
        lambda: f"UPDATE p SET b = {text()} WHERE k = {random.randint(0, 6)}",
        lambda: f"DELETE FROM p WHERE k = {random.randint(0, 6)}",
        lambda: f"INSERT INTO c VALUES {rows(number, number, text)}",
        lambda: f"INSERT INTO c SELECT 7, k, b FROM p WHERE a > {random.randint(0, 4)}",
        lambda: f"UPDATE c SET k = {number()}, b = DEFAULT WHERE id = {random.randint(0, 7)}",
        lambda: f"DELETE FROM c WHERE {random.choice(['id = 7', 'k = 2', 'b IS NULL'])}",
        lambda: f"INSERT INTO d VALUES {rows(number, number)}",
        lambda: f"DELETE FROM d WHERE i = {number().replace('DEFAULT', '1')} OR above = 2",
        lambda: f"UPDATE d SET above = i WHERE i < {random.randint(1, 5)}",
        lambda: "MERGE INTO p USING c ON p.k = c.id WHEN MATCHED THEN UPDATE SET a = 3 WHEN NOT MATCHED AND c.id > 2 "
                "THEN INSERT (k) VALUES (c.id)",
    ])()  # fmt: skip


def test_a_transaction_may_break_what_it_mends(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        for ddl in DDL:
            engine.execute(ddl)
        engine.execute("INSERT INTO p (k, b) VALUES (1, 'x'); INSERT INTO c VALUES (1, 1, 'x')")
        engine.apply({"p": [{"k": 4, "a": 0}], "c": [{"id": 2, "k": 4}]})  # one batch of both
        with pytest.raises(hj.InvalidRow) as caught:
            engine.apply({"p": hj.deletes([{"k": 4}])})
        assert caught.value.sqlstate == "23503"
        engine.apply({"p": hj.deletes([{"k": 4}]), "c": hj.deletes([{"id": 2, "k": 4}])})
        engine.apply({"p": hj.upserts([{"k": 1, "a": 5}])})
        assert engine.read("p").column("g").to_pylist() == [15]


def test_foreign_keys_hold_at_every_time() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE p (k integer PRIMARY KEY); CREATE TABLE c (k integer REFERENCES p)")
    engine.apply({"p": [{"k": 1}]}, time=1)
    engine.apply({"p": [{"k": 1, "__diff": -1, "__time": 9}]}, time=2, close=False)  # it goes at 9
    with pytest.raises(hj.InvalidRow, match="not in p"):
        engine.apply({"c": [{"k": 1}]}, time=3)
    engine.apply({"c": [{"k": 1, "__time": 3, "__diff": 1}, {"k": 1, "__time": 9, "__diff": -1}]}, close=False)
    with pytest.raises(hj.InvalidRow, match="not in p"):
        engine.apply({"c": [{"k": 2, "__time": 3}], "p": [{"k": 2, "__time": 4}]}, close=False)
    engine.apply({"c": [{"k": 2, "__time": 4}], "p": [{"k": 2, "__time": 4}]})
    with pytest.raises(hj.InvalidRow, match="still referenced from c"):
        engine.apply({"p": [{"k": 2, "__diff": -1}]}, time=12)
    engine.apply({"p": [{"k": 2, "__diff": -1, "__time": 12}, {"k": 2, "__diff": 1, "__time": 12}]})
    assert engine.read("p").to_pylist() == [{"k": 2}]
