"""Key words as names of outputs and of FROM's items, and texts beside texts: PostgreSQL decides each."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from halfjoin.errors import HalfjoinError
from halfjoin.sql.parse.parse import parse_query

pytest_plugins = ("tests.support.postgres",)

OPERATORS = {"and", "between", "collate", "ilike", "in", "like", "not", "or"}  # they need what follows them
STATEMENTS = {"alter", "between", "drop", "insert", "lock", "revoke", "rollback", "values"}  # names of tables after AS
FORMS = (
    ("SELECT 1 {}", OPERATORS | {"fetch"}),
    ("SELECT a {} FROM t", OPERATORS),
    ("SELECT a + 1 {}, b FROM t", OPERATORS | {"at"}),
    ("SELECT * FROM (SELECT a {} FROM t) q", OPERATORS),
    ("SELECT a AS {} FROM t", {"not"}),
    ("SELECT * FROM t {}", STATEMENTS | {"fetch"}),
    ("SELECT u.a FROM t AS {}, t AS u", set()),
)
TEXTS = (
    "SELECT 'a' 'b'", "SELECT a 'b' FROM t", "SELECT 'a'\n'b'", "SELECT 'a' -- more\n  \t'b'\n\n-- more\n'c'",
    "SELECT 'a'\n'b' 'c'", "SELECT 'a' /* \n */ 'b'", "SELECT 'a' /* more */ || 'b'", "SELECT E'\\n'\n'b\\t'",
    "SELECT E'a' 'b'", "SELECT 'a'\nE'b'", "SELECT date '2020-01-'\n'02'", "SELECT date '2020-01-' '02'",
    "SELECT 1 AS", "SELECT a AS FROM t", "SELECT count(*) FILTER (WHERE a > 0) OVER () filter FROM t",
    "SELECT interval '1' year", "SELECT interval '1' year year", "SELECT a isnull FROM t",
    "SELECT a AS \"year\", b \"over\" FROM t",
)  # fmt: skip


@pytest.mark.parametrize(("form", "refused"), FORMS)
def test_key_words_name_what_postgresql_lets_them_name(form: str, refused: set[str], postgres: Any) -> None:
    engine = hj.Engine()
    for run in (engine.execute, postgres.execute):
        run("CREATE TABLE t (a integer, b text)")
    words = {row[0] for row in postgres.execute("SELECT word FROM pg_get_keywords()")} - refused
    different = {word for word in words if _names(form.format(word), engine) != _theirs(form.format(word), postgres)}
    assert different == set()


@pytest.mark.parametrize("sql", TEXTS)
def test_texts_join_over_a_new_line_only(sql: str, postgres: Any) -> None:
    engine = hj.Engine()
    for run in (engine.execute, postgres.execute):
        run("CREATE TABLE t (a integer, b text)")
    assert _names(sql, engine) == _theirs(sql, postgres)
    if _theirs(sql, postgres) is not None and "'a'" in sql:
        assert list(map(tuple, (row.values() for row in engine.query(sql).to_pylist()))) == (
            postgres.execute(sql).fetchall())


def test_a_refused_label_says_what_to_write() -> None:
    with pytest.raises(HalfjoinError, match="write AS year") as caught:
        hj.Engine().query("SELECT 1 year")
    assert caught.value.code == "42601"


@pytest.mark.parametrize("sql", ["SELECT 1 year", "SELECT 'a' 'b'", "SELECT 1 select", "SELECT * FROM t order"])
def test_views_of_earlier_versions_are_read_as_before(sql: str) -> None:
    assert parse_query(sql).expressions


def _names(sql: str, engine: hj.Engine) -> list[str] | None:
    try:
        return list(engine.query(sql).column_names)
    except HalfjoinError:
        return None


def _theirs(sql: str, postgres: Any) -> list[str] | None:
    try:
        return [column.name for column in postgres.execute(sql).description]
    except Exception:
        return None
