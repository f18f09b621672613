"""Functions of dates, times and intervals; the time zone is UTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import cast, coerce
from halfjoin.sql.functions.date_input import check_input
from halfjoin.sql.functions.parameters import is_parameter, typed
from halfjoin.sql.functions.signature import Resolve, function
from halfjoin.sql.types import DATE, DOUBLE, INTEGER, INTERVAL, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType

TRUNCATIONS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year",
               "decade", "century", "millennium")  # fmt: skip

# Fields of EXTRACT, with the decimals of the result (which has 18 digits before the point).
_CLOCK = {"microseconds": 0, "milliseconds": 3, "second": 6, "minute": 0, "hour": 0}
_CALENDAR = {"day": 0, "month": 0, "quarter": 0, "year": 0, "decade": 0, "century": 0, "millennium": 0}
_WEEKS = {"week": 0, "isoyear": 0, "dow": 0, "isodow": 0, "doy": 0}
_FIELDS: dict[Kind, dict[str, int]] = {
    Kind.DATE: {**_CALENDAR, **_WEEKS, "epoch": 0, "julian": 0},
    Kind.TIME: {**_CLOCK, "epoch": 6},
    Kind.TIMESTAMP: {**_CLOCK, **_CALENDAR, **_WEEKS, "epoch": 6},
    Kind.TIMESTAMPTZ: {**_CLOCK, **_CALENDAR, **_WEEKS, "epoch": 6, "timezone": 0, "timezone_hour": 0,
                       "timezone_minute": 0},
    Kind.INTERVAL: {**_CLOCK, **_CALENDAR, "epoch": 6},
}  # fmt: skip

_ELSEWHERE = {unit for fields in _FIELDS.values() for unit in fields}  # what PostgreSQL knows, but not for each type

_SYNONYMS = {
    "us": "microseconds", "usec": "microseconds", "usecs": "microseconds", "microsecond": "microseconds",
    "ms": "milliseconds", "msec": "milliseconds", "msecs": "milliseconds", "millisecond": "milliseconds",
    "s": "second", "sec": "second", "secs": "second", "seconds": "second", "m": "minute", "min": "minute",
    "mins": "minute", "minutes": "minute", "h": "hour", "hr": "hour", "hrs": "hour", "hours": "hour", "d": "day",
    "days": "day", "w": "week", "weeks": "week", "mon": "month", "mons": "month", "months": "month", "qtr": "quarter",
    "y": "year", "yr": "year", "yrs": "year", "years": "year", "decades": "decade", "dec": "decade", "decs": "decade",
    "c": "century", "cent": "century", "centuries": "century", "mil": "millennium", "mils": "millennium",
    "millennia": "millennium",
}  # fmt: skip


def named_unit(function: str, written: str, type: SqlType) -> str:
    """The main name of a unit of `extract` or `date_trunc`, or UnsupportedSQL if the function has no such unit."""
    if function == "extract":
        known = tuple(_FIELDS[type.kind])
    else:
        known = tuple(unit for unit in TRUNCATIONS if unit != "week" or type.kind is not Kind.INTERVAL)
    name = written.lower()
    name = _SYNONYMS.get(name, name)
    if name not in known:
        code = "0A000" if name in (_ELSEWHERE if function == "extract" else TRUNCATIONS) else "22023"
        raise UnsupportedSQL(f"{function} has no unit '{written}' for {type}", remedy="known: " + ", ".join(known),
                             code=code)
    return name


def _constant_unit(function: str, unit: Literal, type: SqlType) -> str:
    if is_parameter(unit):  # the types are those of any unit
        typed(unit, TEXT)
        return "day" if type.kind is not Kind.TIME else "hour"
    return named_unit(function, str(unit.value), type)


def _with_unit(function: str, unit: Expr, value: Expr, type: SqlType) -> Expr:
    """The call with a constant unit under its main name, or with a unit for each row."""
    if isinstance(unit, Literal) and isinstance(unit.value, str):
        return Call(function, (Literal(_constant_unit(function, unit, value.type), TEXT), value), type)
    return Call(f"{function} by name", (coerce(unit, TEXT), value), type)


def _date_trunc(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if len(args) not in (2, 3):
        raise UnsupportedSQL("date_trunc takes a unit and a timestamp, and a time zone", wrong=True)
    value = args[1]
    if len(args) == 3:
        return _trunc_in_zone(resolve, args[0], cast(value, TIMESTAMPTZ), args[2])
    if value.type.kind is Kind.UNKNOWN or value.type.kind is Kind.DATE:
        value = cast(value, SqlType(Kind.TIMESTAMPTZ))
    if value.type.kind is Kind.TIME:
        value = cast(value, INTERVAL)
    if value.type.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL):
        raise UnsupportedSQL(f"date_trunc of {value.type}", remedy="give a date, timestamp or interval")
    return _with_unit("date_trunc", args[0], value, value.type)


def _trunc_in_zone(resolve: Resolve, unit: Expr, value: Expr, zone: Expr) -> Expr:
    """Truncate what the zone's clock shows. The offset from UTC stays unless the day may become another one."""
    clock = resolve("timezone", (zone, value))
    cut = _date_trunc(resolve, (unit, clock))
    if not isinstance(cut, Call) or not isinstance(cut.args[0], Literal):
        raise UnsupportedSQL("date_trunc in a time zone with a unit that is not constant",
                             remedy="write it as a literal, such as 'month'")
    if TRUNCATIONS.index(str(cut.args[0].value)) < TRUNCATIONS.index("day"):
        return resolve("-", (value, resolve("-", (clock, cut))))
    return resolve("timezone", (zone, cut))


