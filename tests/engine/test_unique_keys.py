"""UNIQUE constraints in plans: those that hold at every time identify a row, as a PRIMARY KEY does, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

import halfjoin as hj

DISTINCT = "SELECT DISTINCT k, a FROM t"
SINGLE = "SELECT s.x, (SELECT t.a FROM t WHERE t.k = s.x) AS a FROM s"
JOINED = "SELECT s.x, t.a FROM s JOIN t ON t.k = s.x AND t.a = s.y"


def nodes(engine: hj.Engine) -> int:
    """The nodes below views, each of which keeps rows."""
    return sum(one.kind == "node" for one in engine.stats().collections)


def with_views(table: str, path: Path | None = None, *more: str) -> hj.Engine:
    engine = hj.Engine(path, clock="own") if path else hj.Engine(clock="own")
    engine.execute(f"CREATE TABLE s (x integer, y integer); CREATE TABLE t ({table})")
    for sql in more:
        engine.execute(sql)
    for name, query in (("d", DISTINCT), ("one", SINGLE), ("j", JOINED)):
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return engine


@pytest.mark.parametrize(("table", "more", "used"), [
    ("k integer PRIMARY KEY, a integer", (), True),
    ("k integer NOT NULL UNIQUE, a integer", (), True),
    ("k integer NOT NULL, a integer", ("CREATE UNIQUE INDEX u ON t (k)",), True),
    ("k integer NOT NULL, a integer", ("ALTER TABLE t ADD CONSTRAINT u UNIQUE (k)",), True),
    ("k integer UNIQUE, a integer", (), False),
    ("k integer NOT NULL, a integer, UNIQUE (k, a)", (), False),
    ("k integer NOT NULL, a integer",
     ("SET TIME = 1; INSERT INTO t VALUES (1, 1)", "ALTER TABLE t ADD CONSTRAINT u UNIQUE (k)"), False),
    ("k integer UNIQUE, a integer",
     ("SET TIME = 1; INSERT INTO t VALUES (1, 1)", "ALTER TABLE t ALTER k SET NOT NULL"), False),
])  # fmt: skip
def test_a_key_that_always_held_saves_nodes(table: str, more: tuple[str, ...], used: bool) -> None:
    engine, bare = with_views(table, None, *more), with_views("k integer NOT NULL, a integer")
    assert (nodes(engine) < nodes(bare)) is used
    assert ("existing, unique" in engine.explain("j")) is used


def test_a_past_with_equal_rows_is_read_as_it_was() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE s (x integer, y integer); CREATE TABLE t (k integer NOT NULL, a integer)")
    engine.execute("SET TIME = 1; INSERT INTO t VALUES (1, 5), (1, 5), (2, 6); SET TIME = 2; DELETE FROM t WHERE k = 1")
    engine.execute("ALTER TABLE t ADD UNIQUE (k)")
    engine.execute(f"CREATE MATERIALIZED VIEW d AS {DISTINCT}; CREATE MATERIALIZED VIEW n AS "
                   "SELECT count(DISTINCT k) AS n FROM t")
    assert engine.read("d", as_of=1).num_rows == 2 and engine.read("n", as_of=1).to_pylist() == [{"n": 2}]


def test_views_stay_right_when_the_constraint_goes(tmp_path: Path) -> None:
    engine = with_views("k integer NOT NULL UNIQUE, a integer", tmp_path / "w")
    engine.execute("SET TIME = 1; INSERT INTO t VALUES (1, 5), (2, 6); SET TIME = 2; INSERT INTO s VALUES (2, 6)")
    engine.execute("ALTER TABLE t DROP CONSTRAINT t_k_key; SET TIME = 3; INSERT INTO t VALUES (1, 5), (1, 5)")
    for again in range(2):
        assert sorted(engine.read("d").column("k").to_pylist()) == [1, 2], again
        assert engine.read("one").to_pylist() == [{"x": 2, "a": 6}]
        engine.close()
        engine = hj.Engine(tmp_path / "w")
    engine.execute("SET TIME = 4; INSERT INTO t VALUES (2, 6)")
    with pytest.raises(hj.DataError, match="more than one row"):
        engine.read("one")
    engine.close()


def test_null_drop_takes_the_key_from_plans() -> None:
    engine = with_views("k integer NOT NULL UNIQUE, a integer")
    engine.execute("ALTER TABLE t ALTER k DROP NOT NULL; SET TIME = 1; INSERT INTO t VALUES (NULL, 1), (NULL, 1)")
    assert engine.read("d").num_rows == 1
