"""BEGIN; ...; COMMIT is one batch: all or nothing, at one time. Each statement reads the changes of those before it."""

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

TABLES = "CREATE TABLE t (k integer PRIMARY KEY, a integer NOT NULL); CREATE TABLE u (k integer, b text)"


@pytest.fixture(params=["memory", "warehouse"])
def engine(request, tmp_path):
    with hj.Engine(None if request.param == "memory" else tmp_path / "w") as engine:
        engine.execute(TABLES)
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT t.k, t.a, u.b FROM t JOIN u ON t.k = u.k")
        engine.execute("SET TIME = 5; INSERT INTO t VALUES (1, 10), (2, 20); SET TIME = 6")
        yield engine


def contents(engine, name="t"):
    return sorted(tuple(row.values()) for row in engine.read(name).to_pylist())


STATEMENTS = """
INSERT INTO t VALUES (3, 30), (4, 40);
UPDATE t SET a = a + 1 WHERE k >= 2;
INSERT INTO u SELECT k, 'from t' FROM t WHERE a > 30;
DELETE FROM t WHERE a = 41;
UPDATE t SET k = k + 10 WHERE k = 1;
INSERT INTO t SELECT k + 100, a FROM t WHERE k = 11;
INSERT INTO t VALUES (4, 44)
"""


def test_statements_read_what_those_before_them_did(engine):
    engine.execute(f"BEGIN; {STATEMENTS}; COMMIT")
    assert contents(engine) == [(2, 21), (3, 31), (4, 44), (11, 10), (111, 10)]
    assert contents(engine, "u") == [(3, "from t"), (4, "from t")]
    assert contents(engine, "v") == [(3, 31, "from t"), (4, 44, "from t")]
    assert engine.stats().upper == 7  # one batch
    assert engine.read("v", as_of=5).num_rows == 0


def test_it_is_what_postgresql_makes_of_it(engine, postgres):
    postgres.execute(TABLES)
    postgres.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    postgres.execute(f"BEGIN; {STATEMENTS}; COMMIT")
    engine.execute(f"BEGIN; {STATEMENTS}; COMMIT")
    for name in ("t", "u"):
        assert contents(engine, name) == sorted(postgres.execute(f"SELECT * FROM {name}").fetchall())


@pytest.mark.parametrize("last", [
    "ROLLBACK", "INSERT INTO t VALUES (2, 0); COMMIT", "INSERT INTO t (k) VALUES (9); COMMIT",
    "SELECT 1 / (k - k) FROM t; COMMIT",
])  # fmt: skip
def test_all_or_nothing(engine, last):
    text = f"BEGIN; INSERT INTO u VALUES (1, 'x'); UPDATE t SET a = 0; {last}"
    if last == "ROLLBACK":
        engine.execute(text)
    else:
        with pytest.raises(hj.HalfjoinError):
            engine.execute(text)
    assert contents(engine) == [(1, 10), (2, 20)] and contents(engine, "u") == []
    assert engine.stats().upper == 6
    engine.execute("BEGIN; INSERT INTO u VALUES (1, 'x'); COMMIT")
    assert contents(engine, "v") == [(1, 10, "x")]


def test_queries_inside_see_what_was_changed(engine):
    found = engine.execute("BEGIN; DELETE FROM t WHERE k = 1; SELECT count(*) AS n FROM t; ROLLBACK")
    assert found is None
    engine.execute("BEGIN; INSERT INTO u VALUES (1, 'x'), (2, 'y'); DELETE FROM t WHERE k = 1; "
                   "INSERT INTO u SELECT k + 10, b FROM v; COMMIT")
    assert contents(engine) == [(2, 20)] and contents(engine, "u") == [(1, "x"), (2, "y"), (12, "y")]


def test_statements_see_each_other_in_a_new_warehouse():
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (k int PRIMARY KEY, a int); CREATE TABLE u (k int, a int)")
        engine.execute("SET TIME = 0; BEGIN; INSERT INTO t VALUES (1, 2); UPDATE t SET a = 3; INSERT INTO u TABLE t; "
                       "DELETE FROM t WHERE k = 1; INSERT INTO t VALUES (1, 5); COMMIT")  # fmt: skip
        assert contents(engine) == [(1, 5)] and contents(engine, "u") == [(1, 3)]


