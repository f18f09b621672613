"""Functions that make dates, times and intervals from their parts, and take them apart; and time zones."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import FALSE, TRUE, Call, Expr, Literal
from halfjoin.sql.functions.casting import cast, coerce, unify
from halfjoin.sql.functions.signature import Function, Resolve, function
from halfjoin.sql.types import BOOLEAN, STRINGS, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind

_YEAR_TO_SECOND = "integer, integer, integer, integer, integer, double precision"


def _timezone(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    """timezone(zone, x), which is also `x AT TIME ZONE zone`: from UTC to the zone's clock, or back."""
    if len(args) != 2:
        raise UnsupportedSQL("timezone takes a zone and a timestamp", wrong=True)
    zone, value = args
    if value.type.kind in (Kind.UNKNOWN, Kind.DATE):
        value = cast(value, TIMESTAMPTZ)
    if value.type.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        raise UnsupportedSQL(f"AT TIME ZONE of {value.type}", remedy="cast it to timestamp or timestamptz")
    if zone.type.kind is not Kind.INTERVAL:
        if zone.type.kind not in (*STRINGS, Kind.UNKNOWN):
            raise UnsupportedSQL(f"a time zone of type {zone.type}", remedy="write 'Europe/Berlin'", wrong=True)
        zone = coerce(zone, TEXT)
    to = TIMESTAMPTZ if value.type.kind is Kind.TIMESTAMP else TIMESTAMP
    if isinstance(zone, Literal) and isinstance(zone.value, str) and zone.value.lower() in _UTC:
        return cast(value, to, explicit=True)
    return Call("timezone", (zone, value), to)