def _field(name: str) -> Callable[[Resolve, Sequence[Expr]], Expr]:
    """EXTRACT returns numeric, date_part the same value in double precision."""

    def special(resolve: Resolve, args: Sequence[Expr]) -> Expr:
        if len(args) != 2:
            raise UnsupportedSQL(f"{name} takes a unit and a date, time, timestamp or interval")
        value = args[1]
        if value.type.kind is Kind.UNKNOWN or (value.type == DATE and name == "date_part"):
            value = cast(value, TIMESTAMP)
        fields = _FIELDS.get(value.type.kind)
        if fields is None:
            raise UnsupportedSQL(f"{name} of {value.type}", remedy="cast it to a date or timestamp")
        if args[0] == Literal("julian", args[0].type) and value.type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            julian = _julian(resolve, value)
            return julian if name == "extract" else cast(julian, DOUBLE)
        if name == "date_part":
            return _with_unit("extract", args[0], value, DOUBLE)
        if not isinstance(args[0], Literal) or not isinstance(args[0].value, str):
            raise UnsupportedSQL("extract with a unit that is not constant", remedy="write date_part(unit, value)")
        unit = _constant_unit("extract", args[0], value.type)
        return Call("extract", (Literal(unit, TEXT), value), SqlType(Kind.NUMERIC, 18 + fields[unit], fields[unit]))

    return special


def _julian(resolve: Resolve, moment: Expr) -> Expr:
    """The Julian day of a timestamp, with the part of the day that has gone by."""
    clock = cast(moment, TIMESTAMP)
    day = resolve("extract", (Literal("julian", TEXT), cast(clock, DATE, explicit=True)))
    seconds = resolve("extract", (Literal("epoch", TEXT), cast(clock, TIME, explicit=True)))
    return resolve("+", (day, resolve("/", (seconds, Literal(86_400, INTEGER)))))


_MOMENT = "text, timestamp -> numeric"

