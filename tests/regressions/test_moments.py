"""Intervals and timestamps: which texts are intervals, to_char before Christ, seconds in floating point."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from halfjoin.engine.scalar import compile
from halfjoin.sql.expr import Column, Literal
from halfjoin.sql.functions import resolve
from halfjoin.sql.types import TEXT, TIMESTAMP
from tests.support.scalar_sql import wrong

INTERVALS = {
    "2 03:00:00": "2 days 03:00:00", "1-2 3 04:00:00": "1 year 2 mons 3 days 04:00:00",
    "-1-2 3 -4:05:06": "-1 years -2 mons +3 days -04:05:06", "-2 03:00": "-2 days +03:00:00", "2": "00:00:02",
    "30 1 hour": "30 days 01:00:00", "1 min 30": "00:01:30", "1:30 h": "01:30:00", "1:2.5": "00:01:02.5",
    "1 day ago 2": "-1 days -00:00:02", "1 day - 1 hour": "1 day -01:00:00", "1 day, 2 hours": "1 day 02:00:00",
    "1-": "1 year", "1y2mon3d4h5m6s": "1 year 2 mons 3 days 04:05:06", "1.5 2:00": "1 day 14:00:00",
    "0.0000015 sec": "00:00:00.000001", "@ 1 day ago": "-1 days", "PT": "00:00:00", "1 hour 1.5 d": "1 day 13:00:00",
    "P0001-02-03T04:05:06": "1 year 2 mons 3 days 04:05:06", "P-1Y2M": "-10 mons", "2:00 1.5 d": "1 day 02:00:00",
}  # fmt: skip
NO_INTERVALS = [
    "3 4", "1 2 3:00", "1 day 03:00:00 2", "1:90", "1-12", "1 day 1 day", "1 hour 2 minutes 1 hour", "-.5 days",
    "1day2hours", "1 2 days 1:00", "3.days", "p1y", "1 ago", "day", "", "1:00 -2", "٣ days",
]  # fmt: skip


@pytest.mark.parametrize("text", INTERVALS)
def test_intervals_are_read_as_in_postgresql(text: str) -> None:
    assert wrong(f"(interval '{text}')::text", INTERVALS[text]) == []
    assert wrong(f"'{text}'::text::interval::text", INTERVALS[text]) == []


@pytest.mark.parametrize("text", NO_INTERVALS)
def test_other_texts_are_no_intervals(text: str) -> None:
    assert wrong(f"'{text}'::text::interval::text", "ERROR: invalid input syntax") == []


BEFORE_CHRIST = {  # of 44-03-15 BC and of 1-12-31 BC, which is the day before 1-01-01
    "YYYY-MM-DD": ("0044-03-15", "0001-12-31"), "YYY": ("044", "001"), "YY": ("44", "01"), "Y": ("4", "1"),
    "IYYY": ("0044", "0001"), "CC": ("-01", "-01"), "FMCC": ("-1", "-1"), "FMYYYY": ("44", "1"),
    "Day": ("Friday   ", "Sunday   "),
}  # fmt: skip


@pytest.mark.parametrize("pattern", BEFORE_CHRIST)
def test_years_before_christ_print_without_a_sign(pattern: str) -> None:
    moments = pa.array(np.array(["-0043-03-15", "0000-12-31"], "datetime64[us]"))
    expr = compile(resolve("to_char", (Column("a", TIMESTAMP), Literal(pattern, TEXT))))
    assert tuple(expr.evaluate({"a": moments}, 2).values.to_pylist()) == BEFORE_CHRIST[pattern]


MOMENT = "timestamp '2024-01-05 03:04:05.006'"
PATTERNS = {
    '"a\\"b\\\\"DD': 'a"b\\05', 'DD\\"MM': '05"01', "DD\\MM": "05\\01", '"a': "a", "FM-DD": "-05", "FMDD": "5",
    "FMMS FMUS": "006 006000",
}  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_are_read_as_in_postgresql(pattern: str) -> None:
    assert wrong(f"to_char({MOMENT}, '{pattern}')", PATTERNS[pattern]) == []


def test_no_pattern_makes_no_text() -> None:
    assert wrong(f"to_char({MOMENT}, '')", None) == []


SECONDS = [  # each lies between two microseconds, as near to the one as to the other when counted from 1970
    ("3154893404.5420527", "2069-12-21 23:16:44.542053+00"), ("970959894.1722705", "2000-10-07 23:04:54.172271+00"),
    ("-1.5", "1969-12-31 23:59:58.5+00"), ("0", "1970-01-01 00:00:00+00"),
]  # fmt: skip


@pytest.mark.parametrize(("seconds", "answer"), SECONDS)
def test_seconds_are_rounded_as_in_postgresql(seconds: str, answer: str) -> None:
    assert wrong(f"to_timestamp({seconds}::float8)", answer) == []


NO_MOMENTS = [  # a month is named in full or by three letters, and a zone is at most 15 hours away
    "'2024-mayo-30'::text::date", "'28 mar-2001'::text::date",
    "'2024-01-31 10:00+16'::text::timestamptz", "'2024-01-31 24:00:00'::text::time",
    "'\u0662\u0660\u0662\u0664-01-31'::text::date",
]  # fmt: skip


@pytest.mark.parametrize("sql", NO_MOMENTS)
def test_other_texts_are_no_moments(sql: str) -> None:
    assert wrong(sql, "ERROR: invalid input syntax") == []


PARTS = [  # a second and its fraction are added up as doubles
    ("date_part('second', time '04:05:38.913335')", "38.913335000000004"),
    ("date_part('milliseconds', timestamp '1972-09-08 12:32:03.762586')", "3762.5860000000002"),
    ("date_part('epoch', interval '-1 year -2 mons 3 days -04:05:06.789')", "-36497106.789000005"),
    ("date_part('hour', timestamp '2024-01-01 05:00')", "5"), ("date_part('epoch', date '2024-01-01')", "1704067200"),
    ("date_part('year', NULL::timestamp)", None),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "answer"), PARTS)
def test_date_part_is_the_double_of_postgresql(sql: str, answer: str | None) -> None:
    assert wrong(sql, answer) == []


READ = [  # a minus may be taken for a separator; FF1 to FF6 round, a half away from 2000; a date has no offset
    ("to_timestamp('2011-12-18 11:38 -05', 'YYYY-MM-DD HH12:MI TZH')", "2011-12-18 16:38:00+00"),
    ("to_timestamp('2000   -10', 'YYYY TZH')", "2000-01-01 10:00:00+00"),
    ("to_timestamp('2000 + -10', 'YYYY   TZH')", "2000-01-01 10:00:00+00"),
    ("to_timestamp('2000 +10', 'YYYY TZH')", "1999-12-31 14:00:00+00"),
    ("to_timestamp('2000 16', 'YYYY TZH')", "ERROR: out of range"),
    ("to_timestamp('2000 10:60', 'YYYY TZH:TZM')", "ERROR: out of range"),
    ("to_timestamp('2000-01-01 23:59:59.99', 'YYYY-MM-DD HH24:MI:SS.FF1')", "2000-01-02 00:00:00+00"),
    ("to_timestamp('1969-01-01 23:59:59.123455', 'YYYY-MM-DD HH24:MI:SS.FF5')", "1969-01-01 23:59:59.12345+00"),
    ("to_timestamp('20181102123456123456', 'YYYYMMDDHH24MISSFF3')", "2018-11-02 12:34:56.123+00"),
    ("to_date('2000-01-01 23:59:59.99', 'YYYY-MM-DD HH24:MI:SS.FF1')", "2000-01-01"),
    ("to_date('2000-01-01 +05', 'YYYY-MM-DD TZH')", "2000-01-01"),
    ("to_date('2000-01-01 25', 'YYYY-MM-DD HH24')", "ERROR: out of range"),
    ("date_bin('200000000 days', timestamp '2024-02-01', timestamp '2024-01-01')", "ERROR: interval out of range"),
    ("date_bin('20000000 days', timestamp '2024-02-01', timestamp '2024-01-01')", "2024-01-01 00:00:00"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "answer"), READ)
def test_texts_are_read_by_patterns_as_in_postgresql(sql: str, answer: str) -> None:
    assert wrong(sql, answer) == []


FIELDS = [  # a field is all in upper case or all in lower case; a zone's numbers are as wide as the digits
    ("to_char(timestamp '2024-01-05', 'Ddy tzMM FMOF')", "6fri 01 +0"),
    ("to_char(date '2024-01-05', 'Dd Mi')", "66 M4"),
    ("to_char(timestamp '2024-01-05', 'DDTh Fmdd')", "05Th Fm05"),
    ("to_timestamp('2024 -0530', 'YYYY TZHTZM')", "2024-01-01 05:30:00+00"),
    ("to_timestamp('20240105', 'TZM ')", "ERROR: out of range"), ("to_date('-5', 'J')", "ERROR: out of range"),
    ("to_char(999, '9EEEE')", " 1e+03"), ("to_char(25, '9EEEE')", " 2e+01"), ("to_char(25::bigint, '9EEEE')", " 3e+01"),
    ("to_char(1, 'Mi9')", "Mi 1"), ("to_char(1, 'mi9')", " 1"), ("to_char(1, '9BEEEE')", " 1e+00"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "answer"), FIELDS)
def test_fields_of_patterns_are_those_of_postgresql(sql: str, answer: str) -> None:
    assert wrong(sql, answer) == []


SHORT = [  # minutes and seconds may have one digit
    ("'1:2:3.7'::text::time", "01:02:03.7"), ("'1:2 pm'::text::time", "13:02:00"),
    ("'2020-1-2 3:4:5.6'::text::timestamp", "2020-01-02 03:04:05.6"),
    ("'2020-1-2 3:4-5'::text::timestamptz", "2020-01-02 08:04:00+00"),
    ("'1:60'::text::time", "ERROR: invalid input syntax"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "answer"), SHORT)
def test_times_may_have_single_digits(sql: str, answer: str) -> None:
    assert wrong(sql, answer) == []
