"""Problems of a user's first day: the length of history, printed objects, names in use, and messages."""

import logging
import subprocess
import sys
import threading

import pytest

import halfjoin as hj

TABLE = "CREATE TABLE t (k integer PRIMARY KEY, a text)"
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE k > 1"


@pytest.fixture
def engine():
    with hj.Engine() as engine:
        engine.execute(f"{TABLE}; {VIEW}")
        yield engine


@pytest.mark.parametrize(("text", "units"), [("30 days", 30 * 86_400_000), ("1 hour", 3_600_000), (5, 5), (0, 0)])
def test_history_has_a_length_in_words(text, units):
    with hj.Engine(retain=text) as engine:
        engine.execute(TABLE)
        engine.advance(to=units + 10)
        assert {one.name: one.since for one in engine.stats().collections}["t"] == (10 if units else 9)


@pytest.mark.parametrize("wrong", ["a while", "-1 day", "1 month", -1, 1.5, True])
def test_what_is_no_length_of_history(wrong):
    with pytest.raises(hj.HalfjoinError, match="is not a length of history; give a whole number of time units, or a"):
        hj.Engine(retain=wrong)


def test_objects_say_what_they_are(engine, tmp_path):
    assert repr(engine) == "<halfjoin.Engine in memory, tables=1, materialized_views=1, upper=0>"
    applied = engine.apply({"t": [{"k": 2}]}, time=4)
    assert repr(applied).startswith("Applied(time=4, upper=5, ") and "v: 1 rows" in repr(applied)
    with hj.Engine(tmp_path / "w") as other:
        assert str(tmp_path / "w") in repr(other)
    assert repr(other).endswith("closed>")


def test_rows_print_as_tables(engine, capsys):
    applied = engine.apply({"t": [{"k": number, "a": f"[{number}]"} for number in range(50)]}, time=1)
    hj.show(engine.read("t"), 3)
    printed = capsys.readouterr().out
    assert "[2]" in printed and "[3]" not in printed and "47 more rows" in printed
    hj.show(applied)
    assert "v: 48 changes" in capsys.readouterr().out
    hj.show(engine.execute("SET TIME = 2; DELETE FROM t WHERE k < 2"))
    assert capsys.readouterr().out == "DELETE 2\n"
    hj.show(None)
    assert capsys.readouterr().out == ""
    with pytest.raises(hj.HalfjoinError, match="int is not a table"):
        hj.show(5)


def test_show_views_shows_their_sql(engine):
    assert engine.execute("SHOW VIEWS")["definition"].to_pylist() == ["SELECT k FROM t WHERE k > 1"]


@pytest.mark.parametrize("sql", [
    "DROP VIEW IF EXISTS v", "DROP TABLE IF EXISTS v", "DROP MATERIALIZED VIEW IF EXISTS t", "DROP TABLE v",
    "DROP INDEX IF EXISTS t",
])  # fmt: skip
def test_drop_of_the_wrong_kind_is_an_error(engine, sql):
    with pytest.raises(hj.Conflict, match=r"write DROP (TABLE|MATERIALIZED VIEW)"):
        engine.execute(sql)
    engine.execute("DROP VIEW IF EXISTS nothing; DROP INDEX IF EXISTS nothing; DROP SINK IF EXISTS v")
    assert engine.execute("SHOW VIEWS").num_rows == 1


@pytest.mark.parametrize(("sql", "other"), [
    (TABLE, "CREATE TABLE t (k integer)"),
    (VIEW, "CREATE MATERIALIZED VIEW v AS SELECT k FROM t"),
    (VIEW, "CREATE VIEW v AS SELECT k FROM t WHERE k > 1"),
    ("CREATE INDEX i ON t (a)", "CREATE INDEX i ON t (k)"),
])  # fmt: skip
def test_if_not_exists_says_when_it_is_something_else(engine, caplog, sql, other):
    engine.execute("CREATE INDEX i ON t (a)")
    for text in (sql, other):
        first, _ = text.split(" i " if "INDEX" in text else " t " if "TABLE" in text else " v ", 1)
        engine.execute(f"{first} IF NOT EXISTS {text[len(first):].strip()}")
        assert len(caplog.records) == (text == other)
    assert "exists with another definition, and stays as it is" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING


def test_a_second_opening_is_told_which_line_was_first(tmp_path):
    with hj.Engine(tmp_path / "w"):
        with pytest.raises(hj.Conflict, match=r"this very process: .* opened at .*test_first_day\.py:\d+"):
            hj.Engine(tmp_path / "w")
        other = f"import halfjoin as hj\nhj.Engine({str(tmp_path / 'w')!r})"
        told = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=False)
        assert "opened at" in told.stderr and "very process" not in told.stderr


@pytest.mark.parametrize("drop", ["DROP MATERIALIZED VIEW v", "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1 AS k"])
def test_a_subscriber_of_a_dropped_view_gets_an_error(engine, drop):
    subscription = engine.subscribe("v")
    engine.apply({"t": [{"k": 2}]}, time=4)
    got, ended = [], []

    def follow():
        try:
            got.extend(table.num_rows for table in subscription)
        except hj.UnknownName as problem:
            ended.append(str(problem))

    thread = threading.Thread(target=follow)
    thread.start()
    engine.execute(drop)
    thread.join(60)
    assert got == [0, 1] and len(ended) == 1 and "'v'" in ended[0] and "dropped or replaced" in ended[0]


@pytest.mark.parametrize(("sql", "words"), [
    ("CREATE TABLE x (d datetime)", ["unknown type 'datetime'", "write timestamp"]),
    ("CREATE TABLE x (d tinyint)", ["unknown type 'tinyint'", "write smallint"]),
    ("CREATE TABLE x (d nvarchar(3))", ["type nvarchar(3) is not supported", "write varchar"]),
])  # fmt: skip
def test_messages_name_what_was_written(engine, sql, words):
    with pytest.raises(hj.HalfjoinError) as caught:
        engine.execute(sql)
    assert all(word in str(caught.value) for word in words)


def test_errors_in_csv_files_name_the_column(tmp_path):
    (tmp_path / "t.sql").write_text("CREATE TABLE t (k integer, a integer)")
    (tmp_path / "t.csv").write_text("k,a\n1,2\n3,x\n")
    command = [sys.executable, "-m", "halfjoin", "run", "t.sql", "--load", "t=t.csv"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == 1 and "In column a" in told.stderr and "#" not in told.stderr.partition("Row")[0]


def test_the_command_line_says_what_statements_did(tmp_path):
    (tmp_path / "t.sql").write_text(f"{TABLE}; INSERT INTO t VALUES (1, 'x'), (2, 'y'); DELETE FROM t WHERE k = 1")
    command = [sys.executable, "-m", "halfjoin", "run", "t.sql"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.stderr.splitlines() == ["INSERT 0 2", "DELETE 1"] and told.stdout == ""
