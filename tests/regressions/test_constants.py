"""Constants mean what PostgreSQL reads: `type 'text'` before a cast, escapes of E'...'."""

from __future__ import annotations

import pytest

import halfjoin as hj
from tests.support.scalar_sql import wrong

TYPED = [
    ("smallint '3'::float8 / 2", "1.5"), ("int '7'::numeric / 2", "3.5000000000000000"), ("int '3' / 2", "1"),
    ("timestamp '2020-01-01 10:00'::date", "2020-01-01"), ("date '2020-01-01'::timestamp::text", "2020-01-01 00:00:00"),
    ("timestamptz '2020-01-01 01:00+02'::date", "2019-12-31"), ("numeric(5,2) '1.235'::float8", "1.24"),
    ("bytea '\\x41'::text", "\\x41"), ("boolean 't'::int", "1"), ("char(3) 'abcd'::text", "abc"),
    ("varchar(2) 'abc'::text || '|'", "ab|"), ("real '0.1'::float8", "0.10000000149011612"),
    ("double precision '1.5'::int", "2"), ("interval '1 day'::text", "1 day"), ("interval '1' day::text", "1 day"),
    ("time '10:00:01.5'::text", "10:00:01.5"), ("- int '3'::float8 / 2", "-1.5"), ("text '12'::int + 1", "13"),
    ("timestamp with time zone '2020-01-01 10:00+02'::timestamp", "2020-01-01 08:00:00"),
]  # fmt: skip
ESCAPED = [
    ("E'\\x41'", "A"), ("E'\\101'", "A"), ("E'\\u00e9\\U0001F600'", "é😀"), ("E'\\ud83d\\ude00'", "😀"),
    ("E'\\xc3\\xa9'", "é"), ("E'a\\'b''c\\\\d\\q'", "a'b'c\\dq"), ("E'\\b\\f\\n\\r\\t'", "\b\f\n\r\t"),
    ("length(E'\\1018')", "2"), ("E'\\x4g'", "\x04g"), ("E'\\xg'", "xg"), ("date E'2020-01-0\\x31'", "2020-01-01"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "answer"), TYPED + ESCAPED)
def test_constants_are_as_in_postgresql(sql: str, answer: str) -> None:
    assert wrong(sql, answer) == []


@pytest.mark.parametrize("text", ["\\xff", "\\0", "\\x00", "\\u12", "\\ud83d", "\\ude00", "\\U00110000", "\\u0000"])
def test_escapes_of_no_character_are_refused(text: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match=r"E'"):
        hj.Engine().query(f"SELECT E'{text}' AS x")


def test_a_text_that_is_no_value_is_an_error_of_the_rows_that_reach_it() -> None:
    """`$1 = '' OR k = $1::int`, which makes a condition optional, was refused before any row was there."""
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (k integer)")
    engine.apply({"t": [{"k": 1}, {"k": 2}]}, time=0)
    optional = "SELECT k FROM t WHERE $1::text = '' OR k = $1::text::integer ORDER BY k"
    guarded = "CASE WHEN {0} ~ '^[0-9]+$' THEN {0}::integer ELSE -1 END"
    for _ in range(3):  # the query is remembered
        assert engine.query(optional, [""]).to_pydict() == {"k": [1, 2]}
        assert engine.query(optional, ["2"]).to_pydict() == {"k": [2]}
        with pytest.raises(hj.DataError, match='invalid input syntax for type integer: "two"'):
            engine.query(optional, ["two"])
        for text, number in (("ab", -1), ("7", 7)):
            assert engine.query(f"SELECT {guarded.format('$1::text')} AS n", [text]).to_pydict() == {"n": [number]}
    written = guarded.format("'ab'::text")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT k, {written} AS n FROM t")
    assert engine.read("v").to_pydict() == {"k": [1, 2], "n": [-1, -1]}
    with pytest.raises(hj.UnsupportedSQL, match="invalid input syntax"):
        engine.query("SELECT CASE WHEN k = 1 THEN 1 ELSE 'ab'::integer END FROM t")
