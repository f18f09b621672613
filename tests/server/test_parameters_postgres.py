"""Parameters mean what they mean in PostgreSQL: both servers get the same bytes, in text and in binary, and answer the
same ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.test_bytes_postgres import DDL, VALUES
from tests.support.serving import Served, serving

pytest_plugins = ("tests.support.postgres",)

# Digits and dimensions that a declaration leaves open follow from the value; so does the type of a lone numeric.
OPEN = {"numeric": ["1.10", "0", "-12345678.9", "1e20"], "integer[]": ["{}", "{NULL}"], "bigint[]": ["{}"],
        "numeric(6,2)[]": ["{}"], "date[]": ["{}"], "uuid[]": ["{}"], "boolean[]": ["{}"], "interval[]": ["{}"],
        "oid": ["4294967295"], "name": ["a"]}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def both(server: Served, postgres_of_module: Any) -> Iterator[tuple[Any, Any]]:
    with server.psycopg() as ours:
        for connection in (ours, postgres_of_module):
            connection.execute(DDL)
        yield ours.pgconn, postgres_of_module.pgconn


def _answer(connection: Any, sql: str, value: bytes | None, format: int, shown: int) -> tuple[Any, str]:
    found = connection.exec_params(sql.encode(), [value], None, [format], shown)
    return found.get_value(0, 0) if found.ntuples else None, found.error_message.decode()


@pytest.mark.parametrize("type", [*VALUES, *sorted(OPEN.keys() - VALUES.keys())])
def test_a_parameter_is_that_of_postgresql(both: tuple[Any, Any], type: str) -> None:
    ours, theirs = both
    sql = f"SELECT $1::{type}"
    for written in (*VALUES.get(type, ()), *OPEN.get(type, ()), None):
        literal = "NULL" if written is None else f"E'{written}'"
        for format in (0, 1):
            asked = f"SELECT {literal}::{type}".encode()
            value = theirs.exec_params(asked, None, None, None, format).get_value(0, 0)
            for shown in (0, 1):
                expected = _answer(theirs, sql, value, format, shown)
                assert _answer(ours, sql, value, format, shown) == expected, (written, format, shown)


def test_dimensions_follow_from_the_value(both: tuple[Any, Any]) -> None:
    numbers = 1007
    for connection in both:
        found = connection.exec_params(b"SELECT $1", [b"{{1,2},{3,4}}"], [numbers], None, 0)
        assert found.get_value(0, 0) == b"{{1,2},{3,4}}" and found.ftype(0) == numbers


@pytest.mark.parametrize("days", [-746_117, -2_000_000, 2_922_700, 60_000_000])
def test_a_day_of_a_far_year_is_that_of_postgresql(both: tuple[Any, Any], days: int) -> None:
    value = days.to_bytes(4, "big", signed=True)
    for shown in (0, 1):
        ours, theirs = (_answer(one, "SELECT $1::date", value, 1, shown) for one in both)
        assert ours == theirs


CALLED = (("nextval($1)", "q"), ("nextval($1::regclass)", "public.q"), ("setval($1, $2)", "q", "7"),
          ("currval($1)", "q"), ("setval($1, $2, $3)", "q", "9", "f"), ("nextval($1)", '"q"'),
          ("setval(pg_get_serial_sequence($1, $2), $3)", "numbered", "k", "40"),
          ("currval(pg_get_serial_sequence($1, $2))", "numbered", "k"))  # fmt: skip


@pytest.mark.parametrize("oid", [0, 25, 1043], ids=["none", "text", "varchar"])
def test_sequences_may_be_parameters(both: tuple[Any, Any], oid: int) -> None:
    """PDO's lastInsertId sends currval($1)."""
    for connection in both:
        connection.exec_(b"DROP SEQUENCE IF EXISTS q; CREATE SEQUENCE q; DROP TABLE IF EXISTS numbered")
        connection.exec_(b"CREATE TABLE numbered (k serial)")
    for call, *values in CALLED:
        sql, given = f"SELECT {call}".encode(), [value.encode() for value in values]
        ours = both[0].exec_params(sql, given, [oid, *[0] * (len(given) - 1)])
        theirs = both[1].exec_params(sql, given)
        assert (ours.get_value(0, 0), ours.error_message) == (theirs.get_value(0, 0), b""), call


@pytest.mark.parametrize("path", ["pg_catalog", "apart", "apart, public"])
def test_parameters_have_the_types_of_columns_on_any_search_path(both: tuple[Any, Any], path: str) -> None:
    for connection in both:
        connection.exec_(b"CREATE SCHEMA IF NOT EXISTS apart; DROP TABLE IF EXISTS public.feeling; "
                         b"CREATE TABLE public.feeling (m mood, k integer)")  # fmt: skip
        connection.exec_(f"SET search_path = {path}".encode())
    for sql, *values in (("INSERT INTO public.feeling VALUES ($1, $2)", b"ok", b"1"),
                         ("SELECT k, m::text, 5::oid FROM public.feeling WHERE m = $1", b"ok"),
                         ("UPDATE public.feeling SET m = $1 RETURNING m::text", b"sad")):  # fmt: skip
        ours, theirs = (one.exec_params(sql.encode(), values) for one in both)
        assert ours.error_message == theirs.error_message == b""
        assert [ours.get_value(0, c) for c in range(ours.nfields) if ours.ntuples] == [
            theirs.get_value(0, c) for c in range(theirs.nfields) if theirs.ntuples]
    for connection in both:
        connection.exec_(b"RESET search_path")
