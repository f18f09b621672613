"""Levels of isolation: what the statements of one transaction read while other connections change the tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import halfjoin as hj
from tests.support.serving import Raw, Served, fields, serving

STRICT = ("REPEATABLE READ", "SERIALIZABLE")


@pytest.fixture
def pair() -> Iterator[tuple[Raw, Raw]]:
    """Two connections to a warehouse with a table, an empty one, and a view."""
    with serving() as served:
        yield _pair(served)


def _pair(served: Served) -> tuple[Raw, Raw]:
    one, other = Raw(served.port), Raw(served.port)
    one.query("CREATE TABLE t (a integer PRIMARY KEY); CREATE TABLE u (a integer); INSERT INTO t VALUES (1), (2)")
    one.query("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS s FROM t")
    return one, other


def _rows(raw: Raw, sql: str) -> list[bytes]:
    return [body[6:] for letter, body in raw.query(sql) if letter == "D"]


def _code(raw: Raw, sql: str) -> str:
    """The SQLSTATE of a statement's error; nothing if it works."""
    return next((fields(body)["C"] for letter, body in raw.query(sql) if letter == "E"), "")


@pytest.mark.parametrize("level", STRICT)
def test_all_reads_of_a_strict_transaction_are_as_of_one_time(pair: tuple[Raw, Raw], level: str) -> None:
    one, other = pair
    one.query(f"BEGIN ISOLATION LEVEL {level} READ ONLY")
    assert _rows(one, "SELECT count(*) FROM t") == [b"2"]  # the first statement fixes the time
    other.query("INSERT INTO t VALUES (3)")
    other.query("ALTER TABLE t ADD COLUMN b text; DROP TABLE u")
    other.query("UPDATE t SET a = a + 100")
    assert _rows(one, "SELECT count(*) FROM t") == [b"2"]
    assert _rows(one, "SELECT max(a) FROM t") == [b"2"]  # a query that the snapshot has not answered before
    assert _rows(one, "SELECT n FROM v") == [b"2"]
    assert _rows(one, "SELECT count(*) FROM u") == [b"0"]
    assert [body for letter, body in one.query("COPY t TO STDOUT") if letter == "d"] == [b"1\n", b"2\n"]
    one.query("PREPARE p AS SELECT sum(a) FROM t")
    assert _rows(one, "EXECUTE p") == [b"3"]
    one.query("COMMIT")
    assert _rows(one, "SELECT sum(a) FROM t") == [b"306"]


def test_read_committed_reads_what_the_last_batch_left(pair: tuple[Raw, Raw]) -> None:
    one, other = pair
    one.query("BEGIN")
    assert _rows(one, "SELECT count(*) FROM t") == [b"2"]
    other.query("INSERT INTO t VALUES (3)")
    assert _rows(one, "SELECT count(*) FROM t") == [b"3"]
    assert _code(one, "UPDATE t SET a = a + 100; COMMIT") == ""


@pytest.mark.parametrize(("own", "theirs"), [
    *product(["UPDATE t SET a = a + 10 WHERE a = 1", "DELETE FROM t WHERE a = 1"],
             ["UPDATE t SET a = a + 20 WHERE a = 1", "DELETE FROM t WHERE a = 1", "INSERT INTO t VALUES (5)"]),
    ("INSERT INTO t VALUES (5)", "INSERT INTO t VALUES (5)"), ("INSERT INTO t VALUES (5)", "UPDATE t SET a = a + 4"),
    ("INSERT INTO t VALUES (5) ON CONFLICT DO NOTHING", "INSERT INTO t VALUES (4), (5)"),
    ("INSERT INTO t VALUES (5); SELECT a FROM t FOR UPDATE", "INSERT INTO t VALUES (6)"),
    ("CREATE TABLE w (a integer); INSERT INTO t VALUES (5)", "INSERT INTO t VALUES (6)"),
])  # fmt: skip
def test_own_changes_of_what_another_batch_has_changed_end_the_transaction(
    pair: tuple[Raw, Raw], own: str, theirs: str
) -> None:
    """They do not fit what is there then: a row may be deleted twice. COMMIT would refuse them."""
    one, other = pair
    for statement in ("SELECT * FROM t", "UPDATE t SET a = a + 50", "INSERT INTO t VALUES (1)", "DELETE FROM t",
                      "SELECT * FROM v", "COPY t TO STDOUT", "COMMIT"):  # fmt: skip
        one.query("DELETE FROM t; INSERT INTO t VALUES (1), (2)")
        one.query("BEGIN")
        assert _code(one, own) == _code(other, theirs) == ""
        assert _code(one, statement) == "40001", statement
        one.query("ROLLBACK")


