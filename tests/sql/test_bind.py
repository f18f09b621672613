"""The meaning of queries: exact bound relations."""

from __future__ import annotations

from textwrap import dedent

import pytest

from halfjoin.sql.bind.bind import bind_scalar
from halfjoin.sql.definitions import CreateIndex
from halfjoin.sql.expr import Call, Column, Literal
from halfjoin.sql.functions import render
from halfjoin.sql.parse.parse import parse, parse_query
from halfjoin.sql.relation import Project, Values
from halfjoin.sql.types import BIGINT, BOOLEAN, INTEGER, UNKNOWN, numeric
from tests.support.front import SCHEMA, bound, outputs, shown


def check(sql: str, tree: str) -> None:
    assert shown(sql) == dedent(tree).strip()


def test_select_from_where() -> None:
    check("SELECT a, b + 1 AS next FROM t WHERE a > 3 AND s = 'x'", """
        Project a = t.a, next = t.b + 1
          Filter t.a > 3 AND t.s = 'x'
            Scan t
    """)


def test_a_self_join_has_an_alias_each() -> None:
    check("SELECT x.a, y.b FROM t AS x, t AS y WHERE x.a = y.b", """
        Project a = x.a, b = y.b
          Filter x.a = y.b
            Join
              Scan t as x
              Scan t as y
    """)


def test_aliases_are_unique_in_the_whole_view() -> None:
    check("WITH q AS (SELECT a FROM t) SELECT q.a, r.a AS other FROM q, q AS r, (SELECT 1 FROM t) AS s", """
        Project a = q.a, other = r.a
          Join
            Project q.a = t.a
              Scan t
            Project r.a = t#2.a
              Scan t as t#2
            Project s.?column? = 1
              Scan t as t#3
    """)


def test_joins_nest_as_written() -> None:
    tree = """
        Project a = t.a
          Filter t.a = u.a
            Filter u.c = w.c
              Join
                Scan t
                Scan u
                Scan w
    """
    check("SELECT t.a FROM t JOIN (u JOIN w ON u.c = w.c) ON t.a = u.a", tree)
    check("SELECT t.a FROM t JOIN u JOIN w ON u.c = w.c ON t.a = u.a", tree)


def test_subqueries_views_and_column_lists() -> None:
    check("SELECT k, b1 FROM (SELECT a, s FROM t) AS x (k), pv", """
        Project k = x.k, b1 = pv.b1
          Join
            Project x.k = t.a, x.s = t.s
              Scan t
            Project pv.a = t#2.a, pv.b1 = t#2.b + 1
              Filter t#2.a > 0
                Scan t as t#2
    """)
    assert outputs("SELECT * FROM named") == ["k integer", "l integer"]


def test_with_is_scoped() -> None:
    assert outputs("WITH t AS (SELECT 1 AS one) SELECT * FROM t") == ["one integer"]
    assert outputs("WITH t AS (SELECT b FROM t) SELECT * FROM t") == ["b bigint"]
    assert outputs("WITH q (k) AS (SELECT a FROM t), r AS (SELECT k + 1 AS l FROM q) SELECT * FROM r") == ["l integer"]
    assert outputs("SELECT * FROM (WITH q AS (SELECT 1 AS k) SELECT k FROM q) x") == ["k integer"]
    assert outputs("WITH t AS (SELECT 1 AS one) SELECT * FROM pv") == ["a integer", "b1 bigint"]  # reads the table


def test_union_all_casts_to_the_common_type() -> None:
    check("SELECT a FROM t UNION ALL SELECT c FROM u UNION ALL SELECT '3'", """
        Project a = union.a
          UnionAll as (union.a)
            Project union#2.a = t.a
              Scan t
            Project union#3.c = u.c
              Scan u
            Project union#4.?column? = 3
              Values ()
    """)
    relation = bound("SELECT a FROM t UNION ALL SELECT c FROM u UNION ALL VALUES (NULL)")
    assert [column.type for column in relation.columns] == [BIGINT]


def test_values() -> None:
    assert outputs("VALUES (1, 'x', NULL), (2.5, NULL, NULL)") == [
        "column1 numeric(11,1)", "column2 text", "column3 text"]
    assert outputs("SELECT * FROM (VALUES (1), (2)) AS v (k)") == ["k integer"]
    assert outputs("WITH q AS (VALUES (1, 2)) SELECT * FROM q") == ["column1 integer", "column2 integer"]


