"""Parsed statements, exactly."""

from __future__ import annotations

import pytest
from sqlglot import exp
from sqlglot.errors import SqlglotError

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.definitions import ColumnDef, Constraint, CreateIndex, CreateSink, CreateTable, CreateView, Drop
from halfjoin.sql.expr import Literal
from halfjoin.sql.parse.dialect import Halfjoin
from halfjoin.sql.parse.parse import parse, parse_query
from halfjoin.sql.statements import Delete, Explain, Insert, Maintain, Select, Show, Subscribe, Update
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Kind,
    SqlType,
    array,
    numeric,
)
from tests.sql.test_bind_total import SNIPPETS


def test_create_table() -> None:
    (statement,) = parse("""
        CREATE TABLE IF NOT EXISTS Orders (o_orderkey bigint PRIMARY KEY, "Key" int NOT NULL, d date NULL)
        WITH (RETAIN HISTORY FOR '5 seconds')
    """)
    assert statement == CreateTable(
        "orders",
        (ColumnDef("o_orderkey", BIGINT, True), ColumnDef("Key", INTEGER, True), ColumnDef("d", DATE)),
        (Constraint("primary key", None, ("o_orderkey",)),), retain=5000, if_not_exists=True)
    assert statement.primary_key == ("o_orderkey",)


def test_columns_and_constraints_keep_their_text() -> None:
    (statement,) = parse("CREATE TABLE t (a int DEFAULT 1 + 1, b int GENERATED ALWAYS AS (a * 2) STORED, "
                         "CONSTRAINT c CHECK (a > 0), UNIQUE (a, b), FOREIGN KEY (a) REFERENCES u (k))")  # fmt: skip
    assert isinstance(statement, CreateTable)
    assert [(one.default, one.generated) for one in statement.columns] == [("1 + 1", None), (None, "a * 2")]
    assert statement.constraints == (
        Constraint("check", "c", (), "a > 0"), Constraint("unique", None, ("a", "b")),
        Constraint("foreign key", None, ("a",), "", "u", ("k",)),
    )  # fmt: skip


def test_a_key_of_two_columns_makes_them_not_null() -> None:
    (statement,) = parse('CREATE TABLE t (a int, "B" int, c int, CONSTRAINT k PRIMARY KEY (a, "B"))')
    assert isinstance(statement, CreateTable)
    assert statement.primary_key == ("a", "B")
    assert [column.not_null for column in statement.columns] == [True, True, False]


@pytest.mark.parametrize(("written", "type"), [
    ("boolean", BOOLEAN), ("bool", BOOLEAN), ("smallint", SMALLINT), ("int2", SMALLINT), ("integer", INTEGER),
    ("int", INTEGER), ("int4", INTEGER), ("bigint", BIGINT), ("int8", BIGINT), ("real", REAL), ("float4", REAL),
    ("double precision", DOUBLE), ("float", DOUBLE), ("float8", DOUBLE), ("numeric", numeric(38, 10)),
    ("numeric(12)", numeric(12, 0)), ("decimal(12, 2)", numeric(12, 2)), ("text", TEXT),
    ("varchar", SqlType(Kind.VARCHAR)), ("varchar(3)", SqlType(Kind.VARCHAR, 3)),
    ("character varying(3)", SqlType(Kind.VARCHAR, 3)), ("char", SqlType(Kind.CHAR, 1)),
    ("character(3)", SqlType(Kind.CHAR, 3)), ("bytea", BYTEA), ("date", DATE), ("time", TIME),
    ("timestamp", TIMESTAMP), ("timestamp without time zone", TIMESTAMP), ("timestamp(6)", TIMESTAMP),
    ("timestamptz", TIMESTAMPTZ), ("timestamp with time zone", TIMESTAMPTZ), ("uuid", UUID),
    ("integer[]", array(INTEGER)), ("text[][]", array(array(TEXT))), ("numeric[]", array(numeric(38, 10))),
    ("integer ARRAY", array(INTEGER)), ("text ARRAY, b text", array(TEXT)), ("text ARRAY[4], b text", array(TEXT)),
    ("varchar(3) ARRAY NOT NULL", array(SqlType(Kind.VARCHAR, 3))),
])  # fmt: skip
def test_types(written: str, type: SqlType) -> None:
    (statement,) = parse(f"CREATE TABLE t (a {written})")
    assert isinstance(statement, CreateTable)
    assert statement.columns[0].type == type


