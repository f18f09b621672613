"""A table with a column of each type, whose rows hold extremes: the least, the greatest, NULL, infinities, odd text."""

from __future__ import annotations

from tests.oracle.choice import Choices, chance
from tests.oracle.functions import POOLS

TYPES_DDL = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'a b')"
# The types of arguments, the column that has each, and the column's type.
COLUMNS: dict[str, tuple[str, str]] = {
    "boolean": ("c_boolean", "boolean"), "smallint": ("c_smallint", "smallint"), "integer": ("c_integer", "integer"),
    "bigint": ("c_bigint", "bigint"), "numeric": ("c_numeric", "numeric(12,3)"), "real": ("c_real", "real"),
    "double precision": ("c_double", "double precision"), "text": ("c_text", "text"),
    "varchar": ("c_varchar", "varchar(6)"), "char": ("c_char", "char(4)"), "bytea": ("c_bytea", "bytea"),
    "date": ("c_date", "date"), "time": ("c_time", "time"), "timestamp": ("c_timestamp", "timestamp"),
    "timestamptz": ("c_timestamptz", "timestamptz"), "interval": ("c_interval", "interval"), "uuid": ("c_uuid", "uuid"),
    "json": ("c_json", "json"), "jsonb": ("c_jsonb", "jsonb"), "mood": ("c_mood", "mood"),
    "integer[]": ("c_integers", "integer[]"), "text[]": ("c_texts", "text[]"),
    "double precision[]": ("c_doubles", "double precision[]"),
    "date[]": ("c_dates", "date[]"), "numeric[]": ("c_numerics", "numeric(9,2)[]"),
    "jsonb[]": ("c_jsonbs", "jsonb[]"),
}  # fmt: skip
DDL = f"CREATE TABLE t (id integer PRIMARY KEY, {', '.join(f'{c} {t}' for c, t in COLUMNS.values())})"

# Without -0, which a column holds as 0.
_EXTREMES: dict[str, tuple[str, ...]] = {
    "smallint": ("32767::smallint", "(-1)::smallint"),
    "integer": ("2147483647", "(-2147483648)", "1000000007", "100", "-13", "12345"),
    "bigint": ("(-9223372036854775808)", "4611686018427387904", "99999999999", "-1"),
    "numeric": ("999999999.999", "-999999999.999", "0.001", "-0.5", "2.5", "7", "1e6", "-12.345"),
    "real": ("'Infinity'::real", "'3.4e38'::real", "'1e-45'::real", "16777217::real", "0.1::real", "1e15::real"),
    "double precision": ("'-Infinity'::float8", "'1.7976931348623157e308'::float8", "'5e-324'::float8", "2.5::float8",
                         "1e15::float8", "123456789012345680::float8", "1e-5::float8", "-7.5::float8", "33::float8"),
    "text": ("'ß'", "'ǅ'", "'İı'", "E'e\\u0301'", "E'\\t\\n '", "'\U0001d4b3'", "'%_\\'", "'NaN'", "'1e3'", "'{1,2}'",
             "'-12'", "'true'", "'[1, \"a\"]'", "'1 day'", "'12:34:56'", "'happy'", "'infinity'", "'aXbXc'", "'Straße'",
             "'000102'", "'$.a'", "'12,345.6-'", "E'\\u200b'", "'ΑΣ ς'", "'day'", "'UTC'", "'हिन्दी ٣²'"),
    "varchar": ("''::varchar", "'ab'::varchar", "'é 1'::varchar", "'  x  '::varchar", "'123456'::varchar"),
    "char": ("''::char(4)", "'ab'::char(4)", "'é'::char(4)", "'1234'::char(4)", "' x'::char(4)"),
    "bytea": ("'\\xff00ff'::bytea", "'\\xc3a9'::bytea", "'%'::bytea"),
    "date": ("date '0001-01-01'", "date '9999-12-31'", "date '2021-01-03'", "date '1900-02-28'", "date '2020-12-31'"),
    "time": ("time '12:00'", "time '00:00:00.000001'", "time '06:07:08.9'"),
    "timestamp": ("timestamp '0001-01-01'", "timestamp '9999-12-31 23:59:59.999999'",
                  "timestamp '1582-10-15 00:00:00.000001'", "timestamp '2024-12-30 11:59:59.5'"),
    "timestamptz": ("timestamptz '1900-01-01 00:00+00'", "timestamptz '1970-01-01 00:00:00.000001+00'",
                    "timestamptz '2024-02-29 23:59:59.999999+00'", "timestamptz '2038-01-19 03:14:08+00'"),
    "interval": ("interval '1 mon -1 day'", "interval '-178000 years'", "interval '100000 days -00:00:00.000001'",
                 "interval '30 days'", "interval '1 month'", "interval '2.5 hours'", "interval '-13 months 3 days'"),
    "uuid": ("'00000000-0000-0000-0000-000000000000'::uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
             "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid"),
    "mood": ("'sad'::mood", "'ok'::mood", "'happy'::mood", "'a b'::mood"),
    "integer[]": ("ARRAY[NULL]::int[]", "ARRAY[2147483647, 0]", "ARRAY[1,2,3]", "ARRAY[3,NULL,3]", "'{}'::int[]",
                  "ARRAY[5]"),
    "text[]": ("ARRAY['', 'NULL', '\"', '\\', '{', 'a b']", "ARRAY['a', 'b']", "ARRAY['é', NULL, 'ü,']"),
    "double precision[]": ("'{1.5,NaN,-Infinity}'::float8[]", "'{}'::float8[]", "'{1e20,-0.1}'::float8[]",
                           "'{NULL,0}'::float8[]"),
    "date[]": ("'{2020-02-29,NULL}'::date[]", "'{}'::date[]", "ARRAY[date '0001-01-01', date '9999-12-31']"),
    "numeric[]": ("'{1.50,-2.25,NULL}'::numeric(9,2)[]", "'{}'::numeric(9,2)[]", "'{0.00,9999999.99}'::numeric(9,2)[]"),
    "jsonb[]": ("ARRAY['1'::jsonb, '{\"a\": [null]}']", "'{}'::jsonb[]", "ARRAY[NULL, '\"x\"'::jsonb]"),
}  # fmt: skip