def test_no_from_is_one_row_of_no_columns() -> None:
    relation = bound("SELECT 1 AS one")
    assert isinstance(relation, Project)
    assert relation.input == Values("row", (), ((),))


@pytest.mark.parametrize(("sql", "columns"), [
    ("SELECT * FROM u", "a c x"),
    ("SELECT * FROM u JOIN w USING (c)", "c a x z"),
    ("SELECT * FROM w NATURAL JOIN u", "c z a x"),
    ("SELECT * FROM u JOIN w USING (c) JOIN (SELECT a, s FROM t) k USING (a)", "a c x z s"),
    ("SELECT w.*, x FROM u JOIN w USING (c)", "c z x"),
    ("SELECT * FROM w, LATERAL (SELECT c + 1 AS d) s", "c z d"),
    ("SELECT * FROM w, generate_series(1, 2) g, repeat_row(2)", "c z g"),
    ("SELECT * FROM generate_series(1, 2) WITH ORDINALITY", "generate_series ordinality"),
])  # fmt: skip
def test_star(sql: str, columns: str) -> None:
    assert [column.name for column in bound(sql).columns] == columns.split()


def test_a_merged_column_has_the_common_type() -> None:
    check("SELECT c, u.c AS left_c, w.c AS right_c FROM u JOIN w USING (c)", """
        Project c = u.c, left_c = u.c, right_c = w.c
          Filter u.c = w.c
            Join
              Scan u
              Scan w
    """)
    assert outputs("SELECT k FROM (SELECT a AS k FROM t) x JOIN (SELECT c AS k FROM w) y USING (k)") == ["k bigint"]


def test_an_inner_column_hides_an_outer_one() -> None:
    check("SELECT q FROM u, LATERAL (SELECT c AS q FROM w WHERE w.c = u.c) s", """
        Project q = s.q
          Project u.a = u.a, u.c = u.c, u.x = u.x, w.c = w.c, w.z = w.z, s.q = w.c
            Filter w.c = u.c
              Join
                Scan u
                Scan w
    """)


@pytest.mark.parametrize(("expression", "name"), [
    ("a", "a"), ("t.a", "a"), ("(a)", "a"), ("a + 1", "?column?"), ("-a", "?column?"), ("a::text", "a"),
    ("(a + 1)::text", "text"), ("'1'::int", "int4"), ("'1'::bigint", "int8"), ("1::real", "float4"),
    ("a::int::text", "a"),
    ("'1'::numeric(5, 2)", "numeric"), ("'x'::varchar(3)", "varchar"), ("'x'::char(3)", "bpchar"),
    ("'{1}'::int[]", "int4"),
    ("date '2020-01-01'", "date"), ("true", "?column?"), ("NULL", "?column?"), ("'x'", "?column?"),
    ("a IS NULL", "?column?"),
    ("a = 1", "?column?"), ("a IN (1)", "?column?"), ("a BETWEEN 1 AND 2", "?column?"), ("NOT ok", "?column?"),
    ("CASE WHEN ok THEN 1 END", "case"), ("CASE WHEN ok THEN 1 ELSE a END", "a"),
    ("CASE WHEN ok THEN 1 ELSE 2 END", "case"),
    ("CASE WHEN ok THEN 'x' ELSE s END::varchar", "s"), ("COALESCE(a, 1)", "coalesce"), ("NULLIF(a, 1)", "nullif"),
    ("GREATEST(a, 1)", "greatest"), ("unnest(arr)", "unnest"), ("ts AT TIME ZONE 'UTC'", "timezone"),
])  # fmt: skip
def test_names_are_postgresqls(expression: str, name: str) -> None:
    assert [column.name for column in bound(f"SELECT {expression} FROM t").columns] == [name]


def test_case_and_quotes_of_names() -> None:
    assert outputs('SELECT T.A, "Name", "select" FROM T, "Odd"') == ["a integer", "Name text", "select integer"]


