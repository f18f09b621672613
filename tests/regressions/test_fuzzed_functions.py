"""Answers and errors of functions that random expressions found to differ from PostgreSQL's, each with its cause."""

from __future__ import annotations

import pytest

import halfjoin as hj

DDL = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE TABLE t (id integer PRIMARY KEY, s text)"

ANSWERS = {
    "'ǅ' ~* 'ǅ'": "false",  # a letter in title case is neither the lower nor the upper case of itself
    "'ǆ' ~* '[ǅ]'": "true",
    "|/ 25.0": "5",  # of double precision only
    "timezone('+05:30', timestamp '2020-01-01')": "2020-01-01 05:30:00+00",  # POSIX: + is west
    "timezone('A-5:30', timestamp '2020-01-01')": "2019-12-31 18:30:00+00",
    "make_timestamptz(2020, 1, 1, 0, 0, 0, '+05:30')": "2019-12-31 18:30:00+00",  # here + is east
    "timezone(interval '01:00:00.9', timestamp '2020-01-01')": "2019-12-31 23:00:00+00",  # a zone has no fraction
    "extract(day FROM date '2000-01-01' + 2000000000)": "6",  # beyond 64 bits of microseconds
    "width_bucket('2'::jsonb, ARRAY['1'::jsonb, '[]'])": "2",  # in the order of the type
    "width_bucket('ok'::mood, ARRAY['sad'::mood, 'happy'])": "1",
    "width_bucket(interval '40 days', ARRAY[interval '29 days', '1 month', '41 days'])": "2",
    "width_bucket(date '2020-01-02', ARRAY[date '2020-01-01', '2020-02-01'])": "1",
    "cotd(-360::float8)": "-Infinity",  # -0 in the quadrant keeps its sign
    "array_fill(interval '1 day', '{}'::int[])": "{}",
    "'-0x1.8p3'::double precision": "-12",
    r"""'{a,"b c",\"d}'::text[]""": r"""{a,"b c","\"d"}""",
    "concat(ARRAY[1, 2], true)": "{1,2}t",
    "quote_literal(ARRAY['a b'])": """'{"a b"}'""",
    "to_char(timestamp '2020-02-03', 'TMMM TMMonth FXFXDD')": "02 February 03",  # TM is for names
    "to_char(timestamp '2020-02-03', 'FMFMDD')": "FM03",  # one FM belongs to a field
    "date_part('ye' || 'ar', timestamp '2020-01-01')": "2020",
    "date_trunc('mon' || 'th', timestamp '2020-02-03')": "2020-02-01 00:00:00",
    "to_char(timestamp '2020-02-03', 'YY' || 'YY')": "2020",
}
CODES = {
    "1 / id": "22012", "2147483647 + id + 1": "22003", "(s || 'x')::integer": "22P02", "(s || 'x')::date": "22007",
    "('2020-02-3' || id)::date": "22008", "make_date(2020, 2, 30 + id)": "22008", "sqrt(id - 1)": "2201F",
    "ln(id)": "2201E", "s ~ ('[' || s)": "2201B", "substring('abc', 1, id - 1)": "22011",
    "get_byte('\\x01'::bytea, id + 5)": "2202E", "chr(id)": "54000", "'aa' LIKE (s || 'a\\')": "22025",
    "date_part(s || 'x', now())": "22023", "('\\xg' || s)::bytea": "22023", "to_number(s || 'x', '9')": "22P02",
    "(date '9999-12-31' + 200000000 + id)::timestamp": "22008",
    "width_bucket(id, 1, 1, 3)": "2201G", "(SELECT x FROM (VALUES (id), (id)) AS v (x))": "21000",
}  # fmt: skip

# A name and a number behind a time are a POSIX zone, even where the name reads as a half of the day.
ANSWERS |= {"'2024-01-31 9:30PM-08'::text::timestamptz": "2024-01-31 01:30:00+00"}


@pytest.fixture(scope="module")
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute(f"{DDL}; INSERT INTO t VALUES (0, '')")
    return engine


@pytest.mark.parametrize("sql", ANSWERS)
def test_the_answer_is_postgresqls(sql: str, engine: hj.Engine) -> None:
    assert engine.query(f"SELECT ({sql})::text AS x").to_pylist() == [{"x": ANSWERS[sql]}]


@pytest.mark.parametrize("sql", CODES)
def test_a_failing_row_has_postgresqls_sqlstate(sql: str, engine: hj.Engine) -> None:
    with pytest.raises(hj.HalfjoinError) as caught:
        engine.query(f"SELECT {sql} AS x FROM t")
    assert caught.value.sqlstate == CODES[sql], str(caught.value)


def test_a_failing_row_of_a_view_has_its_sqlstate(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 / id AS x FROM t")
    with pytest.raises(hj.DataError) as caught:
        engine.read("v")
    assert caught.value.sqlstate == "22012"
