"""Statements that are refused before any name is looked up: the reason, the place, and the remedy."""

from __future__ import annotations

import pytest

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.parse.parse import parse


def refusal(sql: str) -> UnsupportedSQL:
    with pytest.raises(UnsupportedSQL) as caught:
        parse(sql)
    return caught.value


def test_the_text_shows_reason_place_and_remedy() -> None:
    assert str(refusal("CREATE TABLE t (\n  a int,\n  b xml\n)")).splitlines()[:3] == [
        "type xml is not supported (line 3, column 5)", "    b xml", "      ^"]


@pytest.mark.parametrize(("sql", "reason", "at"), [
    ("SELEC 1", "not a supported statement: SELEC", "SELEC"),
    ("CREATE SOURCE x", "a source needs FROM and a kind, such as FILES", "x"),
    ("SELECT 1 2 FROM t", "syntax error at '2'", "2 FROM"),
    ("SELECT a b c FROM t", "syntax error at 'c'", "c FROM"),
    ("SELECT 1_000", "trailing junk after numeric literal at '1_000'", "1_000"),
    ("SELECT '2k', 5k FROM t", "trailing junk after numeric literal at '5k'", "5k"),
    ("SELECT 1.5e3x", "trailing junk after numeric literal at '1.5e3x'", "1.5"),
    ("SELECT @@version", "syntax error at 'version'", "version"),
    ("SELECT a FROM t WHERE @@ 'x'", 'syntax error at "\'x\'"', "'x'"),
    ("CREATE VIEW v AS SELECT 1 WITH DATA", "syntax error at 'WITH'", "WITH"),
    ("CREATE TABLE t (a int) AS OF 5", "syntax error at '5'", "5"),
    ("SELECT a FROM t WHERE a = 1 WHERE a = 2", "syntax error at 'WHERE'", "WHERE a = 2"),
    ("SELECT a FROM t LIMIT 1 FETCH FIRST ROW ONLY", "syntax error at 'FETCH'", "FETCH"),
    ("INSERT INTO t SELECT a FROM t OFFSET 1 OFFSET 2", "syntax error at 'OFFSET'", "OFFSET 2"),
])  # fmt: skip
def test_syntax(sql: str, reason: str, at: str) -> None:
    error = refusal(sql)
    assert (error.reason, error.line, error.column) == (reason, 1, sql.index(at) + 1)


@pytest.mark.parametrize(("kind", "option"), [("FILES", "path"), ("Kafka", "brokers"), ("postgres", "publication")])
def test_a_source_without_a_table_shows_an_example_of_its_kind(kind: str, option: str) -> None:
    for text in (f"CREATE SOURCE s FROM {kind}", f"CREATE SOURCE s FROM {kind} (a 'b')"):
        remedy = refusal(text).remedy or ""
        assert f"FROM {kind.upper()} (" in remedy and option in remedy


@pytest.mark.parametrize(("sql", "last"), [("SELECT (1", "1"), ("SELECT a FROM", "FROM"), ("SELECT a FROM t,", ",")])
def test_a_text_that_ends_too_early_is_marked_behind_its_last_word(sql: str, last: str) -> None:
    error = refusal(sql)
    assert (error.reason, error.column) == (f"syntax error at the end, after {last!r}", len(sql) + 1)


@pytest.mark.parametrize(("sql", "kind", "at"), [
    ("SELECT 'abc", "quoted string", 8), ("SELECT 'a''b' || 'c''", "quoted string", 18),
    ("SELECT E'a\\'", "quoted string", 8), ('SELECT "a""', "quoted identifier", 8),
    ("SELECT 1 /* a /* b */", "/* comment", 10), ("SELECT $$a$", "dollar-quoted string", 8),
    ("SELECT $x$ $$ -- ' \n", "dollar-quoted string", 8), ("-- ' \" /*\n SELECT 'a", "quoted string", 9),
])  # fmt: skip
def test_a_quote_or_comment_without_an_end_is_named(sql: str, kind: str, at: int) -> None:
    error = refusal(sql)
    assert (error.reason, error.column, error.sqlstate) == (f"unterminated {kind}", at, "42601")