@pytest.mark.parametrize(("written", "literal"), [
    ("1", Literal(1, INTEGER)), ("-1", Literal(-1, INTEGER)), ("2147483647", Literal(2147483647, INTEGER)),
    ("2147483648", Literal(2147483648, BIGINT)), ("-2147483648", Literal(-2147483648, INTEGER)),
    ("TRUE", Literal(True, BOOLEAN)), ("'it''s'", Literal("it's", UNKNOWN)),
    (r"E'a\tb\'c'", Literal("a\tb'c", UNKNOWN)),
    ("$$raw ' text$$", Literal("raw ' text", UNKNOWN)), ("'a' 'b'", Literal("ab", UNKNOWN)),
    ("NULL", Literal(None, UNKNOWN)),
])  # fmt: skip
def test_literals(written: str, literal: Literal) -> None:
    (node,) = parse_query(f"SELECT {written}").selects
    assert bind_scalar(node, (), SCHEMA, "") == literal


@pytest.mark.parametrize(("written", "value", "type"), [
    ("1.50", "1.50", numeric(3, 2)), (".5", "0.5", numeric(1, 1)), ("0.05", "0.05", numeric(2, 2)),
    ("1e3", "1000", numeric(4, 0)), ("1.5e1", "15", numeric(2, 0)), ("1e-3", "0.001", numeric(3, 3)),
    ("9223372036854775808", "9223372036854775808", numeric(19, 0)),
])  # fmt: skip
def test_exact_numbers(written: str, value: str, type: object) -> None:
    (node,) = parse_query(f"SELECT {written}").selects
    literal = bind_scalar(node, (), SCHEMA, "")
    assert isinstance(literal, Literal)
    assert (str(literal.value), literal.type) == (value, type)


@pytest.mark.parametrize(("sql", "meaning"), [
    ("a BETWEEN 1 AND 2", "a >= 1 AND a <= 2"),
    ("a BETWEEN SYMMETRIC 2 AND 1", "a >= 2 AND a <= 1 OR a >= 1 AND a <= 2"),
    ("(a, b) = (1, 2)", "a = 1 AND b = 2"),
    ("(a, b) <> (1, 2)", "a <> 1 OR b <> 2"),
    ("(a, b) IN ((1, 2), (3, 4))", "a = 1 AND b = 2 OR a = 3 AND b = 4"),
    ("CASE a WHEN 1 THEN 'x' ELSE s END", "CASE WHEN a = 1 THEN 'x' ELSE s END"),
    ("a ISNULL OR a NOTNULL", "a IS NULL OR a IS NOT NULL"),
    ("ok IS NOT UNKNOWN", "ok IS NOT NULL"),
    ("d + interval '1' day", "d + interval '1 day'"),
    ("date(ts) = d", "ts::date = d"),
    ("substring(s FOR 2)", "substring(s, 1, 2)"),
    ("trim(LEADING 'x' FROM s)", "ltrim(s, 'x')"),
    ("position('x' IN s)", "strpos(s, 'x')"),
    ("ts AT TIME ZONE 'UTC'", "ts::timestamptz"),
    ("a = ANY(arr) AND a <> ALL(arr)", "a = ANY(arr) AND a <> ALL(arr)"),
    ("arr[1] = 1", "arr[1] = 1"),
    ("s LIKE 'a%' OR s NOT ILIKE 'x'", "s LIKE 'a%' OR NOT s ILIKE 'x'"),
    ("s !~ 'x' OR s ~* 'y'", "NOT s ~ 'x' OR s ~* 'y'"),
    ("s COLLATE \"C\" = 'x'", "s = 'x'"),
    ("a = 1 AND (b = 2 AND ok)", "a = 1 AND b = 2 AND ok"),
])  # fmt: skip
def test_forms(sql: str, meaning: str) -> None:
    columns = SCHEMA.columns("t") or ()
    (node,) = parse_query(f"SELECT {sql}").selects
    assert render(bind_scalar(node, columns, SCHEMA, sql)) == meaning


def test_a_long_chain_is_one_call() -> None:
    (node,) = parse_query("SELECT ok AND ok AND ok AND ok").selects
    expr = bind_scalar(node, [Column("ok", BOOLEAN)], SCHEMA, "")
    assert isinstance(expr, Call) and len(expr.args) == 4


def test_index_keys_are_over_bare_columns() -> None:
    sql = "CREATE INDEX ON u (a, (c + 1), u.c)"
    (index,) = parse(sql)
    assert isinstance(index, CreateIndex)
    columns = SCHEMA.columns("u") or ()
    keys = [render(bind_scalar(key, columns, SCHEMA, sql, "u")) for key in index.keys]
    assert keys == ["a", "c + 1", "c"]
