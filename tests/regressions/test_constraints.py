"""Parameters, constraints, generated columns and ALTER TABLE, where they once gave wrong answers or crashed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import halfjoin as hj
from halfjoin.engine.intake import generated


@pytest.fixture
def engine() -> Iterator[hj.Engine]:
    with hj.Engine() as made:
        yield made


def _rows(engine: hj.Engine, sql: str, params: list[object] | None = None) -> list[tuple[object, ...]]:
    answer = engine.execute(sql, params)
    assert answer is not None
    return [tuple(row) for row in zip(*(column.to_pylist() for column in answer.columns), strict=True)]


@pytest.mark.parametrize(("sql", "expected"), [
    ("SELECT $1,$2", (1, 2)),
    ("SELECT $1,$2,$1,$2", (1, 2, 1, 2)),
    ("SELECT $1+$2 AS x", (3,)),
    ("SELECT '$1,$2' AS x, $$1$2$$, $a$ $1 $a$, $1+$2", ("$1,$2", "1$2", " $1 ", 3)),
])  # fmt: skip
def test_parameters_may_follow_each_other_closely(engine: hj.Engine, sql: str, expected: tuple[object, ...]) -> None:
    assert _rows(engine, sql, [1, 2]) == [expected]


def test_a_prepared_insert_takes_close_parameters(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE t (a int, b int); PREPARE p (int,int) AS INSERT INTO t VALUES ($1,$2)")
    engine.execute("EXECUTE p (1,2)")
    assert _rows(engine, "SELECT * FROM t") == [(1, 2)]


@pytest.mark.parametrize(("sql", "params"), [("SELECT $1", ["\ud800"]), ("SELECT '\ud800'", None)])
def test_half_a_surrogate_pair_is_refused(engine: hj.Engine, sql: str, params: list[object] | None) -> None:
    with pytest.raises(hj.UnsupportedSQL, match="half of a surrogate pair at character"):
        engine.execute(sql, params)


def test_a_default_that_fails_adds_no_column(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    with pytest.raises(hj.DataError, match="division by zero"):
        engine.execute("ALTER TABLE t ADD COLUMN b int DEFAULT 1/0")
    engine.execute("INSERT INTO t VALUES (2)")
    assert _rows(engine, "SELECT * FROM t") == [(1,), (2,)]


def test_a_column_that_exists_gets_no_constraint(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE t (a int); ALTER TABLE t ADD COLUMN IF NOT EXISTS a int UNIQUE CHECK (a > 5)")
    engine.execute("INSERT INTO t VALUES (1), (1)")
    engine.execute("ALTER TABLE t ADD COLUMN IF NOT EXISTS b int CHECK (b > 5)")
    with pytest.raises(hj.InvalidRow, match="t_b_check"):
        engine.execute("INSERT INTO t VALUES (1, 1)")


def test_a_named_unique_constraint_can_be_dropped(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE); ALTER TABLE t ADD CONSTRAINT u UNIQUE (a)")
    engine.execute("ALTER TABLE t ADD CONSTRAINT k UNIQUE (id); ALTER TABLE t DROP CONSTRAINT k")
    engine.execute("ALTER TABLE t DROP CONSTRAINT t_a_key; INSERT INTO t VALUES (1, 1)")
    with pytest.raises(hj.InvalidRow, match="second row"):
        engine.execute("INSERT INTO t VALUES (2, 1)")
    engine.execute("ALTER TABLE t DROP CONSTRAINT u; INSERT INTO t VALUES (2, 1)")
    with pytest.raises(hj.InvalidRow, match="second row"):
        engine.execute("INSERT INTO t VALUES (2, 3)")


@pytest.mark.parametrize("key", ["PRIMARY KEY (a, a)", "UNIQUE (a, a)"])
def test_a_key_names_a_column_once(engine: hj.Engine, key: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match="appears twice"):
        engine.execute(f"CREATE TABLE t (a int, {key})")


def test_a_foreign_key_may_order_the_columns_of_its_key(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE p (a int, b int, CONSTRAINT u UNIQUE (a, b))")
    engine.execute("CREATE TABLE c (x int, y int, FOREIGN KEY (x, y) REFERENCES p (b, a)); INSERT INTO p VALUES (1, 2)")
    engine.execute("INSERT INTO c VALUES (2, 1)")
    with pytest.raises(hj.InvalidRow, match="is not in p"):
        engine.execute("INSERT INTO c VALUES (1, 2)")
    with pytest.raises(hj.InvalidRow, match="still referenced"):
        engine.execute("DELETE FROM p")
    with pytest.raises(hj.Conflict, match="a foreign key refers to u"):
        engine.execute("ALTER TABLE p DROP CONSTRAINT u")


def test_no_value_of_a_generated_column_is_changed(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE t (id int PRIMARY KEY, a float, b float GENERATED ALWAYS AS (a * 2) STORED)")
    good = [{"id": 1, "a": 1.5, "b": 3.0}, {"id": 2, "a": float("nan"), "b": float("nan")}, {"id": 3, "a": 1.0}]
    engine.apply({"t": good})
    for rows in ([{"id": 4, "a": 1.0, "b": 9.0}], hj.upserts([{"id": 1, "a": 2.0, "b": 3.0}]),
                 hj.deletes([{"id": 1, "b": 9.0}])):  # fmt: skip
        with pytest.raises(hj.InvalidRow, match=r"t\.b: row 0: .* is not the value of the generated column"):
            engine.apply({"t": rows})
    engine.apply({"t": hj.upserts([{"id": 1, "a": 2.0}, {"id": 3}])})
    engine.apply({"t": hj.deletes([{"id": 2, "b": float("nan")}])})
    assert _rows(engine, "SELECT * FROM t ORDER BY id") == [(1, 2.0, 4.0), (3, 1.0, 2.0)]


def test_a_check_without_a_name_can_be_added(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE t (a int, b int); ALTER TABLE t ADD CHECK (a > 0), ADD CHECK (a < b), ADD UNIQUE (a)")
    engine.execute("INSERT INTO t VALUES (1, 2)")
    for row, name in ((0, "t_a_check"), (3, "t_check")):
        with pytest.raises(hj.InvalidRow, match=f"constraint {name}"):
            engine.execute(f"INSERT INTO t VALUES ({row}, 2)")
    engine.execute("ALTER TABLE t DROP CONSTRAINT t_check; INSERT INTO t VALUES (3, 2)")
    assert _rows(engine, "SELECT * FROM t ORDER BY a") == [(1, 2), (3, 2)]


def test_a_type_that_generated_columns_read_stays(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE t (a numeric(4, 1), b text GENERATED ALWAYS AS (a::text) STORED)")
    engine.execute("INSERT INTO t VALUES (1.5)")
    with pytest.raises(hj.UnsupportedSQL, match="a generated column reads the column a"):
        engine.execute("ALTER TABLE t ALTER COLUMN a TYPE numeric(6, 3)")
    engine.execute("DELETE FROM t WHERE b = '1.5'")
    assert _rows(engine, "SELECT * FROM t") == []


def test_a_table_without_rows_needs_no_time() -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (a int); CREATE TABLE u (a int)")
        applied = engine.apply({"t": [{"a": 1, "__time": 7}], "u": []})
        assert (applied.time, applied.upper) == (7, 8)


def test_reset_all_resets_every_setting(engine: hj.Engine) -> None:
    engine.execute("SET application_name = 'a'; SET TIME = 5; RESET ALL")
    assert _rows(engine, "SHOW application_name") == [("",)]
    assert _rows(engine, "SHOW time") == [(None,)]


def test_expressions_are_bound_once_not_for_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a * 2) STORED, CHECK (a < b + 100))")
    engine.apply({"t": [{"a": 1}]}, time=1)

    def refused(*_: object) -> None:
        raise AssertionError("an expression is bound again")

    monkeypatch.setattr(generated, "bind_generated", refused)
    monkeypatch.setattr(generated, "bind_check", refused)
    engine.apply({"t": [{"a": 2}]}, time=2)
    assert sorted(row["b"] for row in engine.read("t").to_pylist()) == [2, 4]


def test_a_key_that_is_referenced_has_the_names_of_its_own_table() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE q (id bigint PRIMARY KEY); CREATE TABLE p (of bigint REFERENCES q(id));"
                   "INSERT INTO q VALUES (1); INSERT INTO p VALUES (1)")
    with pytest.raises(hj.InvalidRow, match=r"\(id\) = \(1\) is still referenced from p") as caught:
        engine.execute("DELETE FROM q")
    assert caught.value.key == {"id": 1}
