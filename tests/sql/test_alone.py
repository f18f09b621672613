"""What is computed of one row alone: CHECK, GENERATED, DEFAULT and the keys of an index."""

from __future__ import annotations

import pytest

import halfjoin as hj


@pytest.mark.parametrize(("column", "reason", "code"), [
    ("a integer CHECK (a > (SELECT 1))", "a subquery is not allowed in a CHECK condition", "0A000"),
    ("a integer CHECK (EXISTS (SELECT 1))", "a subquery is not allowed in a CHECK condition", "0A000"),
    ("a integer CHECK (random() > a)", "random is not allowed in a CHECK condition", "42P17"),
    ("a date CHECK (a < current_date)", "current_date is not allowed in a CHECK condition", "42P17"),
    ("a integer GENERATED ALWAYS AS ((SELECT 1)) STORED", "a subquery is not allowed in a generated column", "0A000"),
    ("a timestamptz GENERATED ALWAYS AS (now()) STORED", "now is not allowed in a generated column", "42P17"),
    ("a integer DEFAULT (SELECT 1)", "a subquery is not allowed in DEFAULT", "0A000"),
])  # fmt: skip
def test_a_column_tells_what_its_expression_cannot_have(column: str, reason: str, code: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match=reason) as caught:
        hj.Engine().execute(f"CREATE TABLE t (k integer, {column})")
    assert caught.value.sqlstate == code


@pytest.mark.parametrize(("key", "reason"), [
    ("(SELECT 1)", "a subquery is not allowed in an index"), ("random()", "random is not allowed in an index"),
])  # fmt: skip
def test_a_key_tells_what_it_cannot_have(key: str, reason: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer)")
    with pytest.raises(hj.UnsupportedSQL, match=reason):
        engine.execute(f"CREATE INDEX ON t (({key}))")


def test_a_default_may_be_of_its_moment() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer, at timestamptz DEFAULT now(), x double precision DEFAULT random())")
    engine.execute("INSERT INTO t (k) VALUES (1)")
    assert engine.query("SELECT at <= now() AND x < 1 AS known FROM t").to_pylist() == [{"known": True}]


@pytest.mark.parametrize("action", ["UPDATE CASCADE", "UPDATE SET NULL", "DELETE SET NULL", "DELETE SET DEFAULT"])
def test_a_foreign_key_sets_no_generated_column(action: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE p (k integer PRIMARY KEY)")
    child = "CREATE TABLE c (a integer, k integer GENERATED ALWAYS AS (a + 1) STORED REFERENCES p ON {})"
    with pytest.raises(hj.UnsupportedSQL, match=f"ON {action} would set k, a generated column") as caught:
        engine.execute(child.format(action))
    assert caught.value.sqlstate == "42601"
    engine.execute(child.format("DELETE CASCADE"))
