"""Text functions in their corners: patterns, the case of special letters, classes, split_part."""
# ruff: noqa: RUF001

from __future__ import annotations

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.scalar import compile
from halfjoin.sql.expr import Column
from halfjoin.sql.functions import resolve
from halfjoin.sql.types import TEXT
from tests.support.scalar_sql import expression, wrong

CASES = [  # letter by letter
    ("lower('İΣς')", "iσς"), ("upper('ſςßᾳ')", "SΣßᾼ"), ("'ſ' ILIKE 's'", "false"), ("'ς' ILIKE 'Σ'", "false"),
    ("'σ' ILIKE 'Σ'", "true"), ("'İ' ILIKE 'i'", "true"), ("'K' ILIKE 'k'", "true"), ("'ſ' ~* 's'", "false"),
    ("'S' ~* 'ſ'", "true"), ("'ς' ~* 'σ'", "false"), ("'Σ' ~* 'ς'", "true"), ("'ſ' ~* '[a-z]'", "false"),
    ("'ſ' ~* 's|a'", "false"), ("'ſ' ~* '[s]|b'", "false"),
    ("'É' ~* 'é'", "true"), ("'É' ~* '[à-ý]'", "true"), ("'a' ~* '[[:upper:]]'", "true"), ("'B' ~* '[^b]'", "false"),
    ("regexp_replace('Straſse', 'S', 'x', 'gi')", "xtraſxe"),
]  # fmt: skip
CLASSES = [
    ("'…' ~ '[[:punct:]]'", "true"), ("'€' ~ '[[:punct:]]'", "true"), ("'a' ~ '[[:punct:]]'", "false"),
    ("E'\\u2003' ~ '\\s'", "true"), ("E'\\u00a0' ~ '\\s'", "false"), ("E'\\u3000' ~ '[[:space:]]'", "true"),
    ("'५' ~ '\\w'", "true"), ("'५' ~ '\\d'", "false"), ("'Ⅷ' ~ '[[:alpha:]]'", "true"),
    ("E'\\u0085' ~ '[[:cntrl:]]'", "true"), ("E'\\u2003' ~ '\\S'", "false"),
]  # fmt: skip
SPLIT = [
    ("split_part('a,b', '', NULL)", None), ("split_part('a,b', ',', NULL)", None), ("split_part('a,b', '', -1)", "a,b"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "answer"), CASES + CLASSES + SPLIT)
def test_text_functions_are_as_in_postgresql(sql: str, answer: str | None) -> None:
    assert wrong(sql, answer) == []


# text, pattern, whether it fails: where the text gets to the escape character at the pattern's end
ENDS = [
    ("abc", "ab\\", True), ("ab", "ab\\", False), ("xbc", "ab\\", False), ("abc", "%\\", True), ("", "%\\", False),
    ("abc", "ab%_\\", True), ("ab", "ab%\\", False), ("a%b", "a\\%\\", True), ("abc", "ab\\\\", False),
    ("a", None, False), (None, "%\\", False),
]  # fmt: skip


@pytest.mark.parametrize("operator", ["like", "ilike"])
def test_a_pattern_that_ends_with_its_escape_fails(operator: str) -> None:
    expr = compile(resolve(operator, (Column("a", TEXT), Column("b", TEXT))))
    texts, patterns, fails = zip(*ENDS, strict=True)
    result = expr.evaluate({"a": pa.array(texts), "b": pa.array(patterns)}, len(ENDS))
    assert result.failures is not None
    assert set(result.failures.rows.tolist()) == {row for row, bad in enumerate(fails) if bad}
    assert result.values.to_pylist()[1] is False and result.values.to_pylist()[-1] is None


