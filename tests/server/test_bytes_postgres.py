"""The server's rows are PostgreSQL's, byte for byte: both servers get the same query, in text and in binary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.serving import Raw, Served, serving

pytest_plugins = ("tests.support.postgres",)

# Of equal values that look different, such as 0 and -0, 1.5 and 1.50 in jsonb, tables keep one look.
DDL = "CREATE TYPE mood AS ENUM ('sad', 'ok')"
VALUES = {
    "boolean": ["true", "false"],
    "smallint": ["0", "-32768", "32767"],
    "integer": ["0", "-2147483648", "2147483647"],
    "bigint": ["0", "-9223372036854775808", "9223372036854775807"],
    "real": ["0", "1.5", "1e20", "3.4e-38", "NaN", "Infinity", "-Infinity", "123456.7"],
    "double precision": ["0", "1.1", "1e300", "1e15", "123456789012345680", "5e-324", "NaN", "-Infinity"],
    "numeric(20,4)": ["0", "-0.0001", "1", "10000", "9999.9999", "-12345678.9", "1234567890123456", "0.1", "100000000"],
    "numeric(38,0)": ["0", "99999999999999999999999999999999999999", "-1", "10000", "123000000000"],
    "text": ["", "a", "é ☃ 𝄞", "two\\nlines", "\\t", "x" * 1000],
    "varchar(5)": ["", "abcde"],
    "char(4)": ["", "ab", "abcd"],
    "bytea": ["", "\\\\x00ff10"],
    "date": ["2000-01-01", "1970-01-01", "0001-01-01", "9999-12-31", "1999-12-31"],
    "time": ["00:00", "23:59:59.999999", "10:00:00.5"],
    "timestamp": ["2000-01-01", "1999-12-31 23:59:59.999999", "0001-01-01", "9999-12-31 12:00:00.1"],
    "timestamptz": ["2000-01-01", "2020-02-29 12:34:56.789+02", "0001-01-02"],
    "interval": ["0", "1 month", "-1 day", "1 year 2 mons 3 days 04:05:06.789", "-00:00:01"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "f47ac10b-58cc-4372-a567-0e02b2c3d479"],
    "json": [' {"b": [1, null],  "a": 1.50, "a": "x"}', "1.5", "null", '"é"'],
    "json[]": ['{"1.0",NULL,"{\\\\"a\\\\":  [1]}"}'],
    "jsonb": ['{"b": [1, null], "a": "x"}', "1.5", "null", '"é"'],
    "mood": ["sad", "ok"],
    "integer[]": ["{}", "{1,NULL,3}", "{-1}"],
    "text[]": ["{}", '{a,"b c",NULL,"","NULL","q\\\\""}'],
    "numeric(6,2)[]": ["{1.5,-2,NULL}"],
    "timestamptz[]": ["{2020-01-01,1999-12-31}"],
    "boolean[]": ["{t,f,NULL}"],
    "integer[][]": ["{}", "{{1,2},{3,NULL}}", "{{-1}}"],
    "text[][]": ["{{a},{NULL}}", '{{"b c",""}}'],
    "timestamp(3)": ["2020-01-01 10:00:00.1235"],
    "uuid[]": ["{f47ac10b-58cc-4372-a567-0e02b2c3d479}"],
}


class Both:
    """The same statements for both servers."""

    def __init__(self, ours: Raw, postgres: Any) -> None:
        self.ours, self.postgres = ours, postgres

    def run(self, sql: str) -> None:
        answer = self.ours.query(sql)
        assert not [body for letter, body in answer if letter == "E"], answer
        self.postgres.execute(sql)

    def same(self, sql: str, format: int) -> None:
        ours = self.ours.rows(sql, format)[1:]
        theirs = self.postgres.pgconn.exec_params(sql.encode(), None, result_format=format)
        assert theirs.error_message == b"", theirs.error_message
        values = [[theirs.get_value(r, c) for c in range(theirs.nfields)] for r in range(theirs.ntuples)]
        assert [_values(body) for body in ours] == values


def _values(body: bytes) -> list[bytes | None]:
    """The values of a DataRow."""
    found: list[bytes | None] = []
    at = 2
    for _ in range(int.from_bytes(body[:2], "big")):
        length = int.from_bytes(body[at : at + 4], "big", signed=True)
        at += 4
        found.append(None if length < 0 else body[at : at + length])
        at += max(length, 0)
    assert at == len(body)
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def both(server: Served, postgres_of_module: Any) -> Iterator[Both]:
    raw = Raw(server.port)
    made = Both(raw, postgres_of_module)
    made.run(DDL)
    for number, (type, values) in enumerate(VALUES.items()):
        made.run(f"CREATE TABLE t{number} (k integer PRIMARY KEY, v {type})")
        rows = ", ".join(f"({k}, E'{value}')" for k, value in enumerate(values))
        made.run(f"INSERT INTO t{number} VALUES {rows}, (1000, NULL)")
    yield made
    raw.close()


@pytest.mark.parametrize("format", [0, 1], ids=["text", "binary"])
@pytest.mark.parametrize("number", range(len(VALUES)), ids=list(VALUES))
def test_values_are_those_of_postgresql(both: Both, number: int, format: int) -> None:
    both.same(f"SELECT v FROM t{number} ORDER BY k", format)
    both.same(f"SELECT k, v, v, k FROM t{number} ORDER BY k", format)
    both.same(f"SELECT v FROM t{number} WHERE k < 0", format)


def test_columns_are_described_as_in_postgresql(both: Both) -> None:
    for number in range(len(VALUES)):
        sql = f"SELECT k, v FROM t{number}"
        ours = both.ours.rows(sql, 1)[0]
        theirs = both.postgres.pgconn.exec_params(sql.encode(), None, result_format=1)
        at = 2
        for column in range(2):
            end = ours.index(b"\0", at)
            assert ours[at:end] == theirs.fname(column)
            facts = ours[end + 1 : end + 19]
            oid = int.from_bytes(facts[6:10], "big")
            size = int.from_bytes(facts[10:12], "big", signed=True)
            modifier = int.from_bytes(facts[12:16], "big", signed=True)
            if oid < 16384:
                assert oid == theirs.ftype(column)
            assert (size, modifier) == (theirs.fsize(column), theirs.fmod(column)), list(VALUES)[number]
            at = end + 19


INTERVALS = ("'1 year 2 mons 3 days 04:05:06.5'", "'-1 day -02:03:04'", "'-14 mons +2 days -00:00:00.5'", "'0'",
             "'3 hours'", "'1 min'", "NULL")  # fmt: skip


@pytest.mark.parametrize("format", [0, 1], ids=["text", "binary"])
def test_intervals_have_the_style_that_a_client_sets(both: Both, format: int) -> None:
    """Rails sets iso_8601 when it connects."""
    rows = f"(VALUES {', '.join(f'({at}, {value}::interval)' for at, value in enumerate(INTERVALS))}) AS v (at, i)"
    asked = (f"SELECT i FROM {rows} ORDER BY at", f"SELECT array_agg(i ORDER BY at), 1 FROM {rows}",
             "SELECT '{}'::interval[], NULL::interval[]", "SELECT '{{1 day},{NULL}}'::interval[]")  # fmt: skip
    for style in ("iso_8601", "postgres"):
        both.run(f"SET intervalstyle = {style}")
        for sql in asked:
            both.same(sql, format)
    both.run("BEGIN")
    both.run("SET LOCAL intervalstyle TO 'ISO_8601'")
    both.same("SELECT interval '2 days'", format)
    both.run("COMMIT")
    both.same("SELECT interval '2 days', current_setting('intervalstyle')", format)