@pytest.mark.parametrize(("option", "units"), [
    ("FOR 5", 5), ("= FOR 5", 5), ("FOR '5'", 5000), ("FOR '1 hour'", 3_600_000), ("= FOR '2 days'", 172_800_000),
    ("FOR INTERVAL '1 second'", 1000),
])  # fmt: skip
def test_retain_history(option: str, units: int) -> None:
    table, view = parse(f"""
        CREATE TABLE t (a int) WITH (RETAIN HISTORY {option});
        CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY {option}) AS SELECT 1
    """)
    assert isinstance(table, CreateTable) and isinstance(view, CreateView)
    assert table.retain == view.retain == units


def test_create_view_keeps_its_text() -> None:
    text = "CREATE OR REPLACE MATERIALIZED VIEW v AS\n  SELECT a, -- the key\n  b FROM t ; SELECT 1"
    view = parse(text)[0]
    assert isinstance(view, CreateView)
    assert (view.name, view.materialized, view.or_replace, view.names) == ("v", True, True, ())
    assert view.text == "SELECT a, -- the key\n  b FROM t"


def test_a_column_list_is_applied_in_query_and_text() -> None:
    (view,) = parse('CREATE VIEW v (k, "L") AS SELECT a, b FROM t')
    assert isinstance(view, CreateView)
    assert view.names == ("k", "L")
    assert view.text == 'SELECT * FROM (SELECT a, b FROM t) AS v(k, "L")'
    assert view.query == parse_query(view.text)


def test_create_index() -> None:
    (index,) = parse("CREATE INDEX IF NOT EXISTS i ON t (a, (a + 1), lower(b))")
    assert isinstance(index, CreateIndex)
    assert (index.name, index.collection, index.if_not_exists) == ("i", "t", True)
    assert [key.sql() for key in index.keys] == ["a", "a + 1", "LOWER(b)"]
    (unnamed,) = parse("CREATE INDEX ON t (a)")
    assert isinstance(unnamed, CreateIndex) and unnamed.name is None


def test_changes() -> None:
    insert, delete, update = parse("""
        INSERT INTO t (a, "B") VALUES (1, 2);
        DELETE FROM t AS x WHERE x.a = 1;
        UPDATE t SET a = 1, "B" = a + 1 WHERE a > 0
    """)
    assert isinstance(insert, Insert) and (insert.table, insert.columns) == ("t", ("a", "B"))
    assert isinstance(delete, Delete) and (delete.table, delete.alias) == ("t", "x")
    assert isinstance(update, Update) and (update.table, update.alias) == ("t", "t")
    assert [name for name, _ in update.assignments] == ["a", "B"]


@pytest.mark.parametrize(("sql", "time"), [
    ("SELECT 1 AS OF 5", 5), ("SELECT * FROM t AS OF 5", 5), ("SELECT * FROM t x AS OF (5)", 5),
    ("SELECT a FROM t WHERE a = 1 ORDER BY a LIMIT 3 AS OF -5", -5), ("SELECT 1 UNION ALL SELECT 2 AS OF 5", 5),
    ("WITH q AS (SELECT 1) SELECT * FROM q AS OF 5", 5), ("WITH q AS (SELECT 1) VALUES (1) AS OF 5", 5),
    ("WITH p AS (WITH q AS (SELECT 1) TABLE q) SELECT * FROM p UNION SELECT 2 AS OF 5", 5),
    ("WITH q AS (SELECT 1) SELECT * FROM q AS of", None),
    ("VALUES (1) AS OF 5", 5), ("SELECT 1", None), ("SELECT 1 AS of", None), ("SELECT a AS of FROM t", None),
    ("SELECT a AS of, 2 AS OF 5", 5), ("SELECT * FROM t AS of", None), ("SELECT * FROM t AS of JOIN u USING (a)", None),
])  # fmt: skip
def test_as_of(sql: str, time: int | None) -> None:
    (statement,) = parse(sql)
    assert isinstance(statement, Select)
    assert statement.as_of == (None if time is None else Literal(time, BIGINT))


@pytest.mark.parametrize(("sql", "type"), [
    ("SELECT 1 AS OF '2024-01-31 10:00'", TIMESTAMP), ("SELECT 1 AS OF TIMESTAMP '2024-01-31'", TIMESTAMP),
    ("SELECT 1 AS OF DATE '2024-01-31'", DATE), ("SELECT 1 AS OF '2024-01-31'::timestamptz", TIMESTAMPTZ),
])  # fmt: skip
def test_as_of_a_moment(sql: str, type: SqlType) -> None:
    (statement,) = parse(sql)
    assert isinstance(statement, Select) and isinstance(statement.as_of, Literal)
    assert statement.as_of.type == type


