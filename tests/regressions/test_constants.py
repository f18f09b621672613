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