DATES = (
    function("date_trunc", "dates", "Truncates to a unit: " + ", ".join(TRUNCATIONS), "text, timestamp -> timestamp",
        "text, timestamptz -> timestamptz", "text, timestamptz, text -> timestamptz or error",
        "text, interval -> interval", special=_date_trunc, examples=[
        ("date_trunc('day', timestamptz '2001-02-16 20:38:40+00', 'Australia/Sydney')", "2001-02-16 13:00:00+00"),
        ("date_trunc('hour', timestamptz '2001-02-16 20:38:40+00', 'Asia/Kolkata')", "2001-02-16 20:30:00+00"),
        ("date_trunc('hour', interval '-2 days -3 hours 40 minutes')::text", "-2 days -02:00:00"),
        ("date_trunc('quarter', interval '14 months 3 days')::text", "1 year"),
        ("date_trunc('hour', timestamp '2001-02-16 20:38:40')", "2001-02-16 20:00:00"),
        ("date_trunc('month', timestamp '2001-02-16 20:38:40')", "2001-02-01 00:00:00"),
        ("date_trunc('week', timestamp '2024-01-07 12:00')", "2024-01-01 00:00:00"),
        ("date_trunc('quarter', timestamp '2024-06-30')", "2024-04-01 00:00:00"),
        ("date_trunc('year', timestamp '1969-12-31 23:59:59.999999')", "1969-01-01 00:00:00"),
        ("date_trunc('hour', time '10:20:30')::text", "10:00:00"),
        ("date_trunc('decade', timestamp '2024-06-30')", "2020-01-01 00:00:00"),
        ("date_trunc('century', timestamp '2000-06-30')", "1901-01-01 00:00:00"),
        ("date_trunc('day', date '2024-06-30')", "2024-06-30 00:00:00+00")]),
    function("extract", "dates", "A field of a date, time, timestamp or interval, as numeric",
        "text, date -> numeric", "text, time -> numeric", _MOMENT, "text, timestamptz -> numeric",
        "text, interval -> numeric", special=_field("extract"), examples=[
        ("extract(year FROM timestamp '2001-02-16 20:38:40')", "2001"), ("extract(doy FROM date '2001-02-16')", "47"),
        ("extract(second FROM timestamp '2001-02-16 20:38:40.12')", "40.120000"),
        ("extract(epoch FROM date '2024-01-01')", "1704067200"), ("extract(dow FROM date '2024-01-07')", "0"),
        ("extract(julian FROM date '2020-01-01')", "2458850"),
        ("extract(julian FROM timestamp '2006-01-01 12:00')", "2453737.50000000000000000000"),
        ("extract(isodow FROM date '2024-01-07')", "7"), ("extract(week FROM date '2021-01-03')", "53"),
        ("extract(isoyear FROM date '2021-01-03')", "2020"), ("extract(quarter FROM date '2024-06-30')", "2"),
        ("extract(century FROM date '2000-12-31')", "20"), ("extract(decade FROM date '1999-01-01')", "199"),
        ("extract(epoch FROM interval '1 month 2 days 03:00')", "2775600.000000"),
        ("extract(epoch FROM interval '1000000000 days')", "86400000000000.000000"),
        ("extract(hour FROM time '10:20:30.5')", "10"), ("extract(milliseconds FROM time '10:20:30.5')", "30500.000"),
        ("extract(day FROM interval '40 days 12:00')", "40"), ("extract(month FROM interval '-13 months')", "-1")]),
    function("date_part", "dates", "As extract, in double precision", "text, timestamp -> double precision",
        "text, timestamptz -> double precision", "text, time -> double precision",
        "text, interval -> double precision", special=_field("date_part"), examples=[
        ("date_part('day', timestamp '2001-02-16 20:38:40')", "16"), ("date_part('month', date '2024-06-30')", "6"),
        ("date_part('epoch', timestamp '1970-01-01 00:00:01.5')", "1.5")]),
    function("make_date", "dates", "From year, month and day", "integer, integer, integer -> date or error", examples=[
        ("make_date(2013, 7, 15)", "2013-07-15"),
        ("make_date(2023, 2, 29)", "ERROR: date field value out of range: 2023-02-29")]),
    function("to_date", "dates", "Reads a date by a pattern, as to_char writes it", "text, text -> date or error",
        check=check_input, examples=[("to_date('05 Dec 2000', 'DD Mon YYYY')", "2000-12-05"),
        ("to_date('20200115', 'YYYYMMDD')", "2020-01-15"), ("to_date('2024-W07-3', 'IYYY-\"W\"IW-ID')", "2024-02-14"),
        ("to_date('2020 53 sun', 'IYYY IW dy')", "2021-01-03"), ("to_date('2005 03', 'IYYY IDDD')", "2005-01-05"),
        ("to_date('2024 9', 'YYYY WW')", "2024-02-26"), ("to_date('2024 3 2', 'YYYY MM W')", "2024-03-08"),
        ("to_date('21 99', 'CC YY')", "2099-01-01"), ("to_date('1,582 8', 'Y,YYY MM')", "1582-08-01"),
        ("to_date('2020 100', 'YYYY DDD')", "2020-04-09"),
        ("to_date('2020-02-30', 'YYYY-MM-DD')", 'ERROR: date/time field value out of range: "2020-02-30"')]),
    function("to_timestamp", "dates", "From seconds since 1970, or by a pattern, as to_char writes it",
        "double precision -> timestamptz or error", "text, text -> timestamptz or error", check=check_input, examples=[
        ("to_timestamp('05 Dec 2000 10:20 pm', 'DD Mon YYYY HH12:MI am')", "2000-12-05 22:20:00+00"),
        ("to_timestamp(1284352323)", "2010-09-13 04:32:03+00"), ("to_timestamp(0.5)", "1970-01-01 00:00:00.5+00"),
        ("to_timestamp('NaN'::double precision)", "ERROR: timestamp cannot be NaN")]),
)  # fmt: skip