def _overlaps(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    """(a, b) OVERLAPS (c, d): two times, in any order, or a time and a length. NULLs may leave the answer open."""
    if len(args) != 4:
        raise UnsupportedSQL("OVERLAPS takes two pairs of values", wrong=True)
    firsts, seconds = (args[0], args[2]), (args[1], args[3])
    lengths = [second.type.kind is Kind.INTERVAL for second in seconds]
    ends = [resolve("+", (one, two)) if is_length else two
            for one, two, is_length in zip(firsts, seconds, lengths, strict=True)]  # fmt: skip
    a, b, c, d = unify((firsts[0], ends[0], firsts[1], ends[1]))
    if a.type.kind is Kind.DATE:  # PostgreSQL compares timestamps
        a, b, c, d = (cast(end, TIMESTAMP) for end in (a, b, c, d))
    if a.type.kind not in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        raise UnsupportedSQL(f"OVERLAPS of {a.type}", remedy="give dates, times or timestamps", wrong=True)

    def span(one: Expr, two: Expr) -> tuple[Expr, Expr]:
        known = resolve("and", (resolve("is not null", (one,)), resolve("is not null", (two,))))
        return resolve("least", (one, two)), resolve("case", (known, resolve("greatest", (one, two))))

    def decided(inside: Expr, *ends: Expr) -> Expr:
        """Whether it is inside; NULL if it is not and an end is not known."""
        there = (resolve("is not null", (end,)) for end in ends)
        return resolve("or", (inside, resolve("case", (resolve("and", (TRUE, *there)), FALSE))))

    (start, end), (other_start, other_end) = span(a, b), span(c, d)
    return resolve("case", (
        resolve(">", (start, other_start)), decided(resolve("<", (start, other_end)), end, other_end),
        resolve("<", (start, other_start)), decided(resolve("<", (other_start, end)), end, other_end),
        resolve("=", (start, other_start)), decided(resolve("is not null", (
            resolve("case", (resolve("is not null", (end,)), other_end)),)), end, other_end),
        Literal(None, BOOLEAN)))  # fmt: skip


_UTC = ("utc", "gmt", "z", "zulu", "etc/utc", "uct")


def _make(name: str, doc: str, params: str, result: str, *examples: tuple[str, str]) -> Function:
    return function(name, "dates", doc, f"{params} -> {result} or error", examples=examples)


MOMENTS_TABLE = (
    function("age", "dates", "The time between two, in years, months, days and hours",
        "timestamp, timestamp -> interval", "timestamptz, timestamptz -> interval", examples=[
        ("age(timestamp '2001-04-10', timestamp '1957-06-13')::text", "43 years 9 mons 27 days"),
        ("age(date '2020-01-01', date '2019-03-31')::text", "9 mons 1 day"),
        ("age(timestamp '2019-03-31', timestamp '2020-01-01 10:00')::text", "-9 mons -1 days -10:00:00")]),
    function("justify_hours", "dates", "With 24 hours as a day", "interval -> interval or error", examples=[
        ("justify_hours(interval '50 hours 10 minutes')::text", "2 days 02:10:00")]),
    function("justify_days", "dates", "With 30 days as a month", "interval -> interval or error", examples=[
        ("justify_days(interval '65 days')::text", "2 mons 5 days")]),
    function("justify_interval", "dates", "With 24 hours as a day, and 30 days as a month, and one sign",
        "interval -> interval or error", examples=[
        ("justify_interval(interval '1 month -1 hour')::text", "29 days 23:00:00")]),
    function("date_bin", "dates", "The start of the interval that it is in, counted from an origin",
        "interval, timestamp, timestamp -> timestamp or error",
        "interval, timestamptz, timestamptz -> timestamptz or error", examples=[
        ("date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01')", "2020-02-11 15:30:00"),
        ("date_bin('15 minutes', timestamp '2000-12-31 23:50', timestamp '2001-01-01')", "2000-12-31 23:45:00"),
        ("date_bin('1 month', timestamp '2020-02-11', timestamp '2001-01-01')",
         "ERROR: timestamps cannot be binned into intervals containing months or years"),
        ("date_bin('0 days', timestamp '2020-02-11', timestamp '2001-01-01')",
         "ERROR: stride must be greater than zero")]),
    _make("make_time", "From hour, minute and second", "integer, integer, double precision", "time",
        ("make_time(8, 15, 23.5)", "08:15:23.5"),
        ("make_time(25, 0, 0)", "ERROR: time field value out of range: 25:00:00")),
    _make("make_timestamp", "From year, month, day, hour, minute and second", _YEAR_TO_SECOND, "timestamp",
        ("make_timestamp(2013, 7, 15, 8, 15, 23.5)", "2013-07-15 08:15:23.5"),
        ("make_timestamp(2013, 13, 15, 8, 15, 23.5)", "ERROR: date field value out of range: 2013-13-15")),
    function("make_timestamptz", "dates", "From year, month, day, hour, minute and second, in UTC or a zone",
        f"{_YEAR_TO_SECOND} -> timestamptz or error", f"{_YEAR_TO_SECOND}, text -> timestamptz or error", examples=[
        ("make_timestamptz(2013, 7, 15, 8, 15, 23.5)", "2013-07-15 08:15:23.5+00"),
        ("make_timestamptz(2013, 7, 15, 8, 15, 23.5, 'America/New_York')", "2013-07-15 12:15:23.5+00"),
        ("make_timestamptz(2013, 7, 15, 8, 15, 23.5, '+05:30')", "2013-07-15 02:45:23.5+00"),
        ("make_timestamptz(2013, 7, 15, 8, 15, 23.5, '+1:')", "2013-07-15 07:15:23.5+00")]),
    _make("make_interval", "From years, months, weeks, days, hours, mins, secs, which can be named",
        "integer, integer, integer, integer, integer, integer, double precision", "interval",
        ("make_interval(days => 10, secs => 1.5)::text", "10 days 00:00:01.5"),
        ("make_interval(1, 2, 3, 4, 5, 6, 7)::text", "1 year 2 mons 25 days 05:06:07")),
    function("isfinite", "dates", "Whether it is not infinite", *(f"{type} -> boolean" for type in
        ("date", "timestamp", "timestamptz", "interval")), examples=[("isfinite(date '2001-02-16')", "true")]),
    function("overlaps", "dates", "Whether two spans of time have a moment in common",
        *(f"{type}, {length}, {type}, {length} -> boolean{' or error' * (length == 'interval')}" for type in
          ("date", "time", "timestamp", "timestamptz") for length in (type, "interval")), special=_overlaps, examples=[
        ("(date '2001-02-16', date '2001-12-21') OVERLAPS (date '2001-10-30', date '2002-10-30')", "true"),
        ("(date '2001-02-16', interval '100 days') OVERLAPS (date '2001-10-30', date '2002-10-30')", "false"),
        ("(date '2001-10-29', interval '1 day') OVERLAPS (date '2001-10-30', interval '1 day')", "false"),
        ("(time '10:00', NULL::time) OVERLAPS (time '11:00', time '10:30')", None),
        ("(time '10:45', NULL::time) OVERLAPS (time '11:00', time '10:30')", "true")]),
    function("timezone", "dates", "AT TIME ZONE: from UTC to the clock of a zone, or back",
        "text, timestamp -> timestamptz or error", "text, timestamptz -> timestamp or error",
        "interval, timestamp -> timestamptz or error", "interval, timestamptz -> timestamp or error",
        special=_timezone, examples=[
        ("timestamp '2001-02-16 20:38:40' AT TIME ZONE 'America/Denver'", "2001-02-17 03:38:40+00"),
        ("timestamptz '2001-02-16 20:38:40+00' AT TIME ZONE 'America/Denver'", "2001-02-16 13:38:40"),
        ("timezone('Europe/Berlin', timestamp '2021-10-31 02:30')", "2021-10-31 01:30:00+00"),
        ("timestamp '2021-03-28 02:30' AT TIME ZONE 'Europe/Berlin'", "2021-03-28 01:30:00+00"),
        ("timestamp '2021-03-28 12:00' AT TIME ZONE interval '2 hours'", "2021-03-28 10:00:00+00"),
        ("timestamp '2021-03-28 12:00' AT TIME ZONE '+5'", "2021-03-28 17:00:00+00"),
        ("timestamp '2021-03-28 12:00' AT TIME ZONE 'chast'", "2021-03-27 23:15:00+00"),
        ("timestamp '2010-07-01 10:00' AT TIME ZONE 'VET'", "2010-07-01 14:30:00+00"),
        ("timestamp '2021-03-28 12:00' AT TIME ZONE '<+05>-05:30'", "2021-03-28 06:30:00+00"),
        ("timestamp '2021-03-28' AT TIME ZONE 'nowhere'", 'ERROR: time zone "nowhere" not recognized')]),
)  # fmt: skip

