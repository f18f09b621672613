"""ON DELETE and ON UPDATE of foreign keys: statements against PostgreSQL, and the same changes as rows of batches."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.intake import referential
from tests.engine.test_dml_postgres import _all, _here, _in_postgres, _rows
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(6, int(MORE or 0) // 40))
ACTIONS = ("", "CASCADE", "SET NULL", "SET DEFAULT", "NO ACTION", "RESTRICT")
TABLES = ("p", "c", "g", "tree")


def _tables(random: Random) -> list[str]:
    def action() -> str:
        delete, update = random.choice(ACTIONS), random.choice(ACTIONS)
        return (f" ON DELETE {delete}" if delete else "") + (f" ON UPDATE {update}" if update else "")

    def whole() -> str:
        return random.choice(["integer", "integer", "bigint", "smallint"])

    return [
        f"CREATE TABLE p (k {whole()} PRIMARY KEY, u text UNIQUE, n integer)",
        f"CREATE TABLE c (k {whole()} DEFAULT 1 REFERENCES p{action()}, u text REFERENCES p (u){action()}, j {whole()} "
        f"{random.choice(['PRIMARY KEY', 'UNIQUE', 'UNIQUE NOT NULL'])}, s bigint GENERATED ALWAYS AS (k + 1) STORED)",
        f"CREATE TABLE g (j {whole()} DEFAULT 2 REFERENCES c (j){action()}, x integer CHECK (x < 9))",
        f"CREATE TABLE tree (id {whole()} PRIMARY KEY, up {whole()} REFERENCES tree{action()})",
    ]


def _statement(random: Random) -> str:
    a, b, t = random.randint(0, 6), random.randint(0, 6), random.choice(["'a'", "'b'", "'c'", "NULL"])
    return random.choice([
        f"INSERT INTO p VALUES ({a}, {t}, {b})", f"INSERT INTO p VALUES ({a}, NULL, {b})",
        f"INSERT INTO c (k, u, j) VALUES ({a}, {t}, {b})", f"INSERT INTO c (k, j) VALUES ({a}, {b})",
        f"INSERT INTO c (k, j) VALUES ({a}, {b})", f"INSERT INTO g VALUES ({a}, {b})", f"INSERT INTO g VALUES ({a}, 1)",
        f"INSERT INTO tree VALUES ({a}, {random.choice(['NULL', str(b)])})",
        f"INSERT INTO tree VALUES ({a}, {a})", f"DELETE FROM p WHERE k = {a}", f"DELETE FROM p WHERE k >= {a}",
        f"DELETE FROM c WHERE j = {a}", f"DELETE FROM tree WHERE id = {a}", f"DELETE FROM tree WHERE id >= {a}",
        f"UPDATE p SET k = {b} WHERE k = {a}", f"UPDATE p SET k = k + 10 WHERE k = {a}",
        f"UPDATE p SET u = {t} WHERE k = {a}",
        f"UPDATE p SET n = {b}, k = k - 10 WHERE k > 9", f"UPDATE c SET j = {b} WHERE j = {a}",
        f"UPDATE c SET k = {b} WHERE j = {a}", f"UPDATE tree SET id = {b} WHERE id = {a}",
        f"UPDATE tree SET up = {b} WHERE id = {a}", f"DELETE FROM p USING c WHERE c.k = p.k AND c.j = {a}",
        f"INSERT INTO p VALUES ({a}, {t}) ON CONFLICT (k) DO UPDATE SET k = {b}",
        f"MERGE INTO p USING (SELECT {a} AS k) AS s ON s.k = p.k WHEN MATCHED AND p.n > 3 THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET k = {b} WHEN NOT MATCHED THEN INSERT VALUES (s.k, NULL, {b})",
        "TRUNCATE g", "TRUNCATE c", "truncate c cascade",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_statements_change_what_postgresql_changes(seed: int, postgres: Any, tmp_path: Path) -> None:
    random, engine = Random(seed), hj.Engine(tmp_path / "w", clock="own")
    made = _tables(random)
    for ddl in made:
        engine.execute(ddl)
        postgres.execute(ddl)
    view = "SELECT p.k, c.j, g.x FROM p LEFT JOIN c ON c.k = p.k LEFT JOIN g ON g.j = c.j"
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {view}")
    for time in range(1, 50):
        sql = _statement(random)
        expected, found = _in_postgres(postgres, sql), _here(engine, f"SET TIME = {time}; {sql}")
        assert found == expected, (made, sql)
        for name in TABLES:
            assert _rows(engine.read(name)) == _all(postgres, f"TABLE {name}"), (name, made, sql)
        if time % 16 == 0:
            engine.close()
            engine = hj.Engine(tmp_path / "w")
            assert _rows(engine.read("v")) == _all(postgres, view)
    engine.close()


CHAIN = """CREATE TABLE p (k integer PRIMARY KEY); CREATE TABLE tree (id integer PRIMARY KEY, up integer REFERENCES tree
    ON DELETE CASCADE); CREATE TABLE c (k integer REFERENCES p ON DELETE {action}, n integer, UNIQUE (k, n))"""


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine(clock="own")
    engine.execute(CHAIN.format(action="CASCADE"))
    engine.apply({"p": [{"k": 1}, {"k": 2}], "c": [{"k": 1, "n": 1}, {"k": 1, "n": 2}, {"k": 2, "n": 1}],
                  "tree": [{"id": n, "up": n - 1 if n else None} for n in range(50)]}, time=1)  # fmt: skip
    return engine


def test_a_deletion_of_a_batch_takes_rows_along(engine: hj.Engine) -> None:
    applied = engine.apply({"p": hj.deletes([{"k": 1}]), "tree": hj.deletes([{"id": 7}])}, time=2)
    assert applied.upper == 3 and engine.read("c").to_pylist() == [{"k": 2, "n": 1}]
    assert engine.read("tree").num_rows == 7 and engine.read("c", as_of=1).num_rows == 3


def test_a_row_that_a_batch_replaces_keeps_the_rows_that_refer_to_it(engine: hj.Engine) -> None:
    engine.apply({"tree": hj.upserts([{"id": 1, "up": None}])}, time=2)
    assert engine.read("tree").num_rows == 50


def test_rows_go_at_the_time_of_their_key(engine: hj.Engine) -> None:
    engine.apply({"p": [{"k": 1, "__diff": -1, "__time": 7}]}, close=False)
    engine.advance(5)
    assert engine.read("c").num_rows == 3
    engine.advance(9)
    assert engine.read("c").num_rows == 1


def test_rows_that_change_after_their_key_has_gone_are_refused(engine: hj.Engine) -> None:
    engine.apply({"c": [{"k": 1, "n": 1, "__diff": -1, "__time": 9}]}, close=False)
    with pytest.raises(hj.InvalidRow, match="change later"):
        engine.apply({"p": hj.deletes([{"k": 1}])}, time=5)


def test_what_a_batch_takes_away_itself_goes_once(engine: hj.Engine) -> None:
    engine.apply({"p": hj.deletes([{"k": 1}]), "c": hj.deletes([{"k": 1, "n": 1}])}, time=2)
    assert engine.read("c").to_pylist() == [{"k": 2, "n": 1}]


def test_update_of_a_key_does_not_act_as_a_deletion(engine: hj.Engine) -> None:
    with pytest.raises(hj.InvalidRow) as caught:
        engine.execute("SET TIME = 2; UPDATE p SET k = 9 WHERE k = 1")
    assert caught.value.sqlstate == "23503" and engine.read("c").num_rows == 3
    with pytest.raises(hj.InvalidRow):
        engine.execute("SET TIME = 2; BEGIN; UPDATE p SET k = 9 WHERE k = 1; COMMIT")
    assert engine.read("c").num_rows == 3


def test_too_many_rows_are_refused(engine: hj.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(referential, "MOST", 40)
    with pytest.raises(hj.InvalidRow, match="more than 40 rows") as caught:
        engine.execute("SET TIME = 2; DELETE FROM tree WHERE id = 3")
    assert caught.value.sqlstate == "54000" and engine.read("tree").num_rows == 50


def test_a_deferred_key_is_checked_at_commit(postgres: Any) -> None:
    ddl = ("CREATE TABLE p (k integer PRIMARY KEY); CREATE TABLE c (k integer REFERENCES p ON DELETE SET NULL "
           "DEFERRABLE INITIALLY DEFERRED)")
    engine = hj.Engine()
    for one in (postgres, engine):
        one.execute(ddl)
        one.execute("BEGIN; INSERT INTO c VALUES (1); INSERT INTO p VALUES (1); COMMIT")
    assert _rows(engine.read("c")) == _all(postgres, "TABLE c")
    with pytest.raises(hj.InvalidRow):
        engine.execute("BEGIN; INSERT INTO c VALUES (2); COMMIT")
    assert "ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED" in (
        engine.execute("SHOW CREATE TABLE c").column("create_statement")[0].as_py())


@pytest.mark.parametrize("query", [
    "SELECT constraint_name, update_rule, delete_rule FROM information_schema.referential_constraints",
    "SELECT constraint_name, is_deferrable, initially_deferred FROM information_schema.table_constraints "
    "WHERE constraint_type = 'FOREIGN KEY'",
    "SELECT conname, confupdtype, confdeltype, condeferrable, condeferred FROM pg_constraint WHERE contype = 'f'",
    "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'",
])  # fmt: skip
def test_the_catalog_tells_the_actions(query: str, postgres: Any) -> None:
    engine = hj.Engine()
    for ddl in ("CREATE TABLE p (k integer PRIMARY KEY)", "CREATE TABLE c (k integer REFERENCES p ON DELETE CASCADE, "
                "j integer DEFAULT 1 REFERENCES p ON UPDATE SET DEFAULT ON DELETE SET NULL DEFERRABLE INITIALLY "
                "DEFERRED)"):
        engine.execute(ddl)
        postgres.execute(ddl)
    assert _rows(engine.query(query)) == _all(postgres, query)


def test_a_key_of_one_integer_type_refers_to_one_of_another(tmp_path: Path) -> None:
    large = 5_000_000_000
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE p (k bigint PRIMARY KEY, s smallint UNIQUE); INSERT INTO p VALUES (1, 1), (2, 2)")
        engine.execute("CREATE TABLE small (k integer REFERENCES p ON UPDATE CASCADE)")
        engine.execute(f"INSERT INTO p VALUES ({large}, 3)")
        engine.execute("CREATE TABLE wide (k bigint REFERENCES p (s)); CREATE TABLE two (k smallint, s bigint)")
        engine.execute("INSERT INTO small VALUES (1), (NULL), (2); INSERT INTO wide VALUES (1), (2), (NULL)")
    with hj.Engine(tmp_path / "w") as engine:
        for sql in (f"INSERT INTO wide VALUES ({large})", "INSERT INTO wide VALUES (32768), (-32769)",
                    "INSERT INTO small VALUES (3)", "DELETE FROM p WHERE k = 1"):  # fmt: skip
            with pytest.raises(hj.InvalidRow) as caught:
                engine.execute(sql)
            assert caught.value.sqlstate == "23503", sql
        engine.execute("INSERT INTO wide VALUES (3); DELETE FROM wide WHERE k < 3; DELETE FROM small WHERE k = 2")
        engine.execute("DELETE FROM p WHERE k = 2; UPDATE p SET s = 4 WHERE k = 1; UPDATE p SET k = 7 WHERE k = 1")
        assert _rows(engine.read("small")) == {(7,): 1, (None,): 1}
        with pytest.raises(hj.InvalidRow, match="integer out of range") as caught:
            engine.execute(f"UPDATE p SET k = {large + 1} WHERE k = 7")
        assert caught.value.sqlstate == "22003"
        with pytest.raises(hj.UnsupportedSQL, match=r"two\.s is bigint, and p\.k is text"):
            engine.execute("DROP TABLE p CASCADE; CREATE TABLE p (k text PRIMARY KEY)")
            engine.execute("ALTER TABLE two ADD FOREIGN KEY (s) REFERENCES p")