def test_transactions_that_add_rows_to_one_table_go_on_beside_each_other(pair: tuple[Raw, Raw]) -> None:
    one, other = pair
    for raw, key in ((one, 5), (other, 6)):
        assert _code(raw, f"BEGIN; INSERT INTO t VALUES ({key}); INSERT INTO u VALUES (0)") == ""
    one.query("INSERT INTO t VALUES (7); UPDATE t SET a = 8 WHERE a = 7")  # its own row
    assert _rows(other, "SELECT count(*) FROM t") == [b"3"] and _code(other, "COMMIT") == ""
    assert _rows(one, "SELECT array_agg(a ORDER BY a) FROM t") == [b"{1,2,5,6,8}"]
    assert _rows(one, "SELECT n FROM v") == [b"5"]
    assert _code(other, "DELETE FROM t WHERE a = 1; UPDATE t SET a = 9 WHERE a = 6") == ""
    assert _rows(one, "SELECT array_agg(a ORDER BY a) FROM t") == [b"{2,5,8,9}"]
    assert _code(one, "COMMIT") == ""
    assert _rows(other, "SELECT n, s FROM v") and _rows(other, "SELECT n FROM v") == [b"4"]
    assert _rows(other, "SELECT count(*) FROM u") == [b"2"]


@pytest.mark.parametrize("theirs", [
    "ALTER TABLE t ADD COLUMN b text", "ALTER TABLE t ADD COLUMN b text; INSERT INTO t VALUES (6)",
    "ALTER TABLE t RENAME a TO b", "ALTER TABLE t RENAME TO w", "DROP TABLE t CASCADE; CREATE TABLE t (a text)",
    "ALTER TABLE t ALTER a TYPE bigint"])  # fmt: skip
@pytest.mark.parametrize("statement", ["SELECT * FROM t", "INSERT INTO t VALUES (9)", "COMMIT"])
def test_rows_for_a_table_that_others_have_altered_end_the_transaction(
    pair: tuple[Raw, Raw], theirs: str, statement: str
) -> None:
    one, other = pair
    assert _code(one, "BEGIN; INSERT INTO t VALUES (5)") == _code(other, f"DROP MATERIALIZED VIEW v; {theirs}") == ""
    assert _code(one, statement) == "40001"
    one.query("ROLLBACK")
    assert _rows(other, f"SELECT count(*) FROM {'w' if 'TO w' in theirs else 't'}")[0] in (b"0", b"2", b"3")


@pytest.mark.parametrize("read", ["SELECT a FROM t FOR UPDATE", "SELECT t.a FROM t JOIN u ON true FOR SHARE OF t",
                                  "SELECT * FROM (SELECT a FROM t FOR UPDATE) q"])  # fmt: skip
def test_what_was_read_for_update_is_not_written_over_a_change_by_others(pair: tuple[Raw, Raw], read: str) -> None:
    one, other = pair
    for _ in range(2):  # the second time it is a text that is known
        one.query("DELETE FROM t; DELETE FROM u; INSERT INTO t VALUES (1), (2); INSERT INTO u VALUES (0)")
        one.query("BEGIN")
        assert _rows(one, read)
        assert _code(other, "UPDATE t SET a = 10 WHERE a = 1") == ""
        assert _code(one, "INSERT INTO u VALUES (5)") == "" and _code(one, "COMMIT") == "40001"
        one.query("BEGIN")
        assert _rows(one, read)
        assert _code(other, "UPDATE t SET a = 11 WHERE a = 10") == ""
        assert _code(one, "SELECT 1") == _code(one, "COMMIT") == ""  # it has changed nothing
        one.query("BEGIN")
        assert _rows(one, read)
        assert _code(one, "UPDATE t SET a = a + 1") == _code(one, "COMMIT") == ""


def test_a_transaction_reads_on_beside_changes_of_other_tables(pair: tuple[Raw, Raw]) -> None:
    one, other = pair
    one.query("BEGIN; INSERT INTO u VALUES (1)")
    for n in range(3, 6):
        other.query(f"INSERT INTO t VALUES ({n})")
        assert _rows(one, "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM u)")
    assert _code(one, "COMMIT") == ""


@pytest.mark.parametrize("level", STRICT)
@pytest.mark.parametrize("change", [
    "UPDATE t SET a = a + 1", "INSERT INTO u SELECT a FROM t", "CREATE TABLE w AS SELECT * FROM t", "DELETE FROM t",
    "WITH gone AS (DELETE FROM t RETURNING a) SELECT * FROM gone", "EXECUTE p"])  # fmt: skip