def test_such_a_pattern_is_data_not_the_end_of_the_view() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a text, b text); CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a LIKE b")
    engine.apply({"t": [{"a": "ab", "b": "a%"}]}, time=1)
    engine.apply({"t": [{"a": "ab", "b": "a\\"}]}, time=2)
    with pytest.raises(hj.DataError, match="must not end with escape character"):
        engine.read("v")
    engine.apply({"t": hj.deletes([{"a": "ab", "b": "a\\"}])}, time=3)
    assert engine.read("v").to_pylist() == [{"a": "ab"}]


def test_an_element_of_no_array_needs_no_index() -> None:
    assert wrong("('{1,2}'::int[])[1 / 0]", "ERROR: division by zero") == []
    expr = compile(expression("(CASE WHEN 1 = 2 THEN ARRAY[1] END)[1 / 0]"))
    assert expr.evaluate({}, 2).values.to_pylist() == [None, None] and expr.evaluate({}, 2).failures is None


QUOTED = [  # in a pattern of numbers, a backslash before a quote
    (r"""to_char(100::numeric, 'f\"oo999')""", 'f"oo 100'), (r"""to_char(100::numeric, 'f\\"oo999')""", r'f\"oo 100'),
    (r"""to_char(100::numeric, '"a\""999')""", 'a" 100'), (r"""to_char(100::numeric, '"a\\"999')""", r"a\ 100"),
    (r"""to_char(100, '\M""999')""", r"\M 100"), (r"""to_char(100, '999"b\')""", " 100b\\"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "answer"), QUOTED)
def test_patterns_of_numbers_quote_as_in_postgresql(sql: str, answer: str) -> None:
    assert wrong(sql, answer) == []


UNREADABLE = [r"'a' ~ '$()|^\1'", r"'xyz' ~ 'x(\w)(?=\1)'", "U&'+0061' UESCAPE '+'", "U&'da0061' UESCAPE 'a'"]


@pytest.mark.parametrize("sql", UNREADABLE)
def test_what_has_no_safe_meaning_is_refused(sql: str) -> None:
    with pytest.raises(hj.UnsupportedSQL):
        hj.Engine().query(f"SELECT {sql} AS x")


def test_a_group_before_all_branches_can_be_referred_to() -> None:
    assert hj.Engine().query(r"SELECT 'aca' ~ '^(a)(b|c\1)$' AS x, 'aab' ~ '^((a)|(b))\1b' AS y").to_pylist() == [
        {"x": True, "y": True}]


def test_escape_of_a_pattern_that_is_not_constant() -> None:
    engine = hj.Engine()
    engine.execute("""
        CREATE TABLE t (a text, b text, c text);
        CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a LIKE b || '%' ESCAPE '/';
        CREATE MATERIALIZED VIEW w AS SELECT a FROM t WHERE a ILIKE b ESCAPE 'X';
    """)
    texts = [("a_bc", "a/_b"), ("axbc", "a/_b"), ("x/", "x//"), (r"q\z", "q\\"), ("é_", "é/_"), ("AX_", "aXXX_")]
    engine.apply({"t": [{"a": a, "b": b} for a, b in texts]})
    assert sorted(engine.read("v")["a"].to_pylist()) == sorted(["a_bc", "x/", r"q\z", "é_"])
    assert engine.read("w")["a"].to_pylist() == ["AX_"]
    engine.execute("DELETE FROM t WHERE a = 'x/'")
    assert "x/" not in engine.read("v")["a"].to_pylist()
    for pattern, escape, matches in [("a/_", "/", ["a_bc"]), ("a__c", "", ["a_bc", "axbc"]), ("a", None, [])]:
        found = engine.query("SELECT a FROM t WHERE a LIKE $1::varchar || '%' ESCAPE $2 ORDER BY a", [pattern, escape])
        assert found["a"].to_pylist() == matches
    with pytest.raises(hj.HalfjoinError, match="one character"):
        engine.query("SELECT a LIKE b ESCAPE '//' FROM t")
    with pytest.raises(hj.DataError, match="must not end with escape character"):
        engine.query("SELECT 'a/' LIKE b ESCAPE '/' FROM (VALUES ('a/')) AS p (b)")