@pytest.mark.parametrize(("sql", "reason", "instead"), [
    ("CREATE TABLE t (a int REFERENCES u MATCH FULL)", "MATCH FULL is not supported", "MATCH SIMPLE"),
    ('CREATE TABLE "a.b" (a int)', "the name 'a.b' has a dot", '"s"."t"'),
    ('CREATE VIEW "a.b" AS SELECT 1 AS a', "the name 'a.b' has a dot", '"s"."t"'),
    ('CREATE INDEX "a.b" ON t (k)', "the name 'a.b' has a dot", '"s"."t"'),
    ('CREATE SEQUENCE s."a.b"', "the name 'a.b' has a dot", '"s"."t"'),
    ('ALTER TABLE t RENAME TO "a.b"', "the name 'a.b' has a dot", '"s"."t"'),
    ("CREATE TABLE t (a int UNIQUE NULLS NOT DISTINCT)", "UNIQUE NULLS NOT DISTINCT", "coalesce"),
    ("CREATE TABLE t (a int PRIMARY KEY, PRIMARY KEY (a))", "a table has one PRIMARY KEY", "PRIMARY KEY (a, b)"),
    ("CREATE TABLE t (a int, PRIMARY KEY (b))", "PRIMARY KEY names column b, which the table does not have", None),
    ("CREATE TABLE t (a int, A int)", "column a is named twice", None),
    ("CREATE TABLE t (a)", "column a has no type", None),
    ("CREATE TABLE t (a int AUTO_INCREMENT PRIMARY KEY)", "AUTO_INCREMENT is not supported", "AS IDENTITY"),
    ("CREATE TABLE t (a int COMMENT 'x')", "COMMENT in CREATE TABLE is not supported", "COMMENT ON COLUMN"),
    ("CREATE TABLE t (__time int)", "__time is the name of an update's own column", "another name"),
    ('CREATE TABLE t ("__TIME" int)', "__TIME is the name of an update's own column", "another name"),
    ("CREATE TABLE t (a numeric(39, 2))", "numeric(39,2) is not supported", "1 to 38"),
    ("CREATE TABLE t", "a table needs columns", "CREATE TABLE t (a"),
    ("CREATE TABLE t (a int) ON COMMIT DROP", "ON COMMIT can only be used on temporary tables", "CREATE TEMP TABLE"),
    ("CREATE VIEW v WITH (RETAIN HISTORY FOR 5) AS SELECT 1", "RETAIN HISTORY is not supported for a plain view",
     "CREATE MATERIALIZED VIEW"),
    ("CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR '1 month') AS SELECT 1", "a duration is in days or less",
     "in days"),
    ("CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR 'x') AS SELECT 1", "invalid input syntax for type interval",
     None),
    ("CREATE VIEW v AS SELECT 1 AS OF 5", "a view has no AS OF", "in the query"),
    ("CREATE UNIQUE INDEX ON t ((a + 1))", "a unique index over an expression", "name columns"),
    ("CREATE INDEX ON t USING gist (a)", "an index looks up equal keys, which gist is not for", "USING btree"),
    ("CREATE UNIQUE INDEX ON t (a) WHERE a > 1", "a unique index over some of the rows is not supported", "a view"),
    ("CREATE FUNCTION f(int) RETURNS int AS 'x' LANGUAGE sql", "CREATE FUNCTION is not supported", "TABLE, VIEW"),
    ("DROP FUNCTION s", "DROP FUNCTION is not supported", "TABLE, VIEW"),
    ("CREATE TYPE t AS (a int NOT NULL)", "a field of a type has a name and a type only", None),
    ("UPDATE t SET a = 1 WHERE CURRENT OF c", "WHERE CURRENT OF is not supported", "by its key"),
    ("CREATE TYPE t AS (a int, a text)", 'column "a" specified more than once', None),
    ("SELECT 1 AS OF a", "a time must be a constant", "write a number"),
    ("SELECT 1 AS OF 'x'", "invalid input syntax for type timestamp", None),
    ("SUBSCRIBE (SELECT 1)", "SUBSCRIBE takes the name of a view", "materialized view"),
    ("EXPLAIN v", "EXPLAIN takes a query, a view, or a change of rows", "EXPLAIN VIEW name"),
    ("EXPLAIN CREATE TABLE t (a int)", "EXPLAIN takes a query, a view, or a change of rows", "EXPLAIN SELECT"),
    ("EXPLAIN WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
     "EXPLAIN takes a query without AS OF and without changes in WITH", "EXPLAIN SELECT"),
    ("EXPLAIN ANALYZE SELECT 1", "EXPLAIN ANALYZE is not supported", "EXPLAIN SELECT"),
    ("EXPLAIN (VERBOSE, ANALYSE, FORMAT JSON) SELECT 1", "EXPLAIN ANALYZE is not supported", "engine.activity()"),
    ("EXPLAIN (BUFFERS) SELECT 1", "EXPLAIN (BUFFERS) tells of a run", "engine.activity()"),
    ("EXPLAIN (FORMAT XML) SELECT 1", "EXPLAIN has no format XML", "FORMAT JSON"),
    ("EXPLAIN (COLOURS) SELECT 1", "EXPLAIN has no option COLOURS", "COSTS"),
    ("EXPLAIN (COSTS maybe) SELECT 1", "COSTS is true or false, not MAYBE", "COSTS FALSE"),
    ("EXPLAIN (VERBOSE,) SELECT 1", "syntax error at ')'", None),
    ("EXPLAIN (VERBOSE", "syntax error at the end", None),
    ("VACUUM (ANALYZE", "syntax error at the end", None),
    ("VACUUM a b", "syntax error at 'b'", None),
    ("ANALYZE 1", "syntax error", None),
    ("SHOW 5", "SHOW needs a kind of object", "TABLES"),
    ("SHOW COLUMNS", "SHOW COLUMNS needs FROM and a name", None),
    ("COPY t FROM 'x'", "COPY from or to a file is not supported", "engine.copy_from"),
    ("MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED BY SOURCE THEN INSERT VALUES (1)",
     "WHEN MATCHED and NOT MATCHED BY SOURCE take UPDATE, DELETE", None),
    ("MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN DELETE", "WHEN NOT MATCHED takes INSERT", None),
    ("INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 1", "ON CONFLICT DO UPDATE needs the columns", "(a)"),
    ("UPDATE t SET (a, b) = (1, 2, 3)", "number of columns (2) does not match number of values (3)", None),
    ("PREPARE p AS CREATE TABLE x (a int)", "PREPARE takes a query", None),
    ("SET TIME = 1 + 1", "a time must be a constant", "write a number"),
    ("CHECKPOINT", "not a supported statement", "CREATE TABLE"),
])  # fmt: skip
def test_refused(sql: str, reason: str, instead: str | None) -> None:
    error = refusal(sql)
    assert error.reason.startswith(reason)
    assert instead is None or instead in (error.remedy or "")


def test_a_later_statement_is_placed_in_the_whole_text() -> None:
    error = refusal("SELECT 1;\nSELECT 2;\n  CREATE OR REPLACE TABLE t (a int)")
    assert error.line == 3


@pytest.mark.parametrize(("sql", "code"), [
    ("SELECT 1 FROM", "42601"), ("SELECT (1", "42601"), ("ALTER TABLE t ADD COLUM x int", "42601"),
    ("SELECT $2", "42P02"),
])  # fmt: skip
def test_codes_are_postgresqls(sql: str, code: str) -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        parse(sql, [1])
    assert caught.value.sqlstate == code