def literals(type: str) -> tuple[str, ...]:
    """Odd values of a type, as SQL."""
    return (*POOLS.get(type, ()), *_EXTREMES.get(type, ())) or ("NULL",)


def row(choices: Choices, number: int) -> str:
    """The VALUES of one row."""
    values = ("NULL" if chance(choices, 10) else _value(choices, type) for type in COLUMNS)
    return f"({number}, {', '.join(values)})"


def _value(choices: Choices, type: str) -> str:
    """An odd value of a type, or any: so rows differ, and what depends on two columns sees many pairs."""
    size = 10 ** choices.integer(1, 18)
    n = choices.integer(-size, size)
    made = {
        "smallint": f"({n % 65536 - 32768})::smallint", "integer": f"({n % 2**32 - 2**31})",
        "bigint": str(n), "numeric": f"({n % 10**12}::numeric / 1000)", "real": f"({n / 1000.0})::real",
        "double precision": f"'{n / 1000.0!r}'::float8", "date": f"date '2000-01-01' + {n % 200_000}",
        "time": f"time '00:00' + interval '{n % 86_400_000_000} microseconds'",
        "timestamp": f"timestamp '1700-01-01' + interval '{n % 10**10 * 1000} milliseconds'",
        "timestamptz": f"timestamptz '1995-01-01 00:00+00' + interval '{n % 10**12} milliseconds'",
        "interval": f"make_interval(months => {n % 500 - 250}, days => {n % 701 - 350}, secs => {n % 10**6 / 1000})",
        "text": f"'{n}'", "json": f"'[{n}]'::json", "jsonb": f"'{n}'::jsonb",
        "integer[]": f"ARRAY[{n % 7}, {n % 11 - 5}, {n % 3}]",
        "text[]": f"ARRAY['{n % 5}', chr({n % 600 + 97}), 'a']",
    }  # fmt: skip
    return made[type] if type in made and chance(choices, 35) else choices.one_of(literals(type))
