"""Random calls of every function of the table, over values that are odd for their types."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.sql.functions import TABLE, Function, Overload
from tests.oracle.choice import Choices

POOLS: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "smallint": ("1::smallint", "0::smallint", "(-32768)::smallint", "7::smallint"),
    "integer": ("0", "1", "2", "3", "-1", "-7", "10", "65"),
    "bigint": ("0::bigint", "5::bigint", "(-3)::bigint", "9223372036854775807", "12::bigint"),
    "numeric": ("0.0", "1.50", "-2.5", "0.001", "12345.678", "100.00", "-0.75", "3::numeric(6,2)"),
    "real": ("1.5::real", "(-0.25)::real", "0::real", "'NaN'::real"),
    "double precision": ("0::float8", "1.5::float8", "(-0.5)::float8", "1e10::float8", "'NaN'::float8",
                         "'Infinity'::float8", "0.1::float8", "90::float8", "(-45)::float8"),
    "text": ("''", "'a'", "'abc'", "'héllo wörld'", "'a,b,,c'", "'(a)(b)?'", "'[a-c]+'", "'g'", "'i'", "'hex'",
             "'base64'", "'YWJj'", "'%s-%I'", "' x '", "'AbC'", "'2020-01-05'", "'YYYY-MM-DD'", "'9G999D99'", "'b'",
             "'\\y'", "'a.'", "'Europe/Berlin'", "'FM990.0'", "'x''y'", "E'l\\nm'", "'😀z'", "'__'", "'HH24:MI:SS'",
             "'l*'"),
    "bytea": ("'\\x'::bytea", "'\\x0102ff'::bytea", "'abc'::bytea"),
    "date": ("date '2020-02-29'", "date '1969-12-31'", "date '2000-01-01'"),
    "time": ("time '00:00'", "time '23:59:59.999999'", "time '10:20:30'"),
    "timestamp": ("timestamp '2020-02-29 12:34:56.789'", "timestamp '1969-12-31 23:59:59'", "timestamp '2000-01-01'",
                  "timestamp '2021-10-31 02:30'"),
    "timestamptz": ("timestamptz '2020-02-29 12:34:56.789+00'", "timestamptz '2021-03-28 01:30+00'"),
    "interval": ("interval '1 day'", "interval '-1 mon 40 days 25:00'", "interval '0'", "interval '15 minutes'"),
    "any[]": ("ARRAY[1,2,3]", "ARRAY[3,NULL,3]", "'{}'::int[]"),
    "any": ("1", "3", "NULL", "0"),
    "text[]": ("ARRAY['a','b',NULL]", "'{}'::text[]", "ARRAY['0']", "'{a,-1}'::text[]", "'{b,b}'::text[]"),
    "json": ("' null'::json", "'true'::json", "'-0.50'::json", "'1e400'::json", "'\"a\"'::json", "'[ ]'::json",
             "'{}'::json", "'[\"a\", 1.5, null, [2, { \"b\": false }]]'::json", "'\"\\u00e9\\n\\\\\\\"\"'::json",
             "'{\"a\": [1, {\"x\": null}], \"b\": {\"b\":2 }, \"a\": \"x\\ty\"}'::json", "'[[\"a\"], \"b\"]'::json",
             "'{\"ab\":1, \"0\": {\"a\": 1}, \"0\": {\"b\": 2}}'::json", "'\"\\u0000\"'::json", "'\"\\ud83d\"'::json"),
    "jsonb": ("'null'::jsonb", "'true'::jsonb", "'-0.5'::jsonb", "'12345678901234567890123'::jsonb", "'\"a\"'::jsonb",
              "'[]'::jsonb", "'{}'::jsonb", "'[\"a\", 1, null, [2, {\"b\": false}]]'::jsonb", "'\"é\\n\\\"\"'::jsonb",
              "'{\"a\": [1, {\"x\": null}], \"b\": {\"b\": 2}}'::jsonb", "'[[\"a\"], \"b\", \"a\"]'::jsonb",
              "'{\"ab\": 1, \"b\": \"x\", \"aa\": true, \"a\": [1, 2]}'::jsonb", "'[1, 2]'::jsonb", "'2'::jsonb"),
}  # fmt: skip
INFIX = frozenset((
    "+", "-", "*", "/", "%", "^", "||", "&", "|", "#", "<<", ">>", "=", "<>", "<", "<=", ">", ">=", "~", "~*", "!~",
    "!~*", "@>", "<@", "&&", "->", "->>", "#>", "#>>", "?", "?|", "?&", "#-",
))  # fmt: skip
_PREFIX = {"bit not": "~ ", "neg": "- "}
_WORDS = {"normalize": "pg_catalog.normalize"}  # PostgreSQL reads the second argument of the others as a word
# What PostgreSQL's C library decides, and what makes texts too long for a test.
_LEFT_OUT = frozenset({"cbrt", "date_trunc", "extract", "date_part", "scale"})


def callable_entries() -> list[Function]:
    """The functions that can be called by name or as an operator."""
    return [entry for entry in TABLE if entry.overloads and entry.category != "casts" and entry.name not in _LEFT_OUT
            and (operator_of(entry) in INFIX or entry.name in _PREFIX or entry.name.replace("_", "").isalnum())
            and entry.name not in ("and", "or", "not", "in", "like", "ilike", "case", "array", "slice")]  # fmt: skip


def operator_of(entry: Function) -> str:
    """The operator of an entry; of those that other types have as well, without the word jsonb."""
    return entry.name.removeprefix("jsonb ")


def call(choices: Choices, entry: Function) -> str:
    """A random call of a function; now and then an argument is NULL, or a call itself."""
    overload = choices.one_of(entry.overloads)
    args = [_argument(choices, overload, i) for i in range(_count(choices, overload))]
    return written(operator_of(entry), args)


def written(name: str, args: Sequence[str]) -> str:
    """The call as SQL: an operator between its arguments or before one, or a name with parentheses."""
    if name in INFIX and len(args) == 2:
        return f"({args[0]} {name} {args[1]})"
    if name == "overlaps":
        return f"(({args[0]}, {args[1]}) OVERLAPS ({args[2]}, {args[3]}))"
    return f"({_PREFIX[name]}{args[0]})" if name in _PREFIX else f"{_WORDS.get(name, name)}({', '.join(args)})"


def _count(choices: Choices, overload: Overload) -> int:
    return len(overload.params) + (choices.integer(0, 2) if overload.variadic else 0)


def _argument(choices: Choices, overload: Overload, position: int) -> str:
    type = overload.param(position)
    if choices.integer(0, 29) == 0 and type in POOLS and not type.startswith("any"):
        return f"NULL::{type}"
    return choices.one_of(POOLS.get(type, ("NULL",)))