def test_a_change_of_what_another_batch_has_changed_is_refused(pair: tuple[Raw, Raw], level: str, change: str) -> None:
    one, other = pair
    one.query("PREPARE p AS INSERT INTO u SELECT a FROM t")
    one.query(f"BEGIN ISOLATION LEVEL {level}")
    assert _rows(one, "SELECT count(*) FROM t") == [b"2"]
    other.query("INSERT INTO t VALUES (3)")
    assert _code(one, "SAVEPOINT s") == _code(one, "EXPLAIN SELECT a FROM t") == ""
    assert _code(one, change) == "40001"
    assert _code(one, "SELECT 1") == "25P02"
    one.query("ROLLBACK")
    assert _rows(one, "SELECT count(*) FROM t") == [b"3"]
    one.query(f"BEGIN ISOLATION LEVEL {level}")
    assert _code(one, change) == _code(one, "COMMIT") == ""  # again, alone


def test_own_changes_are_read_beside_the_snapshot(pair: tuple[Raw, Raw]) -> None:
    one, other = pair
    one.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
    one.query("INSERT INTO u VALUES (7)")
    other.query("INSERT INTO t VALUES (3)")
    assert _rows(one, "SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM u)") == [b"3"]
    assert _code(one, "COMMIT") == ""  # nobody else has changed u
    assert _rows(one, "SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM u)") == [b"4"]


def test_of_two_serializable_transactions_that_read_each_other_one_ends(pair: tuple[Raw, Raw]) -> None:
    for raw in pair:
        raw.query("BEGIN ISOLATION LEVEL SERIALIZABLE")
        assert _rows(raw, "SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM u)") == [b"2"]
    one, other = pair
    assert _code(one, "INSERT INTO t VALUES (10)") == _code(other, "INSERT INTO u VALUES (10)") == ""
    assert _code(one, "COMMIT") == ""
    assert _code(other, "COMMIT") == "40001"
    assert _rows(one, "SELECT count(*) FROM u") == [b"0"]


