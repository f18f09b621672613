"""Errors of the binder, with their places and remedies."""

from __future__ import annotations

import re

import pytest

import halfjoin as hj
from halfjoin.errors import UnknownName, UnsupportedSQL
from tests.support.front import bound


def test_an_unknown_column_is_underlined() -> None:
    with pytest.raises(UnknownName) as caught:
        bound("SELECT a,\n       bb\nFROM t")
    assert str(caught.value) == "unknown column 'bb' (line 2, column 8)\n         bb\n         ^\n  did you mean b?"


def test_an_ambiguous_column_names_both() -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        bound("SELECT a FROM t, u")
    assert str(caught.value) == (
        "column a is ambiguous: it could be t.a or u.a (line 1, column 8)\n"
        "  SELECT a FROM t, u\n         ^\n  write one of them")


@pytest.mark.parametrize(("sql", "message", "at"), [
    ("SELECT a FROM tt", "unknown table or view 'tt'", "tt"),
    ("SELECT t.nosuch FROM t", "unknown column 't.nosuch'", "t.nosuch"),
    ("SELECT x.a FROM t", "unknown table or alias 'x'", "x.a"),
    ("SELECT t.a FROM t AS x", "unknown table or alias 't'", "t.a"),
    ("SELECT x.* FROM t", "unknown table or alias 'x'", "x.*"),
    ("SELECT 1 FROM t JOIN u USING (nosuch)", "unknown column 'nosuch'", "nosuch"),
    ("SELECT nosuch(a) FROM t", "unknown function 'nosuch'", "nosuch"),
    ("SELECT 1 FROM t, u JOIN w ON t.a = w.c", "unknown table or alias 't'", "t.a"),
    ("WITH q AS (SELECT 1 FROM q) SELECT 1 FROM q", "unknown table or view 'q'", "q) SELECT"),
])  # fmt: skip
def test_unknown_names(sql: str, message: str, at: str) -> None:
    with pytest.raises(UnknownName, match=message) as caught:
        bound(sql)
    assert (caught.value.line, caught.value.column) == (1, sql.index(at) + 1)


@pytest.mark.parametrize(("sql", "remedy"), [
    ("SELECT cont(*) FROM t", "did you mean count"),
    ("SELECT summ(DISTINCT a) FROM t", "did you mean sum"),
    ("SELECT ifnull(a, 0) FROM t", "write coalesce"),
    ("SELECT median(a) FROM t", r"write percentile_cont\(0.5\)"),
    ("SELECT year(a) FROM t", r"write extract\(year FROM moment\)"),
])  # fmt: skip
def test_an_unknown_function_has_a_remedy(sql: str, remedy: str) -> None:
    with pytest.raises(UnknownName, match="unknown function") as caught:
        bound(sql)
    assert re.search(remedy, str(caught.value))


def test_names_that_differ_in_capitals() -> None:
    engine = hj.Engine()
    engine.execute('CREATE TABLE "T" ("Id" bigint PRIMARY KEY, it text); CREATE TABLE tt (a int)')
    for sql, quoted in [("SELECT * FROM T", '"T"'), ('SELECT x.Id FROM "T" AS x', '"x"."Id"')]:
        with pytest.raises(UnknownName, match=f"SQL keeps capitals of names in quotes only: {quoted}$"):
            engine.execute(sql)
    with pytest.raises(UnknownName, match=r"did you mean Id\? SQL"):
        engine.apply({"T": [{"id": 1}]})


