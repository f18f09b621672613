"""INSERT, DELETE and UPDATE as relations."""

from __future__ import annotations

from textwrap import dedent

import pytest

from halfjoin.errors import HalfjoinError, UnknownName, UnsupportedSQL
from halfjoin.sql.bind.changes import bind_delete, bind_insert, bind_update
from halfjoin.sql.bind.describe import describe
from halfjoin.sql.bind.merging import bind_merge
from halfjoin.sql.parse.parse import parse
from halfjoin.sql.relation import Relation
from halfjoin.sql.statements import Delete, Insert, Merge, Update
from tests.support.front import SCHEMA


def changes(sql: str) -> Relation:
    (statement,) = parse(sql)
    match statement:
        case Insert():
            return bind_insert(statement, SCHEMA, sql).relation
        case Delete():
            return bind_delete(statement, SCHEMA, sql).relation
        case Merge():
            return bind_merge(statement, SCHEMA, sql).relation
        case _:
            assert isinstance(statement, Update)
            return bind_update(statement, SCHEMA, sql).relation


def check(sql: str, tree: str) -> None:
    assert describe(changes(sql), types=True) == dedent(tree).strip()


def test_insert_reads_literals_as_the_columns_types() -> None:
    check("INSERT INTO u (x, a) VALUES (1, '2'), ('1.5', 3)", """
        Project new.a integer = values.a, new.c bigint = NULL, new.x double precision = values.x
          Values (1.0, 2), (1.5, 3) as (values.x double precision, values.a integer)
    """)
    check("""INSERT INTO "Odd" VALUES ('2020-01-31', '7')""", """
        Project new.Name text = values."Name", new.select integer = values.select
          Values ('2020-01-31', 7) as (values.Name text, values.select integer)
    """)


def test_insert_a_query() -> None:
    check("INSERT INTO u (c, a) SELECT a, '7' FROM t", """
        Project new.a integer = query.a, new.c bigint = query.c, new.x double precision = NULL
          Project query.c bigint = t.a, query.a integer = 7
            Scan t
    """)


def test_delete() -> None:
    check("DELETE FROM u AS k WHERE k.a = 1 OR c > 2", """
        Project old.a integer = k.a, old.c bigint = k.c, old.x double precision = k.x
          Filter k.a = 1 OR k.c > 2
            Scan u as k
    """)


def test_update_gives_the_rows_before_and_after() -> None:
    check("UPDATE u SET c = a, a = c WHERE x IS NULL", """
        Project old.a integer = u.a, old.c bigint = u.c, old.x double precision = u.x, \
new.a integer = u.c::integer, new.c bigint = u.a, new.x double precision = u.x
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
    ("UPDATE u SET a = max(c)", UnsupportedSQL, "aggregate functions are not allowed in UPDATE"),
    ("UPDATE u SET a = (SELECT max(u.c) FROM t)", UnsupportedSQL, "aggregate functions are not allowed in UPDATE"),
    ("UPDATE u SET a = generate_series(1, 2)", UnsupportedSQL, "set-returning functions are not allowed in UPDATE"),
    ("UPDATE u SET a = row_number() OVER ()", UnsupportedSQL, "window functions are not allowed in UPDATE"),
    ("UPDATE u SET a = 1 FROM u", UnsupportedSQL, "table name u appears in FROM twice"),
    ("DELETE FROM u WHERE max(c) = 1", UnsupportedSQL, "aggregate functions are not allowed in DELETE"),
    ("MERGE INTO u USING t ON u.a = t.a WHEN MATCHED THEN UPDATE SET nosuch = 1", UnknownName, "unknown column"),
    ("MERGE INTO u USING t ON u.a = t.a WHEN NOT MATCHED THEN INSERT (a, A) VALUES (1, 2)", UnsupportedSQL,
     "column a is named twice"),
    ("DELETE FROM u WHERE nosuch = 1", UnknownName, "unknown column 'nosuch'"),
    ("DELETE FROM u AS k WHERE u.a = 1", UnknownName, "unknown table or alias 'u'"),
    ("DELETE FROM t WHERE mz_now() < ts", UnsupportedSQL, "mz_now() is not supported in INSERT, UPDATE"),
    ("UPDATE u SET nosuch = 1", UnknownName, "unknown column 'nosuch'"),
    ("UPDATE u SET a = 1, a = 2", UnsupportedSQL, "column a is assigned twice"),
    ("UPDATE t SET d = 'x'", UnsupportedSQL, 'invalid input syntax for type date: "x"'),
    ("UPDATE t SET ok = a", UnsupportedSQL, "cannot cast type integer to boolean"),
])  # fmt: skip
def test_refused(sql: str, error: type[HalfjoinError], text: str) -> None:
    with pytest.raises(error) as caught:
        changes(sql)
    assert str(caught.value).startswith(text)