def test_other_statements() -> None:
    five, nine = Literal(5, BIGINT), Literal(9, BIGINT)
    assert parse("SUBSCRIBE v; SUBSCRIBE TO V AS OF 5 UP TO 9; SUBSCRIBE v UP TO 9") == [
        Subscribe("v"), Subscribe("v", five, nine), Subscribe("v", None, nine)]
    assert parse("EXPLAIN VIEW v; EXPLAIN MATERIALIZED VIEW v") == [Explain("v"), Explain("v")]
    (explain,) = parse("EXPLAIN SELECT 1")
    assert isinstance(explain, Explain) and explain.view is None and explain.query is not None
    assert parse("EXPLAIN (FORMAT JSON, COSTS OFF) VIEW v") == [Explain("v", format="json")]
    for options in ("VERBOSE", "(VERBOSE)", "(COSTS OFF)", "(VERBOSE 1, SETTINGS TRUE, FORMAT 'text')",
                    "(ANALYZE FALSE, ANALYSE OFF, BUFFERS 0, TIMING FALSE, WAL OFF, SUMMARY FALSE)"):
        assert parse(f"EXPLAIN {options} SELECT 1") == [explain], options
        assert parse(f"EXPLAIN {options} WITH q AS (SELECT 1) TABLE q") != [explain]
    assert parse("VACUUM; VACUUM FULL a; VACUUM (ANALYZE, VERBOSE OFF) a (x, \"Y\"), s.b; ANALYZE; "
                 "ANALYSE VERBOSE a") == [
        Maintain("vacuum"), Maintain("vacuum", (("a", ()),)), Maintain("vacuum", (("a", ("x", "Y")), ("s.b", ()))),
        Maintain("analyze"), Maintain("analyze", (("a", ()),))]
    assert parse("VACUUM (ANALYZE) pg_catalog.pg_class") == [Maintain("vacuum")]
    assert parse("SHOW TABLES; SHOW VIEWS; SHOW MATERIALIZED VIEWS; SHOW INDEXES; SHOW INDEXES ON t; "
                 "SHOW COLUMNS FROM t") == [
        Show("tables"), Show("views"), Show("materialized views"), Show("indexes"), Show("indexes", "t"),
        Show("columns", "t")]
    assert parse("DROP TABLE a, b; DROP MATERIALIZED VIEW IF EXISTS v; DROP VIEW v; DROP INDEX i") == [
        Drop("table", ("a", "b")), Drop("materialized view", ("v",), True), Drop("view", ("v",)), Drop("index", ("i",))]


def test_sinks() -> None:
    assert parse("""CREATE SINK s FROM v INTO DELTA 'a b/c'; create sink if not exists "S" from "V" into delta 's3://b/c';
        DROP SINK IF EXISTS s; SHOW SINKS; SELECT sink FROM sink""")[:4] == [
        CreateSink("s", "v", "a b/c"), CreateSink("S", "V", "s3://b/c", if_not_exists=True),
        Drop("sink", ("s",), if_exists=True), Show("sinks"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", ";", " ; ;", "-- nothing"])
def test_no_statement(text: str) -> None:
    assert parse(text) == []


@pytest.mark.parametrize(("sql", "kept"), [
    ("to_char(ts, 'YYYY-MM-DD')", "to_char(ts, 'YYYY-MM-DD')"), ("arr[1]", "arr[1]"),
    ("date_trunc('day', ts)", "date_trunc('day', ts)"), ("mod(a, b)", "mod(a, b)"),
    ("generate_series(1, 2)", "generate_series(1, 2)"), ("interval '1 day 02:03'", "INTERVAL '1 day 02:03'"),
    ("interval '1' day", "INTERVAL '1 DAY'"), ("if(a, b, c)", "if(a, b, c)"),
])  # fmt: skip
def test_nothing_is_translated(sql: str, kept: str) -> None:
    (item,) = parse_query(f"SELECT {sql}").selects
    assert item.sql(Halfjoin, normalize_functions=False) == kept


@pytest.mark.parametrize("sql", SNIPPETS)
def test_what_is_parsed_can_be_written_and_parsed_again(sql: str) -> None:
    try:
        tree = Halfjoin().parse(sql)[0]
    except (SqlglotError, UnsupportedSQL):
        pytest.skip("not parsed")
    if isinstance(tree, exp.Query):
        written = tree.sql(Halfjoin, comments=False)
        assert parse_query(written).sql(Halfjoin) == written
