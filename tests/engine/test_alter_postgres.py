"""Random ALTER TABLE statements between changes of rows, against PostgreSQL, with views above and restarts between."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine import engine as facade
from halfjoin.engine.statements import following
from tests.engine.test_dml_postgres import _all, _here, _in_postgres, _rows
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

STATEMENTS = 40
MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
SEEDS = range(FIRST, FIRST + max(3, int(MORE or 0) // STATEMENTS))
DDL = ("CREATE TABLE t (k integer PRIMARY KEY, a integer, b varchar(5))",
       "CREATE TABLE c (k integer REFERENCES t, n numeric(4,1))")  # fmt: skip
VIEWS = {
    "grouped": "SELECT t.k, t.b, count(c.k) AS n FROM t LEFT JOIN c ON c.k = t.k GROUP BY t.k, t.b",
    "united": "SELECT k FROM t UNION SELECT k FROM c",
    "looped": "WITH RECURSIVE r AS (SELECT k FROM t UNION SELECT c.k + 1 FROM c JOIN r ON r.k = c.k) SELECT k FROM r",
    "starred": "SELECT * FROM t", "joined": "SELECT * FROM t NATURAL JOIN c",
    "first": "SELECT b FROM (SELECT * FROM t ORDER BY k LIMIT 1) AS x",
    "without": "SELECT k FROM t WHERE NOT EXISTS (SELECT FROM c WHERE c.k = t.k)",
    "above": "SELECT s.k, c.k AS j FROM starred AS s LEFT JOIN c ON c.k = s.k",
}
ALTERS = (
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS z integer", "ALTER TABLE t ADD z integer DEFAULT 5 + 1",
    "ALTER TABLE t ADD COLUMN g integer GENERATED ALWAYS AS (k * 2) STORED", "ALTER TABLE t DROP COLUMN IF EXISTS z",
    "ALTER TABLE t DROP COLUMN g", "ALTER TABLE c RENAME COLUMN n TO m", "ALTER TABLE c RENAME m TO n",
    "ALTER TABLE t RENAME TO moved", "ALTER TABLE moved RENAME TO t", "ALTER TABLE t ALTER a SET NOT NULL",
    "ALTER TABLE t ALTER COLUMN a DROP NOT NULL", "ALTER TABLE t ALTER a SET DEFAULT 4",
    "ALTER TABLE t ALTER a DROP DEFAULT", "ALTER TABLE t ADD CONSTRAINT small CHECK (a < 6)",
    "ALTER TABLE t DROP CONSTRAINT small", "ALTER TABLE t ADD UNIQUE (a), ALTER a SET DEFAULT 1",
    "ALTER TABLE t DROP CONSTRAINT IF EXISTS t_a_key", "ALTER TABLE c ADD CONSTRAINT one UNIQUE (k)",
    "ALTER TABLE c DROP CONSTRAINT one", "ALTER TABLE c DROP CONSTRAINT c_k_fkey", "ALTER TABLE t ADD k text",
    "ALTER TABLE c ADD FOREIGN KEY (k) REFERENCES t", "ALTER TABLE c ALTER COLUMN n TYPE numeric(8,2)",
    "ALTER TABLE nosuch ADD x integer", "ALTER TABLE IF EXISTS nosuch ADD x integer", "ALTER TABLE t DROP nosuch",
    "ALTER TABLE t ADD n integer NOT NULL, ADD o integer", "ALTER TABLE t ALTER b TYPE varchar(9)",
    "ALTER TABLE t RENAME a TO aa", "ALTER TABLE t RENAME aa TO a", "ALTER TABLE t RENAME k TO kk",
    "ALTER TABLE t RENAME kk TO k", "ALTER TABLE c RENAME k TO kk", "ALTER TABLE c RENAME kk TO k",
    "ALTER TABLE c ADD b text", "ALTER TABLE c DROP b", "ALTER TABLE c ADD z integer DEFAULT 2",
    "ALTER TABLE c DROP z, ALTER k SET NOT NULL", "ALTER TABLE c ALTER k DROP NOT NULL", "ALTER TABLE t DROP o",
    "ALTER TABLE c RENAME TO d", "ALTER TABLE d RENAME TO c", "ALTER TABLE c DROP n", "ALTER TABLE c DROP m",
    "ALTER TABLE t RENAME CONSTRAINT small TO tiny", "ALTER TABLE t RENAME CONSTRAINT tiny TO small",
    "ALTER TABLE t ADD CONSTRAINT small CHECK (a < 3) NOT VALID", "ALTER TABLE t VALIDATE CONSTRAINT small",
    "ALTER TABLE c ADD CONSTRAINT lax FOREIGN KEY (k) REFERENCES t NOT VALID", "ALTER TABLE c VALIDATE CONSTRAINT lax",
    "ALTER TABLE c DROP CONSTRAINT lax", "ALTER TABLE c RENAME CONSTRAINT c_k_fkey TO lax",
    "ALTER TABLE t RENAME CONSTRAINT t_pkey TO pk", "ALTER TABLE t VALIDATE CONSTRAINT pk",
    "ALTER TABLE t ALTER a TYPE bigint", "ALTER TABLE t ALTER a TYPE text",
    "ALTER TABLE t ALTER a TYPE integer USING -a::integer",
    "ALTER TABLE t ALTER b TYPE varchar(1)", "ALTER TABLE t ALTER b TYPE varchar(5) USING 'b' || k || left(b, 1)",
    "ALTER TABLE c ALTER k TYPE bigint", "ALTER TABLE t ALTER k TYPE bigint", "ALTER TABLE t ALTER k TYPE smallint",
    "ALTER TABLE c ALTER k TYPE text", "ALTER TABLE c ALTER k TYPE integer USING k / 2",
    "ALTER TABLE t ALTER a TYPE integer USING nullif(a, 3)", "ALTER TABLE c ALTER n TYPE integer",
)
# What every script begins with: these work, whatever follows.
BEGUN = ("ALTER TABLE c RENAME n TO m", "ALTER TABLE t ADD z integer", "ALTER TABLE t DROP z")


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_tables_change_as_in_postgresql(seed: int, view: bool, postgres: Any, tmp_path: Path) -> None:
    random, engine = Random(seed), hj.Engine(tmp_path / "w", clock="own")
    for ddl in DDL:
        engine.execute(ddl)
        postgres.execute(ddl)
    for name, sql in VIEWS.items() if view else ():
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}; CREATE VIEW plain_{name} AS {sql}")
        postgres.execute(f"CREATE VIEW {name} AS {sql}")
    outcomes: Counter[str] = Counter()
    for time in range(1, STATEMENTS + 1):
        sql = random.choice(ALTERS) if random.random() < 0.5 else _change(random)
        sql = dict(enumerate(BEGUN, 1)).get(time, sql)
        name = "moved" if "moved" in engine.execute("SHOW TABLES").column("name").to_pylist() else "t"
        sql = sql if sql.startswith("ALTER") else sql.replace("{t}", name)
        found = _done(engine, sql) if sql.startswith("ALTER") else _here(engine, f"SET TIME = {time}; {sql}")
        assert found == (_altered(postgres, sql) if sql.startswith("ALTER") else _in_postgres(postgres, sql)), (
            f"seed {seed}: {sql}")
        outcomes[f"{sql.split()[0]} {found if isinstance(found, str) else 'works'}"] += 1
        if time % 10 == 0:
            engine.close()
            engine = hj.Engine(tmp_path / "w")
        name = "moved" if "moved" in engine.execute("SHOW TABLES").column("name").to_pylist() else "t"
        for one in (name, "c" if "c" in engine.execute("SHOW TABLES").column("name").to_pylist() else "d"):
            assert _rows(engine.read(one)) == _all(postgres, f"TABLE {one}"), f"{one}, seed {seed}: {sql}"
        for one in VIEWS if view else ():
            expected = _all(postgres, f"TABLE {one}")
            assert _rows(engine.read(one)) == expected, f"{one}, seed {seed}: {sql}"
            assert _rows(engine.read(f"plain_{one}")) == expected, f"plain {one}, seed {seed}: {sql}"
    engine.close()
    assert outcomes["ALTER works"] > 2, outcomes


def _change(random: Random) -> str:
    k, a = random.randint(0, 7), random.choice([*"01234567", "NULL", "DEFAULT"])
    return random.choice([
        f"INSERT INTO {{t}} (k, a, b) VALUES ({k}, {a}, 'b{k}')", f"INSERT INTO {{t}} (k, b) VALUES ({k}, 'x')",
        f"UPDATE {{t}} SET a = {a} WHERE k < {k} RETURNING *", f"DELETE FROM {{t}} WHERE k = {k}",
        f"INSERT INTO c (k) VALUES ({k})", f"DELETE FROM c WHERE k = {k}",
        f"INSERT INTO c SELECT k, a FROM {{t}} WHERE k = {k}",
    ])  # fmt: skip


def _done(engine: hj.Engine, sql: str) -> str:
    try:
        engine.execute(sql)
    except hj.HalfjoinError as error:
        return error.sqlstate[:2]
    return "works"


def _altered(postgres: Any, sql: str) -> str:
    found = _in_postgres(postgres, sql)
    return found if isinstance(found, str) else "works"


def test_the_past_stays_and_a_feed_goes_on(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute("CREATE TABLE t (k integer, a integer)")
        engine.apply({"t": [{"k": 1, "a": 1}]}, time=1)
        engine.apply({"t": [{"k": 1, "a": 1, "__diff": -1}, {"k": 2, "a": 2}]}, time=2)
        engine.apply({"t": [{"k": 9, "a": 9, "__time": 7}]}, close=False)
        engine.execute("ALTER TABLE t ADD d integer DEFAULT 3, DROP a")
        assert engine.read("t", as_of=1).to_pylist() == [{"k": 1, "d": 3}]
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.read("t").to_pylist() == [{"k": 2, "d": 3}]
        engine.advance(8)
        assert engine.read("t").num_rows == 2


def test_views_are_renamed() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer, l integer); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    engine.execute("CREATE VIEW p AS SELECT k + 1 AS k FROM t; INSERT INTO t VALUES (1)")
    engine.execute("ALTER MATERIALIZED VIEW v RENAME TO w; ALTER VIEW p RENAME TO q")
    engine.execute("INSERT INTO t VALUES (2)")
    assert sorted(engine.read("w").column("k").to_pylist()) == [1, 2] and engine.read("q").num_rows == 2
    with pytest.raises(hj.UnknownName):
        engine.read("v")
    for sql, code in (("ALTER TABLE t DROP k", "2BP01"), ("ALTER TABLE t ALTER k TYPE bigint", "0A000")):
        with pytest.raises(hj.Conflict, match="w") as caught:
            engine.execute(sql)
        assert caught.value.sqlstate == code
    engine.execute("CREATE MATERIALIZED VIEW every AS SELECT * FROM t; CREATE MATERIALIZED VIEW x AS SELECT k FROM w")
    engine.execute("ALTER TABLE t ADD z integer; ALTER TABLE t RENAME k TO j; ALTER TABLE t RENAME TO u")
    engine.execute("ALTER MATERIALIZED VIEW w RENAME TO y; INSERT INTO u VALUES (3, 4)")
    for name in ("every", "x", "y"):
        assert sorted(engine.read(name).column("k").to_pylist()) == [1, 2, 3]
    assert engine.read("u").column_names == ["j", "l", "z"] and engine.read("every").column_names == ["k", "l"]


def test_a_new_column_fills_no_view_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine(tmp_path / "w", clock="own")
    engine.execute("; ".join(DDL))
    for name, sql in VIEWS.items():
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    engine.execute("SET TIME = 1; INSERT INTO t VALUES (1, 2, 'x'), (2, NULL, 'y')")
    engine.execute("SET TIME = 2; INSERT INTO c VALUES (1)")

    def never(*_: object) -> None:
        raise AssertionError("a view is filled anew")

    monkeypatch.setattr(following, "refill", never)
    monkeypatch.setattr(facade, "fill_missing", never)
    for time, sql in enumerate(("ALTER TABLE t ADD z integer DEFAULT 3", "ALTER TABLE c ADD z text, ADD y text, DROP z",
                                "ALTER TABLE t ALTER a DROP NOT NULL", "ALTER TABLE c ALTER k SET NOT NULL"), 3):
        engine.execute(sql)
        kept = {name: engine.read(name).num_rows for name in VIEWS}
        engine.close()
        engine = hj.Engine(tmp_path / "w")
        assert kept == {name: engine.read(name).num_rows for name in VIEWS}
        engine.execute(f"SET TIME = {time}; INSERT INTO t (k, b) VALUES ({time}, 'n')")
    assert engine.read("grouped").num_rows == 6 and engine.read("above").num_rows == 6
    engine.close()


def test_constraints_get_other_names(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE p (k integer PRIMARY KEY, u integer UNIQUE); INSERT INTO p VALUES (1, 1)")
        engine.execute("CREATE TABLE t (k integer REFERENCES p, a integer CHECK (a > 0)); INSERT INTO t VALUES (1, 1)")
        engine.execute("ALTER TABLE p RENAME CONSTRAINT p_pkey TO pk; ALTER TABLE p RENAME CONSTRAINT p_u_key TO uu")
        engine.execute('ALTER TABLE t RENAME CONSTRAINT t_k_fkey TO fk, RENAME CONSTRAINT t_a_check TO "C"')
        for sql, code in (("p RENAME CONSTRAINT p_pkey TO x", "42704"), ("p RENAME CONSTRAINT pk TO uu", "42710"),
                          ("p RENAME CONSTRAINT pk", "42601"), ("nosuch RENAME CONSTRAINT pk TO x", "42P01")):
            with pytest.raises(hj.HalfjoinError) as caught:
                engine.execute(f"ALTER TABLE {sql}")
            assert caught.value.sqlstate == code, sql
        engine.execute("ALTER TABLE IF EXISTS nosuch RENAME CONSTRAINT pk TO x")
    with hj.Engine(tmp_path / "w") as engine:
        for sql, name in (("p VALUES (1, 2)", "pk"), ("p VALUES (2, 1)", "uu"), ("t VALUES (3, 1)", "fk"),
                          ("t VALUES (1, 0)", "C")):  # fmt: skip
            with pytest.raises(hj.InvalidRow) as broken:
                engine.execute(f"INSERT INTO {sql}")
            assert broken.value.constraint == name
        engine.execute("INSERT INTO p VALUES (1, 1) ON CONFLICT ON CONSTRAINT uu DO NOTHING")
        engine.execute('ALTER TABLE t DROP CONSTRAINT "C", DROP CONSTRAINT fk; INSERT INTO t VALUES (3, 0)')


def test_what_is_not_valid_is_checked_of_new_rows(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE p (k integer PRIMARY KEY); CREATE TABLE t (k integer, a integer)")
        engine.execute("INSERT INTO t VALUES (1, 1); ALTER TABLE t ADD CHECK (a > 5) NOT VALID")
        engine.execute("ALTER TABLE t ADD CONSTRAINT fk FOREIGN KEY (k) REFERENCES p NOT VALID, ADD z integer")
        with pytest.raises(hj.UnsupportedSQL, match="UNIQUE constraints cannot be marked NOT VALID"):
            engine.execute("ALTER TABLE t ADD UNIQUE (a) NOT VALID")
    with hj.Engine(tmp_path / "w") as engine:
        texts = engine.query("SELECT convalidated AS v, pg_get_constraintdef(oid) AS d FROM pg_constraint "
                             "WHERE conrelid = 't'::regclass ORDER BY conname")  # fmt: skip
        assert [(one["v"], one["d"]) for one in texts.to_pylist()] == [
            (False, "FOREIGN KEY (k) REFERENCES p(k) NOT VALID"), (False, "CHECK ((a > 5)) NOT VALID")]
        for sql, name in (("INSERT INTO t VALUES (1, 9)", "fk"), ("INSERT INTO t VALUES (NULL, 5)", "t_a_check"),
                          ("UPDATE t SET z = 1", "t_a_check"), ("ALTER TABLE t VALIDATE CONSTRAINT fk", "fk"),
                          ("ALTER TABLE t VALIDATE CONSTRAINT t_a_check", "t_a_check")):  # fmt: skip
            with pytest.raises(hj.InvalidRow) as broken:
                engine.execute(sql)
            assert broken.value.constraint == name, sql
        engine.execute("UPDATE t SET a = 6; ALTER TABLE t VALIDATE CONSTRAINT t_a_check")  # its key stays as it is
        engine.execute("INSERT INTO p VALUES (1); ALTER TABLE t VALIDATE CONSTRAINT fk, VALIDATE CONSTRAINT fk")
        with pytest.raises(hj.InvalidRow):
            engine.execute("DELETE FROM p")
        assert engine.query("SELECT bool_and(convalidated) AS v FROM pg_constraint").to_pylist() == [{"v": True}]
        for name, code in (("p_pkey", "42809"), ("nosuch", "42704")):
            with pytest.raises(hj.HalfjoinError) as caught:
                engine.execute(f"ALTER TABLE p VALIDATE CONSTRAINT {name}")
            assert caught.value.sqlstate == code
