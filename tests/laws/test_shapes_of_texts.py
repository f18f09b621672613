"""The law of shapes, for constants that are written into the text: other constants answer, and fail, as made anew."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.statements import remembered
from halfjoin.engine.statements.evaluating import filled
from halfjoin.engine.statements.remembered import MOST
from halfjoin.sql.parse import lifting
from halfjoin.sql.parse.lifting import lifted
from halfjoin.sql.parse.parse import trees_of
from halfjoin.sql.parse.prepared import prepared
from tests.laws.test_remembered_queries import Forgetful
from tests.laws.test_shapes import COLUMNS, ONE, TWO, answer, cannot_be_made, engines, said

CONSTANTS = {
    "number": ["0", "1", "2", "3", "5", "007", "40", "100", "2147483647", "2147483648", "9223372036854775807",
               "9223372036854775808", "99999999999999999999", "123456789012345678"],
    "text": ["'1'", "'2'", "'-1'", "' 3 '", "'abc'", "''", "'a'", "'b'", "'e'", "'a  '", "'abcdef'", "'it''s'", "'''''",
             "''''", "'2024-01-03'", "'2024-01-04 00:00:00'", "'infinity'", "'{1,1}'", "'{\"a\": 1}'", "'t'", "'nan'",
             "'1.5'", "'\\x01'", "'a\\'", "'$1'", "'$a$'", "'99999999999'", "'00000000-0000-0000-0000-000000000003'",
             "'= 5'", "'-- x'", "'/* x'", "'\"'", "'pg_catalog'", "'halfjoin'", "'a\nb'", "'été'", "'12:30'", "'%a_'"],
    "day": ["date '2024-01-03'", "date '2024-01-04'", "DATE  '2024-02-30'", "date '9999-12-31'", "date 'infinity'",
            "date 'x'", "date '2024-01-05'::timestamp", "'2024-01-03'::date", "'2024-01-04'::date"],
    "moment": ["timestamp '2024-01-03 00:00'", "timestamp '2024-01-04'", "timestamptz '2024-01-03 00:00+02'"],
    "other": ["-1", "- 2", "+3", "1.5", "2.50", ".5", "1e2", "NULL", "true", "FALSE", "E'a'", "E'\\x61'", "U&'\\0061'",
              "$$a$$", "$t$b$t$", "interval '1 day'", "interval '2' day", "B'1'", "(2)", "1 + 1", "'a' || 'b'",
              "'a'\n'b'",
              "k", "i", "5::bigint", "'3'::integer", "CAST('2' AS smallint)", "ARRAY[1, 2]", "'a' COLLATE \"C\"",
              "current_date", "0x1F", "1_000", "(SELECT 2)", "ANY (ARRAY[1, 2])", "ANY ('{1,3}')", "ALL ('{2}')"],
}  # fmt: skip
MORE = [
    "SELECT k FROM t WHERE {c} = {v} ORDER BY 1 LIMIT 2",
    "SELECT k, 1 AS n FROM t WHERE {c} IN ({v}, {v}) ORDER BY 2, 1",
    "SELECT i, count(*) AS r FROM t WHERE {c} = {v} GROUP BY 1", "SELECT k FROM t WHERE {c} NOT IN ({v}) OR k = {v}",
    "SELECT k FROM t WHERE {c} BETWEEN {v} AND {v} AND k < 9", "SELECT k FROM t WHERE {c} NOT BETWEEN {v} AND {v}",
    "SELECT k FROM t WHERE {c} BETWEEN SYMMETRIC {v} AND {v}", "SELECT k FROM t WHERE {c} >= {v} AS OF 2",
    "SELECT k FROM t WHERE {c} = {v} -- {c} = 5\n AND k <> 7", "SELECT k /* i = 5 */ FROM t WHERE {c}={v}",
    "SELECT k AS \"i = 5\" FROM t WHERE {c} = {v}", "SELECT ' = 5' AS r, k FROM t WHERE {c} = {v};",
    "SELECT k FROM t WHERE ({c} = {v}) = ({c} <= {v})", "SELECT {c} = {v}, {c} = {v} FROM t",
    "SELECT k FROM t WHERE k={v}",
    "SELECT CASE WHEN {c} = {v} THEN 'a' WHEN {c} < {v} THEN 'b' END AS r, count(*) AS n FROM t GROUP BY 1",
    "SELECT {c} = {v} AS r, count(*) AS n FROM t GROUP BY {c} = {v}",
    "WITH q AS (SELECT * FROM t WHERE {c} = {v}) TABLE q",
    "SELECT t.k FROM t JOIN o ON t.k = o.k AND t.{c} = {v} WHERE o.i <= {v}", "SELECT 3 = {v} AS r",
    "SELECT {v} = {v} AS r",
    "SELECT k FROM t WHERE (k, i) = ({v}, {v})", "SELECT k FROM t WHERE (k, i) IN (({v}, 2), (3, {v}))",
    "SELECT position('a' IN {v}) AS r", "SELECT k FROM t WHERE f({c} => {v}) = {v}",
    "SELECT k FROM t WHERE j -> 'a' = {v}",
    "SELECT k FROM t WHERE j ->> 'a' = {v}", "SELECT k FROM t WHERE j @> {v}", "SELECT k FROM t WHERE {c} = {v}::text",
    "SELECT k FROM t WHERE {c} =-{v}", "SELECT k FROM t WHERE {c} = -{v}", "SELECT k FROM t WHERE x LIKE {v}",
    "SELECT 1; SELECT k FROM t WHERE {c} = {v}", "select K from T where {c} = {v} and\tK\n>= 1",
    "SELECT k FROM t {c} = {v}",
    "SELECT k FROM t WHERE {c} = {v} AS OF {n}", "SELECT count(*) AS r FROM t AS OF {n};",
    "SELECT i, k AS of FROM t AS OF {n}",
    "SELECT k FROM t WHERE {c} = {v} -- AS OF {n}", "SELECT k FROM t WHERE mz_now() <= i AS OF {n}",
    "WITH q AS (SELECT * FROM t WHERE {c} = {v}) SELECT count(*) AS r FROM q AS OF {n}", "SELECT k FROM t AS OF -{n}",
    "SELECT k FROM halfjoin.public.t WHERE {c} = {v}", "SELECT relname FROM pg_class WHERE relname = {v}",
    "SELECT k FROM t WHERE {c} = {v} UNION SELECT id FROM o WHERE i = {v} ORDER BY k OFFSET 1",
    "SELECT sum(k) FILTER (WHERE {c} = {v}) AS r FROM t HAVING count(*) > {v}",
    "SELECT k FROM t WHERE {c} = {v} FOR UPDATE",
    "SELECT k FROM t WHERE {c} = {v} AND d = date '2024-01-0{n}'", "SELECT k FROM t WHERE x = 'it''s' OR {c} = {v}",
    "SELECT x FROM t WHERE k = {v} AND 6 / (i - 1) > 0", "SELECT k FROM t WHERE nowhere = {v}",
    "SELECT k FROM t WHERE {c} = {v} 5",
    "SELECT /*+ x */ k FROM t WHERE {c} = {v}", "SELECT k FROM t WHERE {c} = {v} /* a /* i = 5 */ b */ AND k = 2",
    "SELECT k FROM t WHERE k = {c} + {v}", "SELECT k FROM t WHERE {c} > t.i-{v} AND k <> {v}",
    "SELECT k FROM t WHERE x = x || {v} OR {c} <= {c} + {v}", "SELECT k FROM t WHERE {c} = current_date - {v}",
    "SELECT k FROM t WHERE {c} = {c} - {v} * 2", "SELECT k FROM t WHERE {c} = k --{v}\n",
    "SELECT n FROM w WHERE i = {v} AND n >= {v}", "SELECT k FROM t WHERE {c} IN ({v}, {v}, {v}) AND NOT k IN ({v})",
]  # fmt: skip
CHANGES = [
    "INSERT INTO t (k, {c}) VALUES ({v}, {v})", "INSERT INTO t VALUES ({v}, {v}), ({v}, 2)",
    "INSERT INTO t VALUES({v})",
    "INSERT INTO t (k) VALUES ({v}) RETURNING k = {v}, {v}", "UPDATE t SET {c} = {v} WHERE k = {v}",
    "UPDATE t SET {c} = {v}, i = {v} FROM o WHERE t.k = o.k AND o.i = {v} RETURNING t.k, t.i = {v}",
    "DELETE FROM t WHERE {c} IN ({v}, {v}) RETURNING *", "DELETE FROM t USING o WHERE o.k = t.k AND {c} = {v}",
    "MERGE INTO t USING (VALUES ({v}, {v})) AS q (k, i) ON t.k = q.k WHEN MATCHED AND {c} = {v} THEN "
    "UPDATE SET i = {v} WHEN NOT MATCHED THEN INSERT (k) VALUES ({v})",
    "INSERT INTO t SELECT {v} FROM t WHERE {c} = {v}",
    "INSERT INTO t (k) VALUES ({v}) ON CONFLICT (k) DO UPDATE SET {c} = {v} WHERE t.k = {v}",
    "UPDATE t SET {c} = {c} + {v} WHERE k = {v}", "UPDATE t SET {c} = t.{c}-{v}, x = x || {v}",
    "INSERT INTO t (k) VALUES ({v}) ON CONFLICT (k) DO UPDATE SET {c} = t.{c} + {v}",
    "UPDATE t SET ({c}, i) = ({v}, {v})", "UPDATE t SET {c} = {v}",
    "UPDATE t SET c[1] = {v} WHERE x = {v}",
    "SELECT k = {v} FROM t", "SELECT extract(day FROM d) = {v} FROM t", "SELECT trim({v} FROM x) = {v} FROM t",
    "SELECT substring(x FROM {v}) = {v} FROM t", "SELECT k IS DISTINCT FROM {v} FROM t WHERE k = {v}",
    "WITH q AS (SELECT 1) INSERT INTO t SELECT * FROM q WHERE 1 = {v}", "INSERT INTO t DEFAULT VALUES",
]  # fmt: skip
TEXTS = MORE + [re.sub(r"\$[12]", "{v}", one).replace("{d}", "{c}") for one in ONE + TWO]


KINDS = {"k": "number", "i": "number", "s": "number", "n": "number", "x": "text", "v": "text", "c": "text", "d": "day",
         "m": "moment", "z": "moment"}  # what a column is compared with, most of the time


def texts(chosen: random.Random, of: list[str] = TEXTS) -> list[str]:
    """Texts that differ in constants, most of them in those of one kind."""
    sql, column = chosen.choice(of), chosen.choice(COLUMNS)
    sql = sql.replace("{c}", column)
    slots = list[list[str]]()
    for _ in range(sql.count("{v}")):
        kind = KINDS.get(column, "text") if chosen.random() < 0.75 else chosen.choice(list(CONSTANTS))
        slots.append(chosen.sample(CONSTANTS[kind], min(4, len(CONSTANTS[kind]))))
    made = []
    for _ in range(8):
        text = sql.replace("{n}", str(chosen.randrange(1, 9)))
        for slot in slots:
            slot = slot if chosen.random() < 0.97 else CONSTANTS[chosen.choice(list(CONSTANTS))]
            text = text.replace("{v}", chosen.choice(slot), 1)
        made.append(text)
    return made


@pytest.mark.parametrize("seed", range(18))
def test_other_constants_answer_and_fail_as_anew(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, found = random.Random(seed), list[object]()
    monkeypatch.setattr(remembered, "filled", lambda *made: (found.append(made), filled(*made))[1])
    with engines() as (one, other):
        mine, others = one.connect(), other.connect()
        others._session.remembered = Forgetful()
        for number in range(3):
            one.query(f"SELECT x FROM t WHERE k = {number}")
        for _ in range(25):
            for text in texts(chosen):
                if chosen.random() < 0.2:
                    try:
                        statement = prepared(text)
                    except hj.HalfjoinError:
                        continue
                    assert said(answer(mine), statement) == said(answer(others), statement), text
                else:
                    way = chosen.choice(["query", "execute"])
                    assert said(getattr(one, way), text) == said(getattr(other, way), text), text
    assert found


@pytest.mark.parametrize("seed", range(6))
def test_a_text_with_parameters_is_read_as_the_text(seed: int) -> None:
    chosen, count = random.Random(100 + seed), 0
    for _ in range(60):
        for text in texts(chosen, TEXTS + CHANGES):
            found = lifted(text)
            try:
                trees = trees_of(text)
            except hj.HalfjoinError:
                continue
            if found is not None:
                count += 1
                assert trees_of(found.text, found.values) == trees, text
    assert count > 50


@pytest.mark.parametrize("text", [
    "SELECT a FROM t WHERE k = $1 AND i = 5", "SELECT a FROM t WHERE x = E'a\\'' OR k = 5 OR x = 'b'",
    "SELECT a FROM t WHERE x = $$ k = 5 $$", "SELECT a FROM t WHERE x = U&'a' AND k = 5", "SELECT 'a\\' = 5, 'b'",
    "SELECT a FROM t LIMIT 5", "SELECT a FROM t ORDER BY 5", "SELECT a FROM t WHERE k = 5.5",
    "SELECT a FROM t WHERE k = -5",
    "SELECT interval '5 days'", "SELECT numeric(5, 2) '1'", "SELECT f(a => 5)", "SELECT 'a = 5', \"b = 5\" -- c = 5",
    "SELECT 5 = a", "CREATE VIEW v AS SELECT 1 WHERE k = 5", "INSERT INTO t VALUES (5.5)", "UPDATE t SET k = -5",
    "SELECT a FROM t WHERE k = 5 'a'",
    "SELECT a FROM t WHERE x = 'a'\n'b'", "SELECT /* /* */ a = 5 */ 1", "SELECT a /*+ k = 5 */", "SELECT 'a",
    "SELECT j -> 5",
    "SELECT a FROM t WHERE k = 12345678901234567890", "SELECT a FROM t WHERE x = 'a\x01'",
    "SELECT a FROM t WHERE k = 5e3",
    "SELECT a FROM t WHERE x = 'pg_catalog'", "SELECT a FROM t WHERE x = 'a' COLLATE \"C\"", "SELECT k = 5 b", "",
])  # fmt: skip
def test_what_may_mean_something_else_stays_in_the_text(text: str) -> None:
    assert lifted(text) is None


ASKED = [
    ("SELECT x FROM t WHERE k = {}", ["1", "2", "3", "40"]), ("SELECT k FROM t WHERE x = {}", ["'a'", "'b'",
    "'it''s'"]),
    ("SELECT k FROM t WHERE i IN ({}, 4) AND k < 30", ["1", "2", "3"]), ("SELECT k FROM t WHERE i BETWEEN 1 AND {}",
    ["2", "3", "1"]),
    ("SELECT k FROM t WHERE d >= date {} ORDER BY 1 LIMIT 3", ["'2024-01-03'", "'2024-01-04'", "'2024-01-05'"]),
    ("SELECT k FROM t WHERE m < {}::timestamp", ["'2024-01-03'", "'2024-01-04'", "'2024-01-05'"]),
    ("SELECT k FROM t WHERE u = {}", [f"'00000000-0000-0000-0000-00000000000{n}'" for n in (1, 2, 3)]),
    ("SELECT o.id FROM t JOIN o ON t.k = o.k WHERE t.k = {} -- a comment", ["1", "2", "3"]),
    ("SELECT i, sum(k) AS r FROM t WHERE i = {} GROUP BY 1", ["1", "2", "3"]), ("SELECT n FROM w WHERE i = {}", ["1",
    "2", "3"]),
    ("SELECT k FROM t WHERE EXISTS (SELECT 1 FROM o WHERE o.k = t.k AND o.i = {})", ["1", "2", "3"]),
    ("WITH q AS (SELECT * FROM t WHERE i = {}) SELECT k FROM q", ["1", "2", "3"]),
    ("SELECT k FROM t WHERE k = {} AS OF 2", ["1", "2", "3"]),
    ("SELECT v.b, t.k FROM (VALUES ({}, 7)) AS v (a, b) LEFT JOIN t ON t.k = v.a", ["1", "2", "3"]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "constants"), ASKED)
def test_a_new_constant_is_not_parsed_bound_or_planned(
    sql: str, constants: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with engines() as (one, other):
        asked = [sql.format(constant) for constant in constants]
        expected = [said(other.query, text) for text in asked]
        assert [said(one.query, text) for text in asked[:2]] == expected[:2]
        cannot_be_made(monkeypatch)
        assert [said(one.query, text) for text in asked] == expected
        assert [said(one.execute, text) for text in asked] == expected


def test_another_time_is_not_parsed_bound_or_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    with engines() as (one, other):
        asked = [f"SELECT count(*) AS r FROM t WHERE i <> {number}{end}" for end in (" AS OF 1", " AS OF 2;",
        " as  of 3", "")
                 for number in (1, 2, 3)] + ["SELECT sum(k) AS r FROM t" + end for end in ("", " AS OF 1",
                 " AS OF 2")]  # fmt: skip
        expected = [said(other.query, text) for text in asked]
        assert [said(one.query, text) for text in asked] == expected
        cannot_be_made(monkeypatch)
        assert [said(one.query, text) for text in asked] == expected
        for text in ("SELECT sum(k) AS r FROM t AS OF 3", "SELECT count(*) AS r FROM t WHERE i <> 4 AS OF 2"):
            assert one.query(text).num_rows == 1
        with pytest.raises(hj.InvalidTime, match="as of 9"):
            one.query("SELECT sum(k) AS r FROM t AS OF 9")


def test_what_has_no_constant_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT o.id, t.x FROM t JOIN o ON t.k = o.k WHERE t.k = {} AND o.i = 2"
    with engines() as (one, other):
        for number in range(3):
            one.query(sql.format(number))
        compiled = list[Any]()
        from halfjoin.engine.join import choosing, path

        for place, name in ((path, "compiled"), (choosing, "compile_stage")):
            made = getattr(place, name)
            monkeypatch.setattr(place, name, lambda *given, made=made: (compiled.append(given), made(*given))[1])
        assert said(one.query, sql.format(7)) == said(other.query, sql.format(7))
        assert len([one for one in compiled if isinstance(one[0], tuple)]) <= 2


def test_an_error_is_at_its_place_in_the_new_text() -> None:
    with engines() as (one, _):
        for number in range(3):
            one.query(f"SELECT x FROM t WHERE k = '{number}'")
        with pytest.raises(hj.UnsupportedSQL, match="line 1, column 30") as problem:
            one.query("SELECT x, 1 FROM t WHERE k = 'abc'")
        assert "abc" in str(problem.value)
        with pytest.raises(hj.UnsupportedSQL, match="line 1, column 27") as problem:
            one.query("SELECT x FROM t WHERE k = 'abc'")
        assert "SELECT x FROM t WHERE k = 'abc'" in str(problem.value)


def test_definitions_that_change_are_no_reason_to_give_up_a_shape() -> None:
    with engines() as (one, _):
        sql = "SELECT x FROM t WHERE k = {}"
        one.query(sql.format(1))
        one.execute("ALTER TABLE t RENAME COLUMN x TO xx")
        with pytest.raises(hj.UnknownName):
            one.query(sql.format(2))
        one.execute("ALTER TABLE t RENAME COLUMN xx TO x")
        for number in range(3):
            one.query(sql.format(number))
        assert frozenset() in one._session.remembered._looked.values()


def test_what_is_noted_of_texts_is_bounded() -> None:
    with engines() as (one, _):
        for number in range(MOST + 20):
            one.query(f"SELECT k FROM t WHERE k = {number} AND i + {number} > 3")
            one.query(f"SELECT x FROM t WHERE k = {number}")
        notes = one._session.remembered
        assert len(notes._looked) == len(notes._asked) == len(notes._kept) == MOST


def test_a_text_of_many_constants_is_one_question_of_its_own() -> None:
    many = ", ".join(map(str, range(lifting.MOST + 1)))
    assert lifted(f"SELECT k FROM t WHERE k IN ({many})") is None
