"""char(n): blanks do not count in comparisons, lengths and text, and count where PostgreSQL says so."""

from __future__ import annotations

import pytest

import halfjoin as hj
from tests.support.scalar_sql import wrong

COMPARED = [  # char(n) decides over varchar, text over both
    ("'ab  '::varchar = 'ab'::char(5)", "true"), ("'ab  '::text = 'ab'::char(5)", "false"),
    ("'a '::varchar IN ('a'::char(3))", "true"), ("'a '::varchar IN ('a'::char(3), 'b'::char(3))", "false"),
    ("'a'::char(3) IN ('a '::varchar, 'b'::varchar)", "true"), ("'a'::char(3) IN ('a '::text, 'b'::text)", "true"),
    ("'a'::char(3) = ANY(ARRAY['a '::text])", "false"), ("'a '::varchar = ANY(ARRAY['a'::char(3)])", "true"),
    ("nullif('a '::varchar, 'a'::char(3))", None), ("nullif('a '::varchar, 'b'::char(3)) || '|'", "a|"),
    ("nullif('a '::text, 'a'::char(3)) || '|'", "a |"), ("'a '::varchar > 'a'::char(3)", "false"),
    ("'a '::varchar IS DISTINCT FROM 'a'::char(3)", "false"), ("'a '::text > 'a'::char(3)", "true"),
    ("CASE 'a '::varchar WHEN 'a'::char(3) THEN 1 END", "1"), ("CASE 'a '::text WHEN 'a'::char(3) THEN 1 END", None),
]  # fmt: skip
TOGETHER = [  # the first type decides, and the ELSE of a CASE is the first
    ("coalesce('b'::char(3), 'a '::text) || '|'", "b|"), ("coalesce(NULL::char(3), 'a '::text) || '|'", "a|"),
    ("coalesce('a '::varchar, 'b'::char(3)) || '|'", "a |"), ("greatest('a'::char(3), 'a '::text) || '|'", "a|"),
    ("CASE WHEN true THEN 'a '::text ELSE 'b'::char(3) END || '|'", "a|"), ("'abc '::bpchar || '|'", "abc|"),
    ("(ARRAY['b '::text, 'a'::char(3)])[1] || '|'", "b |"), ("'abc'::char", "a"),
]  # fmt: skip
BLANKS_COUNT = [
    ("octet_length('é'::char(3))", "4"), ("'ab'::char(5) LIKE 'ab'", "false"), ("'ab'::char(5) LIKE 'ab   '", "true"),
    ("'ab'::char(5) LIKE '_____'", "true"), ("'ab'::char(5) ILIKE 'AB'", "false"), ("'ab'::char(5) ~ 'b$'", "false"),
    ("'ab'::char(5) !~* 'B$'", "true"), ("'ab' LIKE 'ab'::char(5)", "true"), ("'ab' ~ 'b$'::char(5)", "true"),
    ("concat('a'::char(3), 1, '|')", "a  1|"), ("concat_ws(','::char(3), 'b', 'c'::char(3))", "b,c  "),
    ("'é'::char(3)::bytea", "\\xc3a92020"), ("'{a,b}'::char(2)[]::text", '{"a ","b "}'),
    ("array_to_string('{a,NULL}'::char(3)[], ',', '*')", "a  ,*"), ("concat(VARIADIC '{a,b}'::char(2)[])", "a b "),
    ("concat_ws('-', VARIADIC '{a,b}'::char(2)[])", "a -b "), ("to_jsonb('{a,NULL}'::char(3)[])", '["a  ", null]'),
    ("to_json('{a}'::char(2)[])::text", '["a "]'), ("jsonb_build_array(ARRAY['é'::char(2)])", '[["é "]]'),
    ("to_jsonb(ARRAY[ROW('a'::char(2))])", '[{"f1": "a "}]'), ("format('%s|', VARIADIC '{a}'::char(3)[])", "a  |"),
    ("format('%s', VARIADIC '{\"a,b\"}'::char(4)[])", "a,b "),
]  # fmt: skip
BLANKS_DO_NOT = [
    ("length('a'::char(3))", "1"), ("'a'::char(3) || 'x'", "ax"), ("1 || 'a'::char(3) || '|'", "1a|"),
    ("upper('a'::char(3)) || '|'", "A|"), ("regexp_replace('a'::char(3), ' ', 'x')", "a"),
    ("starts_with('a'::char(3), 'a ')", "false"), ("'12'::char(5)::int", "12"), ("'t'::char(5)::bool", "true"),
    ("quote_literal('a'::char(3))", "'a'"), ("quote_nullable('a'::char(3))", "'a'"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "answer"), COMPARED + TOGETHER + BLANKS_COUNT + BLANKS_DO_NOT)
def test_char_is_as_in_postgresql(sql: str, answer: str | None) -> None:
    assert wrong(sql, answer) == []


@pytest.mark.parametrize("printed", [
    "octet_length({})", "to_jsonb({})", "ARRAY[{}]::text", "to_json(ARRAY[{}])", "array_to_string(ARRAY[{}], ',')",
    "ROW({})::text", "ARRAY[ROW({})]::text", "to_jsonb(ARRAY[ARRAY[{}]])", "concat(ARRAY[{}])",
])  # fmt: skip
def test_blanks_of_no_known_number_are_refused(printed: str) -> None:
    for char in ("coalesce(c, d)", "(SELECT c UNION ALL SELECT d LIMIT 1)", "coalesce(c, v)"):
        with pytest.raises(hj.UnsupportedSQL, match="a char without a length"):
            hj.Engine().execute(f"""
                CREATE TABLE t (c char(3), d char(5), v varchar(3));
                CREATE MATERIALIZED VIEW v AS SELECT {printed.format(char)} AS n FROM t""")


JOINS = {
    "SELECT t.k, u.k AS l FROM t JOIN u ON t.v = u.c": [(1, 1), (2, 1), (3, 2)],
    "SELECT t.k, u.k AS l FROM t JOIN u ON t.s = u.c": [(1, 1), (3, 2)],
    "SELECT t.k, u.k AS l FROM t JOIN u ON t.v = u.v": [(1, 2)],
    "SELECT t.k, length(v) AS l FROM t JOIN (SELECT c AS v FROM u) AS w USING (v)": [(1, 2), (2, 4), (3, 0)],
    "SELECT t.k, length(v) AS l FROM (SELECT c AS v FROM u) AS w JOIN t USING (v)": [(1, 2), (2, 2), (3, 0)],
    "SELECT a.k, b.k AS l FROM t AS a, u, t AS b WHERE a.v = u.c AND u.c = b.s": [(1, 1), (2, 1), (3, 3)],
}


@pytest.mark.parametrize("sql", JOINS)
def test_char_as_a_join_key_is_compared_by_its_type(sql: str) -> None:
    engine = hj.Engine()
    engine.execute(f"""
        CREATE TABLE t (k int, v varchar(6), s text);
        CREATE TABLE u (k int, c char(6), v varchar(6));
        CREATE MATERIALIZED VIEW one AS {sql}""")
    engine.execute("INSERT INTO t VALUES (1, 'ab', 'ab'), (2, 'ab  ', 'ab  '), (3, '', '')")
    engine.execute("INSERT INTO u VALUES (1, 'ab', 'x'), (2, '', 'ab')")
    engine.execute(f"CREATE MATERIALIZED VIEW two AS {sql}")
    for view in ("one", "two"):
        assert sorted(tuple(row.values()) for row in engine.read(view).to_pylist()) == JOINS[sql]
