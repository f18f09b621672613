"""BEGIN ISOLATION LEVEL, READ ONLY and SET TRANSACTION in `Engine.execute`, as a server has them."""

from __future__ import annotations

from pathlib import Path

import pytest

import halfjoin as hj
from halfjoin.errors import HalfjoinError

STRICT = ("REPEATABLE READ", "SERIALIZABLE")


def _engine(folder: Path | None = None) -> hj.Engine:
    engine = hj.Engine() if folder is None else hj.Engine(folder / "w")
    engine.execute("CREATE TABLE t (a integer); CREATE TABLE u (a integer); CREATE SEQUENCE s")
    engine.execute("INSERT INTO t VALUES (1)")
    return engine


def _count(engine: hj.Engine) -> object:
    rows = engine.execute("SELECT count(*) AS n FROM t")
    assert rows is not None
    return rows["n"][0].as_py()


def _code(engine: hj.Engine, sql: str) -> str:
    try:
        engine.execute(sql)
    except HalfjoinError as problem:
        return problem.sqlstate
    return ""


@pytest.mark.parametrize("level", STRICT)
def test_statements_of_a_strict_transaction_read_one_time(level: str) -> None:
    engine = _engine()
    engine.execute(f"BEGIN ISOLATION LEVEL {level}")
    assert _count(engine) == 1
    engine.apply({"t": [{"a": 2}]})
    assert _count(engine) == 1
    engine.execute("PREPARE p AS SELECT a FROM t")
    kept = engine.execute("EXECUTE p")
    assert kept is not None and kept.num_rows == 1
    engine.execute("COMMIT")
    assert _count(engine) == 2


@pytest.mark.parametrize("level", STRICT)
def test_a_change_of_what_is_not_read_any_more_fails(level: str) -> None:
    engine = _engine()
    engine.execute(f"BEGIN ISOLATION LEVEL {level}; SELECT a FROM t")
    engine.apply({"t": [{"a": 2}]})
    assert _code(engine, "INSERT INTO u SELECT a FROM t") == "40001"
    engine.execute("ROLLBACK")


def test_read_committed_reads_the_last_batch() -> None:
    engine = _engine()
    for begin in ("BEGIN", "START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE, NOT DEFERRABLE"):
        engine.execute(begin)
        before = _count(engine)
        engine.apply({"t": [{"a": 2}]})
        assert _count(engine) == before + 1  # type: ignore[operator]
        engine.execute("COMMIT")


@pytest.mark.parametrize("begin", ["BEGIN READ ONLY", "BEGIN; SET TRANSACTION READ ONLY",
                                   "START TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY"])  # fmt: skip
@pytest.mark.parametrize("change", [
    "INSERT INTO t VALUES (2)", "UPDATE t SET a = 3", "DELETE FROM t", "TRUNCATE t", "CREATE TABLE x (a integer)",
    "DROP TABLE t", "CREATE VIEW v AS SELECT a FROM t", "SELECT nextval('s')", "SELECT setval('s', 9)",
    "ALTER SEQUENCE s RESTART", "EXECUTE p",
])  # fmt: skip
def test_a_transaction_that_only_reads_changes_nothing(begin: str, change: str) -> None:
    engine = _engine()
    engine.execute("PREPARE p AS INSERT INTO t VALUES (5)")
    engine.execute(begin)
    assert _code(engine, change) == "25006"
    engine.execute("ROLLBACK")
    assert _count(engine) == 1
    number = engine.execute("SELECT nextval('s') AS n")
    assert number is not None and number["n"].to_pylist() == [1]


def test_modes_that_are_none_are_refused() -> None:
    engine = _engine()
    for text in ("BEGIN ISOLATION LEVEL CHAOS", "BEGIN READ", "BEGIN foo", "START TRANSACTION READ ONLY foo"):
        assert _code(engine, text) == "42601", text
    assert _code(engine, "SET TRANSACTION READ ONLY") == "25P01"  # it would say nothing
    assert _code(engine, "BEGIN; SELECT a FROM t; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE") == "25001"


def test_rows_in_files_are_read_while_nothing_has_changed(tmp_path: Path) -> None:
    engine = _engine(tmp_path)
    engine.execute("INSERT INTO t SELECT * FROM generate_series(2, 50000)")
    engine.close()
    with hj.Engine(tmp_path / "w", memory=1) as again:
        again.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert _count(again) == 50000
        again.apply({"u": [{"a": 1}]})
        assert _code(again, "SELECT sum(a) FROM t") in ("", "40001")  # right, or refused
        again.execute("ROLLBACK")


def test_deferred_keys_are_checked_when_the_caller_says_so() -> None:
    engine = _engine()
    engine.execute("CREATE TABLE parent (id integer PRIMARY KEY); CREATE TABLE child (id integer PRIMARY KEY, of "
                   "integer CONSTRAINT has_parent REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)")  # fmt: skip
    engine.execute("BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO child VALUES (1, 7); INSERT INTO parent VALUES "
                   "(7); SET CONSTRAINTS has_parent IMMEDIATE; INSERT INTO child VALUES (2, 8)")  # fmt: skip
    with pytest.raises(hj.InvalidRow, match="has_parent"):
        engine.execute("SET CONSTRAINTS ALL IMMEDIATE")
    engine.execute("ROLLBACK; BEGIN; INSERT INTO child VALUES (1, 7); INSERT INTO parent VALUES (7); COMMIT")
    assert engine.read("child").to_pylist() == [{"id": 1, "of": 7}]
    assert _code(engine, "SET CONSTRAINTS ALL IMMEDIATE") == "25P01"
    assert _code(engine, "BEGIN; SET CONSTRAINTS ALL") == "42601"
