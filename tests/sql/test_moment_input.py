"""Texts of dates, times, timestamps and intervals: what PostgreSQL reads, halfjoin reads as the same, or refuses."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.precision import Precision, modified
from halfjoin.sql.expr import Literal
from halfjoin.sql.functions.calendar import Far
from halfjoin.sql.functions.render import plain
from halfjoin.sql.functions.text_input import parse
from halfjoin.sql.types import DATE, TIME, TIMESTAMP, TIMESTAMPTZ, UNKNOWN, Kind, SqlType
from tests.support.scalar_sql import wrong
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ_SQL")
FIRST = first_seed() if MORE else 1
TEXTS = int(MORE or 600)
TYPES = (DATE, TIME, TIMESTAMP, TIMESTAMPTZ)
PARTS = (
    "1999", "99", "08", "1", "31", "Jan", "january", "8", "19990108", "990108", "J2451187", "04:05", "04:05:06.789",
    "040506", "0405", "T040506", "04:05 AM", "PM", "-08", "+08:00", "-0830", "Z", "UTC", "PST", "EST", "GMT+4",
    "America/New_York", "PST8PDT", "epoch", "allballs", "1999-01-08", "1/8/1999", "01-08-99", "Jan-08-1999",
    "08-Jan-99", "99-Jan-08", "1999.008", "2020-366", "12.27.2001", "20011227T040506", "Mon", "on", "at", "24:00",
    "23:59:60", "t", "1:2.5", "2001-02-29", "366", "2000-060", ",", "foo", "2001-12-27T04:05:06+08",
    "BC", "BC", "AD", "12345", "12345-06-07", "0044-03-15 BC", "4714-11-24 BC", "J12", "294247-01-09",
)  # fmt: skip
KNOWN = {
    "Jan 8, 1999": "1999-01-08", "January 8, 1999": "1999-01-08", "1999-01-08": "1999-01-08", "1/18/1999": "1999-01-18",
    "1999-Jan-08": "1999-01-08", "Jan-08-1999": "1999-01-08", "08-Jan-1999": "1999-01-08", "19990108": "1999-01-08",
    "990108": "1999-01-08", "1999.008": "1999-01-08", "J2451187": "1999-01-08", "2020-366": "2020-12-31",
    "epoch": "1970-01-01", "Wed Jul 11 10:51:14 PST 2001": "2001-07-11",
}  # fmt: skip


@pytest.mark.parametrize("text", KNOWN)
def test_postgresqls_own_examples(text: str) -> None:
    assert str(parse(text, DATE)) == KNOWN[text]


def random_text(rng: random.Random) -> str:
    """Parts of moments in any order."""
    between = rng.choice((" ", " ", " ", "", "-", "T"))
    return between.join(rng.choice(PARTS) for _ in range(rng.choice((1, 2, 2, 2, 3, 3, 4))))


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_texts_of_moments_mean_what_they_mean_in_postgresql(type: SqlType, postgres: Any) -> None:
    rng, read, bad = random.Random(FIRST), 0, []
    for text in [*KNOWN, *(random_text(rng) for _ in range(TEXTS))]:
        answer, found = _asked(postgres, f"%s::{type}", text), _ours(text, type)
        read += found is not None
        if found is not None and found != answer:
            bad.append(f"{text!r}: {found}, but PostgreSQL: {answer}")
        if found is None and text in KNOWN and type != TIME:
            bad.append(f"{text!r} is refused")
    assert not bad, "\n".join(bad)
    assert read > TEXTS // (30 if type == TIME else 12), "most texts are refused"


def _ours(text: str, type: SqlType) -> str | None:
    try:
        value = parse(text, type)
    except UnsupportedSQL:
        return None
    if isinstance(value, Far):
        return plain(value, type)
    found = str(value)
    seconds, zone = found.removesuffix("+00:00"), "+00" if type == TIMESTAMPTZ else ""
    return (seconds.rstrip("0") if "." in seconds else seconds) + zone


def _asked(connection: Any, expression: str, *values: str) -> str | None:
    from psycopg import Error

    try:
        found: str | None = connection.execute(f"SELECT ({expression})::text", values).fetchone()[0]
        return found
    except Error:
        return None


INTERVALS = ("1", "1:2", "1 2:03", "1 2:03:04.5678", "1-2", "-1-2 3 4:05:06", "1.5", "1 day 2 hours 3 min 4.5678 sec",
             "12:34.5678", "P1Y2M3DT4H5M6.789S", "14 months 40 days 25:01:01", "-1.234567", "@ 1 year 2 mons ago",
             "P1Y2M", "1 2")  # fmt: skip
FIELDS = ("", "year", "month", "day", "hour", "minute", "second", "year to month", "day to hour", "day to minute",
          "day to second", "day to second(2)", "hour to minute", "hour to second", "hour to second(0)",
          "minute to second", "minute to second(1)", "second(2)")  # fmt: skip


@pytest.mark.parametrize("text", INTERVALS)
def test_fields_of_intervals_are_postgresqls(text: str, postgres: Any) -> None:
    for sql in [*(f"interval '{text}' {fields}" for fields in FIELDS), *(f"interval({n}) '{text}'" for n in range(7))]:
        answer = _asked(postgres, sql)
        found = wrong(sql, "ERROR" if answer is None else answer)
        assert not found or answer is None, f"{sql}: {found}, but PostgreSQL: {answer}"


@pytest.mark.parametrize("value", [
    "timestamp '2020-01-01 12:34:56.789555'", "timestamp '1999-12-31 23:59:58.5'", "timestamp '2000-01-01 00:00:00.45'",
    "timestamptz '1969-01-01 00:00:00.0000005+00'", "time '12:34:56.789555'", "interval '-1 mon 2 days -3.4567 sec'",
])  # fmt: skip
def test_digits_of_seconds_round_as_in_postgresql(value: str, postgres: Any) -> None:
    type = value.split()[0]
    for digits in range(7):
        sql = f"({value})::{type}({digits})"
        assert not wrong(sql, _asked(postgres, sql)), sql


def test_a_constant_is_cut_and_rounded_when_it_is_bound() -> None:
    found = modified(Literal("1 2:03:04.5678", UNKNOWN), Precision(1, "day", "second"))
    assert found == Literal((0, 1, 7_384_600_000), SqlType(Kind.INTERVAL, 1))


@pytest.mark.parametrize(("text", "type", "reason"), [
    ("infinity", DATE, "'infinity' as a date"), ("4714-11-23 BC", DATE, "date out of range"),
    ("294247-01-10", TIMESTAMP, "timestamp out of range"), ("tomorrow", DATE, "depends on when it is read"),
    ("24:00", TIME, "a time of day ends before 24:00"), ("10:00+16", TIMESTAMPTZ, "displacement out of range"),
    ("1999-02-30", DATE, "date/time field value out of range"),
])  # fmt: skip
def test_what_no_column_holds_is_refused(text: str, type: SqlType, reason: str) -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        parse(text, type)
    assert reason in caught.value.reason