@pytest.mark.parametrize(("sql", "reason", "instead"), [
    ("SELECT a, b AS a FROM t", "column a appears twice in the output", "give each an alias"),
    ("SELECT a + 1, b + 1 FROM t", "an unnamed column appears twice in the output", "give each an alias"),
    ("SELECT * FROM t, u", "column a appears twice in the output", "give each an alias"),
    ("SELECT a AS __diff FROM t", "__diff is the name of an update's own column", "another alias"),
    ('SELECT a AS "__Diff" FROM t', "__Diff is the name of an update's own column", "another alias"),
    ("SELECT FROM t", "a view needs at least one column", None),
    ("SELECT 1 FROM t, t", "table name t appears in FROM twice", "t AS t2"),
    ("SELECT 1 FROM d.s.t", "there is one database, halfjoin", "schema.name"),
    ("SELECT x.k FROM (SELECT a AS k, b AS k FROM t) x", "column k is ambiguous: x has two of that name", "alias"),
    ("SELECT 1 FROM t, (SELECT t.a AS q) s", "t is to the left of the subquery", "write LATERAL"),
    ("SELECT 1 FROM t, (SELECT s AS q) x", "s is to the left of the subquery", "write LATERAL"),
    ("SELECT 1 FROM t JOIN u", "JOIN needs ON or USING", "CROSS JOIN"),
    ("SELECT 1 FROM t CROSS JOIN u ON true", "CROSS JOIN takes no condition", "JOIN ... ON"),
    ("SELECT 1 FROM t WHERE a", "a condition must be boolean, not integer", None),
    ("SELECT 1 FROM t JOIN u ON t.a", "a condition must be boolean, not integer", None),
    ("SELECT a FROM t UNION ALL SELECT s FROM t", "types integer and text cannot be matched", None),
    ("SELECT a, b FROM t UNION ALL SELECT a FROM t", "the parts of UNION ALL have different numbers", None),
    ("SELECT 1 FROM (VALUES (1), (2, 3)) v", "a row of VALUES has 2 values, the first one 1", None),
    ("SELECT 1 FROM u AS x (a, b, c, d)", "x has 3 columns, but 4 names are given", None),
    ("SELECT a = 'x' FROM t", 'invalid input syntax for type integer: "x"', None),
])  # fmt: skip
def test_mistakes(sql: str, reason: str, instead: str | None) -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        bound(sql)
    assert caught.value.reason.startswith(reason)
    assert instead is None or instead in (caught.value.remedy or "")


@pytest.mark.parametrize(("sql", "reason", "instead"), [
    ("SELECT a FROM t FOR UPDATE", "a view locks no rows", "half a batch"),
    ("SELECT a FROM t TABLESAMPLE SYSTEM (1)", "TABLESAMPLE is not supported: a view must not", "id % 100 = 0"),
    ("SELECT s COLLATE \"de_DE\" FROM t", "text compares by code point only", 'COLLATE "C"'),
    ("SELECT if(ok, 1, 2) FROM t", "PostgreSQL has no function if", "CASE WHEN"),
    ("SELECT ARRAY[]", "an empty array has no type", "ARRAY[]::integer[]"),
    ("SELECT (a, b) < (1, 2, 3) FROM t", "2 values are compared with 3", None),
    ("SELECT t.a FROM t SEMI JOIN u ON t.a = u.a", "SEMI JOIN is not supported", "WHERE EXISTS"),
    ("SELECT t.a FROM t LEFT ANTI JOIN u ON t.a = u.a", "ANTI JOIN is not supported", "WHERE NOT EXISTS"),
    ("SELECT t.a FROM t ASOF JOIN u ON t.a = u.a", "ASOF JOIN is not supported", "LATERAL"),
    ("SELECT * FROM t PIVOT (max(a) FOR b IN (1, 2))", "PIVOT is not supported in FROM", "FILTER"),
    ("SELECT a FROM t VERSION AS OF 5", "a version is not supported in FROM", "AS OF time"),
    ("SELECT listagg(s, ',') WITHIN GROUP (ORDER BY s) FROM t", "WITHIN GROUP specified, but listagg", "string_agg"),
    ("SELECT s LIKE ANY (SELECT 'x') FROM t", "LIKE takes ANY and ALL of an array only", "EXISTS (SELECT FROM (query)"),
    ("SELECT s ILIKE ALL (string_to_array(s, ',')) FROM t", "ILIKE takes ANY and ALL of a constant array", "unnest"),
    ("SELECT s || ANY (ARRAY['a', 'b']) FROM t", "ANY stands behind a comparison or LIKE only", "'a|b'"),
    ("SELECT current_date", "current_date: its answer changes with the clock", "mz_now()"),
    ("SELECT now()", "now: its answer changes with the clock", "mz_now()"),
    ("SELECT $1", "there is no value for this parameter", "execute(sql, params)"),
    ("SELECT s -> 'x' FROM t", "no operator text -> unknown literal", "the left side is a json or jsonb"),
])  # fmt: skip
def test_not_maintained(sql: str, reason: str, instead: str | None) -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        bound(sql)
    assert caught.value.reason.startswith(reason)
    assert instead is None or instead in (caught.value.remedy or "")
