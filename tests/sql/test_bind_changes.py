"""INSERT, DELETE and UPDATE as relations."""

from __future__ import annotations

from textwrap import dedent

import pytest

from halfjoin.errors import HalfjoinError, UnknownName, UnsupportedSQL
from halfjoin.sql.bind.changes import bind_delete, bind_insert, bind_update
from halfjoin.sql.bind.describe import describe
from halfjoin.sql.parse.parse import parse
from halfjoin.sql.relation import Relation
from halfjoin.sql.statements import Delete, Insert, Update
from tests.support.front import SCHEMA


def changes(sql: str) -> list[Relation]:
    (statement,) = parse(sql)
    match statement:
        case Insert():
            return [bind_insert(statement, SCHEMA, sql)]
        case Delete():
            return [bind_delete(statement, SCHEMA, sql)]
        case _:
            assert isinstance(statement, Update)
            return list(bind_update(statement, SCHEMA, sql))


def check(sql: str, tree: str) -> None:
    assert "\n".join(describe(relation, types=True) for relation in changes(sql)) == dedent(tree).strip()


def test_insert_reads_literals_as_the_columns_types() -> None:
    check("INSERT INTO u (x, a) VALUES (1, '2'), ('1.5', 3)", """
        Project a integer = values.a, c bigint = NULL, x double precision = values.x
          Values (1.0, 2), (1.5, 3) as (values.x double precision, values.a integer)
    """)
    check("""INSERT INTO "Odd" VALUES ('2020-01-31', '7')""", """
        Project Name text = values."Name", select integer = values.select
          Values ('2020-01-31', 7) as (values.Name text, values.select integer)
    """)


def test_insert_a_query() -> None:
    check("INSERT INTO u (c, a) SELECT a, '7' FROM t", """
        Project a integer = query.a, c bigint = query.c, x double precision = NULL
          Project query.c bigint = t.a, query.a integer = 7
            Scan t
    """)


def test_delete() -> None:
    check("DELETE FROM u AS k WHERE k.a = 1 OR c > 2", """
        Project a integer = k.a, c bigint = k.c, x double precision = k.x
          Filter k.a = 1 OR k.c > 2
            Scan u as k
    """)


def test_update_gives_the_rows_before_and_after() -> None:
    check("UPDATE u SET c = a, a = c WHERE x IS NULL", """
        Project a integer = u.a, c bigint = u.c, x double precision = u.x
          Filter u.x IS NULL
            Scan u
        Project a integer = u.c::integer, c bigint = u.a, x double precision = u.x
          Filter u.x IS NULL
            Scan u
    """)


@pytest.mark.parametrize(("sql", "error", "text"), [
    ("INSERT INTO nosuch VALUES (1)", UnknownName, "unknown table 'nosuch'"),
    ("INSERT INTO u (nosuch) VALUES (1)", UnknownName, "unknown column 'nosuch' of u"),
    ("INSERT INTO u (a, a) VALUES (1, 2)", UnsupportedSQL, "column a is named twice"),
    ("INSERT INTO u VALUES (1, 2, 3, 4)", UnsupportedSQL, "INSERT has 4 values for 3 columns"),
    ("INSERT INTO u VALUES (1, 2, 3), (1, 2)", UnsupportedSQL, "a row of VALUES has 2 values, the first one 3"),
    ("INSERT INTO u (a, c) VALUES (1)", UnsupportedSQL, "INSERT has 1 value for 2 columns"),
    ("INSERT INTO u (a, c) SELECT 1", UnsupportedSQL, "INSERT has 1 value for 2 columns"),
    ("INSERT INTO u (a) VALUES ('x')", UnsupportedSQL, 'invalid input syntax for type integer: "x"'),
    ("INSERT INTO u (a) SELECT s FROM t", UnsupportedSQL, "cannot cast type text to integer"),
    ("INSERT INTO u (a) SELECT a FROM t WHERE mz_now() < ts", UnsupportedSQL, "mz_now() is not supported in INSERT"),
    ("INSERT INTO u (a) SELECT count(*) FROM t", UnsupportedSQL,
     "aggregates (count) are not supported in INSERT, UPDATE and DELETE (line 1, column 26)"),
    ("DELETE FROM u WHERE a IN (SELECT a FROM t)", UnsupportedSQL,
     "IN (subquery) is not supported in INSERT, UPDATE and DELETE (line 1, column 34)"),
    ("UPDATE u SET a = (SELECT 1)", UnsupportedSQL, "a subquery as a value is not supported in INSERT"),
    ("DELETE FROM u WHERE nosuch = 1", UnknownName, "unknown column 'nosuch'"),
    ("DELETE FROM u AS k WHERE u.a = 1", UnknownName, "unknown table or alias 'u'"),
    ("DELETE FROM t WHERE mz_now() < ts", UnsupportedSQL, "mz_now() is not supported in INSERT, UPDATE and DELETE"),
    ("UPDATE u SET nosuch = 1", UnknownName, "unknown column 'nosuch'"),
    ("UPDATE u SET a = 1, a = 2", UnsupportedSQL, "column a is assigned twice"),
    ("UPDATE t SET d = 'x'", UnsupportedSQL, 'invalid input syntax for type date: "x"'),
    ("UPDATE t SET ok = a", UnsupportedSQL, "cannot cast type integer to boolean"),
])  # fmt: skip
def test_refused(sql: str, error: type[HalfjoinError], text: str) -> None:
    with pytest.raises(error) as caught:
        changes(sql)
    assert str(caught.value).startswith(text)