def test_a_transaction_at_an_open_time_inserts_but_passes_over_no_rows_of_that_time():
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (k int PRIMARY KEY, a int); CREATE TABLE u (k int, a int)")
        engine.apply({"t": [{"k": 9, "a": 9}]}, time=0, close=False)
        with pytest.raises(hj.InvalidTime, match="t has changes at times that are still open, up to 0"):
            engine.execute("SET TIME = 0; BEGIN; INSERT INTO t VALUES (1, 2); UPDATE t SET a = 3; COMMIT")
        engine.execute("SET TIME = 0; BEGIN; INSERT INTO t VALUES (1, 2); INSERT INTO u TABLE t; COMMIT")
        assert contents(engine) == [(1, 2), (9, 9)] and contents(engine, "u") == [(1, 2)]


def test_rows_are_checked_at_the_time_of_the_commit(engine):
    engine.apply({"t": [{"k": 1, "a": 10, "__diff": -1, "__time": 8}]}, close=False)  # it goes at 8
    engine.execute("SET TIME = 9; BEGIN; INSERT INTO t VALUES (1, 11); INSERT INTO u VALUES (1, 'x'); COMMIT")
    assert contents(engine) == [(1, 11), (2, 20)] and contents(engine, "v") == [(1, 11, "x")]


@pytest.mark.parametrize(("sql", "why"), [
    ("INSERT INTO u VALUES (1, 'x'); COMMIT", "COMMIT without BEGIN"),
    ("ROLLBACK", "ROLLBACK without BEGIN"),
    ("BEGIN; BEGIN; COMMIT", "BEGIN inside a transaction"),
    ("BEGIN; INSERT INTO u VALUES (1, 'x'); REFRESH PLAN v; COMMIT", "write it before BEGIN"),
    ("BEGIN; INSERT INTO u VALUES (1, 'x'); CREATE SINK s FROM v INTO DELTA 'x'; COMMIT", "write it before BEGIN"),
])  # fmt: skip
def test_what_is_no_transaction_is_refused_before_it_begins(engine, sql, why):
    with pytest.raises(hj.UnsupportedSQL, match=why):
        engine.execute(sql)
    assert contents(engine, "u") == [] and engine.stats().upper == 6


def test_statements_say_how_many_rows_they_changed(engine, caplog):
    caplog.set_level("INFO", "halfjoin")
    counts = [
        engine.execute(f"SET TIME = {time}; {sql}")["count"].to_pylist()
        for time, sql in enumerate((
            "INSERT INTO u VALUES (1, 'x'), (1, 'x')", "INSERT INTO u SELECT k, 'y' FROM t",
            "UPDATE u SET b = 'z' WHERE k = 1", "UPDATE u SET b = b WHERE k = 1", "DELETE FROM u WHERE k = 9",
            "DELETE FROM u"), 6)
    ]  # fmt: skip
    assert counts == [[2], [2], [3], [3], [0], [4]]
    assert [record.getMessage() for record in caplog.records] == [
        "INSERT 0 2", "INSERT 0 2", "UPDATE 3", "UPDATE 3", "DELETE 0", "DELETE 4"]  # fmt: skip


def test_a_transaction_goes_on_over_calls(engine):
    engine.execute("BEGIN")
    engine.execute("INSERT INTO u VALUES (1, 'x')")
    assert contents(engine, "u") == [] and engine.execute("SELECT count(*) AS n FROM u").to_pylist() == [{"n": 1}]
    assert engine.execute("SELECT b FROM v").to_pylist() == [{"b": "x"}] and contents(engine, "v") == []
    engine.execute("COMMIT")
    assert contents(engine, "v") == [(1, 10, "x")] and engine.stats().upper == 7


def test_a_failed_transaction_waits_for_its_end(engine):
    engine.execute("BEGIN; INSERT INTO u VALUES (1, 'x')")
    with pytest.raises(hj.InvalidRow):
        engine.execute("INSERT INTO t VALUES (1, 1)")
    with pytest.raises(hj.UnsupportedSQL, match="transaction is aborted") as caught:
        engine.execute("INSERT INTO u VALUES (1, 'y')")
    assert caught.value.sqlstate == "25P02"
    engine.execute("COMMIT")  # as in PostgreSQL, it rolls back
    assert contents(engine, "u") == [] and engine.stats().upper == 6
    engine.execute("INSERT INTO u VALUES (1, 'z')")
    assert contents(engine, "u") == [(1, "z")]


