"""Relations get other names under the views that read them, as in PostgreSQL: by schema, database or neither."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

STATEMENTS = 40
MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(6, int(MORE or 0) // STATEMENTS))
NAMES = ("a", "b", "c", "d", "e", "f")
TEXTS = (
    "SELECT {n}.k, {n}.v + 1 AS v FROM {r}", "SELECT k, v FROM {r} WHERE k > 1", "SELECT x.* FROM {r} AS x",
    "SELECT {n}.* FROM {r} JOIN {o} AS o ON o.k = {n}.k", "TABLE {r}", "SELECT * FROM {r} NATURAL JOIN {r} AS again",
    "WITH {n} AS (SELECT * FROM {r} WHERE v < 9) SELECT {n}.k, max(v) AS v FROM {n} GROUP BY k",
    "WITH RECURSIVE w AS (SELECT k, v FROM {r} UNION SELECT w.k, o.v FROM w JOIN {o} AS o ON o.v = w.k) TABLE w",
    "SELECT k, v FROM {r} WHERE EXISTS (SELECT FROM {o} AS o WHERE o.k = {n}.v) UNION ALL (TABLE {o})",
    "SELECT k, (SELECT count(*) FROM {r} AS i WHERE i.k = {n}.k) AS v FROM {r}",
)  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_views_show_what_they_showed(seed: int, postgres: Any, tmp_path: Path) -> None:
    random, engine = Random(seed), hj.Engine(tmp_path / "w")
    database = postgres.execute("SELECT current_database()").fetchone()[0]
    postgres.execute("DROP SCHEMA IF EXISTS s CASCADE")
    outcomes: Counter[str] = Counter()
    for sql in ("CREATE SCHEMA s", "CREATE TABLE a (k bigint, v bigint)", "CREATE TABLE s.b (k bigint, v bigint)",
                "INSERT INTO a VALUES (1, 2), (2, 2), (3, 9)", "INSERT INTO s.b VALUES (2, 3), (2, 1)"):  # fmt: skip
        engine.execute(sql)
        postgres.execute(sql)
    kinds = {"a": "TABLE", "s.b": "TABLE"}
    for number in range(STATEMENTS):
        sql, after = _statement(random, dict(kinds), number)
        found = _outcome(engine.execute, sql)
        theirs = sql.replace("MATERIALIZED ", "").replace("halfjoin.", f"{database}.")
        assert found == _outcome(postgres.execute, theirs), f"seed {seed}: {sql}"
        outcomes[f"{sql.split()[0]} {found}"] += 1
        if found == "works":
            there = {f"{'' if schema == 'public' else 's.'}{name}" for schema, name in postgres.execute(
                "SELECT schemaname, viewname FROM pg_views WHERE schemaname IN ('public', 's')").fetchall()}
            kinds = {name: kind for name, kind in after.items() if kind == "TABLE" or name in there}
        if number % 9 == 0:
            engine.close()
            engine = hj.Engine(tmp_path / "w")
        for name in kinds:
            rows = postgres.execute(f"SELECT k, v FROM {name}").fetchall()
            ours = engine.query(f"SELECT k, v FROM {name}").to_pylist()
            assert Counter(map(tuple, (row.values() for row in ours))) == Counter(rows), f"{name}, seed {seed}: {sql}"
    engine.close()
    postgres.execute("DROP SCHEMA s CASCADE")
    assert outcomes["ALTER works"] > 2 and outcomes["CREATE works"] > 1, outcomes


def _statement(random: Random, kinds: dict[str, str], number: int) -> tuple[str, dict[str, str]]:
    """A statement, and the kinds of what there is after it."""
    name, other = random.choice([*kinds]), random.choice([*kinds])
    schema, _, own = name.rpartition(".")
    free = random.choice(NAMES)
    new = f"{schema}.{free}" if schema else free
    choice = random.random()
    if choice < 0.5:
        word = "TABLE" if random.random() < 0.4 else kinds[name]
        kinds = {(new if one == name else one): kind for one, kind in kinds.items()}
        return f"ALTER {word} {_written(random, name)} RENAME TO {free}", kinds
    if choice < 0.75:
        kind = random.choice(["VIEW", "MATERIALIZED VIEW", "MATERIALIZED VIEW"])
        text = random.choice(TEXTS).format(n=own, r=_written(random, name), o=_written(random, other))
        return f"CREATE {kind} {new} AS {text}", {**kinds, new: kind}
    if choice < 0.85:
        gone = {one: kind for one, kind in kinds.items() if one != name or kind == "TABLE"}
        missing = "nosuch" if kinds[name] == "TABLE" else name
        return f"DROP {kinds[name]} IF EXISTS {_written(random, missing)} CASCADE", gone
    tables = [one for one, kind in kinds.items() if kind == "TABLE"]
    return f"INSERT INTO {random.choice(tables)} VALUES ({random.randint(1, 4)}, {number % 11})", kinds


def _written(random: Random, name: str) -> str:
    if "." in name:
        return random.choice([name, f'"s"."{name[2:]}"', f"halfjoin.{name}"])
    return random.choice([name, f'"{name}"', f"public.{name}", f'"public" . "{name}"', f"halfjoin.public.{name}"])


def _outcome(execute: Any, sql: str) -> str:
    try:
        execute(sql)
    except hj.HalfjoinError as error:
        return error.sqlstate[:2]
    except Exception as error:
        return str(error.sqlstate)[:2]  # type: ignore[attr-defined]
    return "works"


def test_dbt_puts_a_relation_in_the_place_of_another() -> None:
    """The statements of dbt-postgres for views, tables and materialized views."""
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer); INSERT INTO t VALUES (1), (2)")
    model = '"halfjoin"."public"."model'
    for kind, more in (("view", 0), ("view", 1), ("table", 2), ("table", 3), ("materialized view", 4), ("view", 5)):
        old = engine.execute("SELECT * FROM information_schema.tables WHERE table_name = 'model'").num_rows
        engine.execute(f'drop view if exists {model}__dbt_tmp" cascade')
        engine.execute("BEGIN")
        engine.execute(f'create {kind} {model}__dbt_tmp" as (select k + {more} as k from "halfjoin"."public"."t")')
        if old:
            word = "materialized view" if more == 5 else "table"
            engine.execute(f'alter {word} {model}" rename to "model__dbt_backup"')
        engine.execute(f'alter {kind} {model}__dbt_tmp" rename to "model"')
        engine.execute("COMMIT")
        held = {0: "view", 1: "view", 2: "view", 3: "table", 4: "table", 5: "materialized view"}[more]
        engine.execute(f'drop {held} if exists {model}__dbt_backup" cascade')
        assert engine.read("model").column("k").to_pylist() == [1 + more, 2 + more]
        engine.execute(f'create view reader as select * from {model}"')
    engine.execute("INSERT INTO t VALUES (9)")
    assert engine.query("SELECT max(k) AS k FROM reader").to_pylist() == [{"k": 14}]


def test_an_index_is_renamed(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k integer); CREATE INDEX i ON t (k); INSERT INTO t VALUES (1)")
        engine.execute("ALTER INDEX i RENAME TO j; ALTER INDEX IF EXISTS i RENAME TO h; ALTER TABLE j RENAME TO l")
        for sql, code in (("ALTER INDEX t RENAME TO u", "42809"), ("ALTER VIEW t RENAME TO u", "42809"),
                          ("ALTER TABLE t RENAME TO l", "42P07"), ("ALTER INDEX i RENAME TO u", "42P01")):  # fmt: skip
            with pytest.raises(hj.HalfjoinError) as caught:
                engine.execute(sql)
            assert caught.value.sqlstate == code, sql
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.execute("SHOW INDEXES").to_pylist() == [{"name": "l", "on": "t", "key": "k"}]
        engine.execute("DROP INDEX l")


@pytest.mark.parametrize(("name", "text"), [
    ("i", "CREATE INDEX i\nON t\n(k)"),
    ('"i on ("', 'CREATE INDEX "i on (" ON t (k)'),
    ("i", "CREATE INDEX i /* on ( */ ON t(k)"),
])  # fmt: skip
def test_an_index_is_renamed_however_it_is_written(name: str, text: str) -> None:
    with hj.Engine() as engine:
        engine.execute(f"CREATE TABLE t (k integer); INSERT INTO t VALUES (1); {text}")
        engine.execute(f"ALTER TABLE t RENAME TO u; ALTER INDEX {name} RENAME TO j; ALTER TABLE u RENAME TO v")
        assert engine.execute("SHOW INDEXES").to_pylist() == [{"name": "j", "on": "v", "key": "k"}]
