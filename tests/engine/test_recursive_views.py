"""CREATE RECURSIVE VIEW: a view that its own query reads, as in PostgreSQL."""

import pytest

import halfjoin as hj

REACHED = "SELECT 1 UNION SELECT b FROM edge JOIN {name} ON edge.a = {name}.n"


@pytest.fixture
def engine() -> hj.Engine:
    made = hj.Engine(clock="own")
    made.execute("CREATE TABLE edge (a integer, b integer)")
    made.apply({"edge": [{"a": 1, "b": 2}, {"a": 2, "b": 3}, {"a": 5, "b": 6}]}, time=1)
    return made


def numbers(engine: hj.Engine, name: str) -> list[int]:
    return sorted(engine.read(name).column("n").to_pylist())


@pytest.mark.parametrize("words", ["RECURSIVE VIEW", "MATERIALIZED RECURSIVE VIEW", "RECURSIVE MATERIALIZED VIEW"])
def test_a_view_reads_itself(engine: hj.Engine, words: str) -> None:
    engine.execute(f"CREATE {words} reached (n) AS {REACHED.format(name='reached')}")
    assert engine.query("SELECT n FROM reached ORDER BY n").column("n").to_pylist() == [1, 2, 3]
    applied = engine.apply({"edge": [{"a": 3, "b": 5}]}, time=2)
    assert engine.query("SELECT n FROM reached ORDER BY n").column("n").to_pylist() == [1, 2, 3, 5, 6]
    assert ("reached" in applied.diffs) == ("MATERIALIZED" in words)


def test_a_replaced_view_reads_the_new_one(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW reached AS SELECT 7 AS n")
    engine.execute(f"CREATE OR REPLACE MATERIALIZED RECURSIVE VIEW reached (n) AS {REACHED.format(name='reached')}")
    assert numbers(engine, "reached") == [1, 2, 3]


def test_quoted_names_and_schemas_stay_as_written(engine: hj.Engine) -> None:
    engine.execute('CREATE SCHEMA s; CREATE RECURSIVE VIEW s."A b" ("N 1", "select") AS '
                   'VALUES (1, \'x\') UNION ALL SELECT "N 1" + 1, "select" FROM "A b" WHERE "N 1" < 3')  # fmt: skip
    assert engine.query('SELECT "N 1" AS n, "select" AS s FROM s."A b" ORDER BY n').to_pylist() == [
        {"n": 1, "s": "x"}, {"n": 2, "s": "x"}, {"n": 3, "s": "x"}]  # fmt: skip


def test_the_view_is_there_after_reopening(tmp_path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute("CREATE TABLE edge (a integer, b integer)")
        engine.execute(f"CREATE MATERIALIZED RECURSIVE VIEW reached (n) AS {REACHED.format(name='reached')}")
        engine.apply({"edge": [{"a": 1, "b": 2}]}, time=1)
    with hj.Engine(tmp_path / "w") as engine:
        engine.apply({"edge": [{"a": 2, "b": 9}]}, time=2)
        assert numbers(engine, "reached") == [1, 2, 9]


@pytest.mark.parametrize(("sql", "message"), [
    ("CREATE RECURSIVE VIEW v AS SELECT 1", "needs the names of its columns"),
    ("CREATE RECURSIVE TABLE v (a integer)", "only a view can be RECURSIVE"),
    ("CREATE RECURSIVE VIEW v (a, b) AS SELECT 1 UNION SELECT a FROM v", "2 names"),
])  # fmt: skip
def test_what_is_wrong_is_told(engine: hj.Engine, sql: str, message: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match=message):
        engine.execute(sql)