@pytest.mark.parametrize("sql", ["INSRT INTO u VALUES (2, 'y')", "INSERT INTO u VALUES (2", "SELECT 'y", "BEGIN; SELEC",
                                 "MERGE INTO u USING t ON u.k = t.k WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE",
                                 "REFRESH PLAN v", "COPY u FROM 'x'", "PREPARE p AS SELEC"])  # fmt: skip
def test_a_statement_that_cannot_be_read_fails_its_transaction(engine, sql):
    engine.execute("BEGIN; INSERT INTO u VALUES (1, 'x')")
    for _ in range(2):
        with pytest.raises(hj.UnsupportedSQL):
            engine.execute(sql)
        with pytest.raises(hj.UnsupportedSQL, match="transaction is aborted"):
            engine.execute("INSERT INTO u VALUES (3, 'z')")
    engine.execute("COMMIT")
    assert contents(engine, "u") == []


def test_a_copy_that_cannot_be_read_fails_its_transaction(engine):
    copies = [("COPY u (no) FROM STDIN", b"1"), ("CPY u", b"1"), ("COPY nosuch TO STDOUT", None), ("COPY u TO", None)]
    for number, (sql, rows) in enumerate(copies, 1):
        engine.execute(f"SET TIME = {10 + number}; BEGIN; INSERT INTO u VALUES (1, 'x'); SAVEPOINT a")
        with pytest.raises(hj.HalfjoinError):
            engine.copy_to(sql) if rows is None else engine.copy_from(sql, rows)
        with pytest.raises(hj.UnsupportedSQL, match="transaction is aborted"):
            engine.execute("INSERT INTO u VALUES (3, 'z')")
        engine.execute("ROLLBACK TO a; COMMIT")
        assert contents(engine, "u") == [(1, "x")] * number


def test_a_view_over_changed_rows_stays_materialized_in_the_catalog(engine):
    engine.execute("BEGIN; INSERT INTO u VALUES (9, 'x'); CREATE VIEW plain AS SELECT * FROM v")
    kinds = "SELECT relname AS name, relkind::text AS kind FROM pg_class WHERE relname IN ('v', 'plain') ORDER BY 1"
    assert engine.execute(kinds).to_pylist() == [{"name": "plain", "kind": "v"}, {"name": "v", "kind": "m"}]
    assert engine.execute("SELECT matviewname AS m FROM pg_matviews").to_pylist() == [{"m": "v"}]
    engine.execute("INSERT INTO t VALUES (9, 90)")
    assert (9, 90, "x") in [tuple(row.values()) for row in engine.execute("SELECT * FROM v").to_pylist()]
    engine.execute("ROLLBACK")


def test_savepoints_undo_a_part(engine):
    engine.execute("BEGIN; INSERT INTO u VALUES (1, 'x'); SAVEPOINT a; DELETE FROM t; SAVEPOINT b; DELETE FROM u")
    with pytest.raises(hj.DataError):
        engine.execute("SELECT 1 / 0")
    engine.execute("ROLLBACK TO a")
    with pytest.raises(hj.UnknownName, match="savepoint"):
        engine.execute("RELEASE b")
    engine.execute("ROLLBACK TO SAVEPOINT a; COMMIT")
    assert contents(engine) == [(1, 10), (2, 20)] and contents(engine, "u") == [(1, "x")]


def test_of_two_changes_of_a_table_the_first_wins(engine):
    engine.execute("BEGIN; UPDATE u SET b = 'mine'; INSERT INTO u VALUES (2, 'mine')")
    engine.apply({"u": [{"k": 1, "b": "theirs"}]}, time=7)
    with pytest.raises(hj.Conflict, match="could not serialize") as caught:
        engine.execute("COMMIT")
    assert caught.value.sqlstate == "40001" and contents(engine, "u") == [(1, "theirs")]
    engine.execute("BEGIN; DELETE FROM u")
    engine.apply({"t": [{"k": 7, "a": 7}]}, time=8)
    engine.execute("SET TIME = 9; COMMIT")
    assert contents(engine, "u") == [] and len(contents(engine)) == 3