def test_a_level_is_set_before_the_first_query_and_shown(pair: tuple[Raw, Raw]) -> None:
    one, other = pair
    one.query("BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    assert _rows(one, "SHOW transaction_isolation") == [b"repeatable read"]
    one.query("SELECT * FROM t")
    assert _code(one, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE") == "25001"
    one.query("ROLLBACK")
    assert _rows(one, "SHOW transaction_isolation") == [b"read committed"]
    one.query("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    assert _rows(one, "SHOW transaction_isolation") == [b"serializable"]
    one.query("BEGIN")
    one.query("SELECT * FROM t")
    other.query("INSERT INTO t VALUES (3)")
    assert _rows(one, "SELECT count(*) FROM t") == [b"2"]
    one.query("COMMIT; BEGIN ISOLATION LEVEL READ COMMITTED")
    assert _rows(one, "SHOW transaction_isolation") == [b"read committed"]
    assert _code(one, "SET transaction_isolation = 'quite strict'") == "22023"
    one.query("ROLLBACK; SET default_transaction_isolation TO 'REPEATABLE READ'")
    assert _rows(one, "SHOW transaction_isolation") == [b"repeatable read"]
    assert [letter for letter, _ in one.query("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")] == ["N", "C", "Z"]


def test_rows_in_files_are_read_as_of_one_time_or_not_at_all(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as made:
        made.execute("CREATE TABLE t (a integer PRIMARY KEY); CREATE TABLE u (a integer)")
        made.execute("INSERT INTO t VALUES (1), (2)")
        made.flush()
    with serving(hj.Engine(tmp_path / "w")) as served:
        one, other = Raw(served.port), Raw(served.port)
        one.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
        one.query("SELECT count(*) FROM u")
        other.query("INSERT INTO t VALUES (3)")
        found = one.query("SELECT count(*) FROM t")
        assert [body[6:] for letter, body in found if letter == "D"] == [b"2"] or fields(found[0][1])["C"] == "40001"


def test_execute_of_a_change_is_refused_in_a_read_only_transaction(pair: tuple[Raw, Raw]) -> None:
    one, _ = pair
    one.query("PREPARE p AS INSERT INTO u VALUES (1); PREPARE q AS SELECT 1")
    one.query("PREPARE r AS WITH gone AS (DELETE FROM t RETURNING a) SELECT * FROM gone")
    for name, code in (("q", ""), ("p", "25006"), ("r", "25006")):
        one.query("BEGIN READ ONLY")
        assert _code(one, f"EXECUTE {name}") == code
        one.query("ROLLBACK")
    assert _code(one, "EXECUTE p") == ""


@pytest.mark.parametrize("statement", [
    "COPY (SELECT * FROM t) TO STDOUT", "COPY t TO STDOUT", "COPY (SELECT a AS \"into\" FROM t) TO STDOUT (FORMAT csv)",
    "WITH x AS (SELECT 'a' AS delete) SELECT * FROM x", "SELECT 'INTO' AS \"INTO\" FROM t", "EXPLAIN DELETE FROM t",
    "SELECT a AS into FROM t",
])  # fmt: skip
def test_what_only_reads_goes_on_in_a_read_only_transaction(pair: tuple[Raw, Raw], statement: str) -> None:
    one, _ = pair
    one.query("BEGIN READ ONLY")
    assert _code(one, statement) == ""


@pytest.mark.parametrize(("statement", "change"), [
    ("SELECT a INTO v FROM t", "SELECT INTO"), ("WITH x AS (SELECT * FROM t) SELECT * INTO v FROM x", "SELECT INTO"),
    ("WITH x AS (SELECT 1) DELETE FROM t", "DELETE"),
    ("WITH x AS (INSERT INTO u VALUES (1) RETURNING 1) TABLE x", "INSERT"),
    ("WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 3) CYCLE x SET c USING p DELETE FROM t",
     "DELETE"), ("WITH x AS (SELECT 1) SEARCH DEPTH FIRST BY a SET b UPDATE t SET a = 1", "UPDATE"),
    ("COPY t FROM STDIN", "COPY FROM"), ("COPY public.t (a) FROM STDIN", "COPY FROM"),
    ("CREATE TABLE v (a int)", "CREATE TABLE"), ("COMMENT ON TABLE t IS 'x'", "COMMENT"),
])  # fmt: skip
def test_each_change_is_refused_in_a_read_only_transaction(pair: tuple[Raw, Raw], statement: str, change: str) -> None:
    one, _ = pair
    one.query("BEGIN READ ONLY")
    said = fields(dict(one.query(statement))["E"])
    assert (said["C"], said["M"]) == ("25006", f"cannot execute {change} in a read-only transaction")


def test_what_only_reads_takes_no_number(pair: tuple[Raw, Raw]) -> None:
    one, _ = pair
    one.query("CREATE SEQUENCE s")
    for begin in ("BEGIN READ ONLY", "BEGIN; SET TRANSACTION READ ONLY", "SET default_transaction_read_only = on"):
        for call in ("nextval('s')", "setval('s', 7)"):
            one.query(begin)
            assert _code(one, f"SELECT {call}") == "25006"
            one.query("ROLLBACK")
    assert _rows(one, "SHOW transaction_read_only") == _rows(one, "SELECT current_setting('transaction_read_only')")
    one.query("BEGIN READ WRITE")
    assert _rows(one, "SELECT nextval('s')") == [b"1"]
    one.query("COMMIT; RESET default_transaction_read_only")
    assert _rows(one, "SELECT nextval('s')") == [b"2"]


def test_modes_of_one_transaction_end_with_it(pair: tuple[Raw, Raw]) -> None:
    """`SET transaction_read_only` is for one transaction; outside, for itself. The last of several modes counts."""
    one, _ = pair
    change = "INSERT INTO u VALUES (1)"
    one.query("SET transaction_read_only = on")
    assert _code(one, change) == ""
    one.query("BEGIN; SET transaction_read_only = on")
    assert _code(one, change) == "25006"
    one.query("ROLLBACK; BEGIN; SET transaction_read_only = on; COMMIT")
    assert _code(one, change) == ""
    # Statements of one text are one transaction.
    assert _code(one, f"SET transaction_read_only = on; {change}") == "25006"
    for begin, code in (("BEGIN READ ONLY, READ WRITE", ""), ("BEGIN; BEGIN READ ONLY", "25006"),
                        ("BEGIN READ ONLY; SET TRANSACTION READ ONLY, READ WRITE", "")):  # fmt: skip
        one.query(begin)
        assert _code(one, change) == code
        one.query("ROLLBACK")
    one.query("BEGIN ISOLATION LEVEL SERIALIZABLE, ISOLATION LEVEL READ COMMITTED")
    assert _rows(one, "SHOW transaction_isolation") == [b"read committed"]
