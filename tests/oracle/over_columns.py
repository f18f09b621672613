"""Random expressions of the whole function table over the columns of a table, with odd values of all types."""

from __future__ import annotations

from halfjoin.sql.functions import Function, Overload
from tests.oracle.choice import Choices, chance
from tests.oracle.functions import POOLS, callable_entries, operator_of, written

COLUMNS = {
    "boolean": "c_boolean", "smallint": "c_smallint", "integer": "c_integer", "bigint": "c_bigint",
    "numeric": "c_numeric", "real": "c_real", "double precision": "c_double", "text": "c_text", "bytea": "c_bytea",
    "date": "c_date", "time": "c_time", "timestamp": "c_timestamp", "timestamptz": "c_timestamptz",
    "any[]": "c_integers", "text[]": "c_texts",
}  # fmt: skip
_TYPES = {"numeric": "numeric(12,3)", "any[]": "integer[]"}
DDL = f"CREATE TABLE t (id integer PRIMARY KEY, {', '.join(f'{c} {_TYPES.get(t, t)}' for t, c in COLUMNS.items())})"
# Without -0, which a column holds as 0.
_EXTREMES: dict[str, tuple[str, ...]] = {
    "smallint": ("32767::smallint",),
    "integer": ("2147483647", "(-2147483648)"),
    "bigint": ("(-9223372036854775808)", "4611686018427387904"),
    "numeric": ("999999999.999", "-999999999.999", "0.001"),
    "real": ("'Infinity'::real", "'3.4e38'::real", "'1e-45'::real"),
    "double precision": ("'-Infinity'::float8", "'1.7976931348623157e308'::float8", "'5e-324'::float8", "2.5"),
    "text": ("'ß'", "'ǅ'", "'İı'", "E'e\\u0301'", "E'\\t\\n '", "'\U0001d4b3'", "'%_\\'", "'NaN'", "'1e3'", "'{1,2}'"),
    "date": ("date '0001-01-01'", "date '9999-12-31'", "date '2021-01-03'"),
    "timestamp": ("timestamp '0001-01-01'", "timestamp '9999-12-31 23:59:59.999999'"),
    "timestamptz": ("timestamptz '1900-01-01 00:00+00'",),
    "any[]": ("ARRAY[NULL]::int[]", "ARRAY[2147483647, 0]"),
    "text[]": ("ARRAY['', 'NULL', '\"', '\\', '{', 'a b']",),
}
_ENTRIES = [entry for entry in callable_entries() if entry.name != "pi"]
_RETURNING = {type: [(entry, overload) for entry in _ENTRIES for overload in entry.overloads if overload.result == type]
              for type in COLUMNS}  # fmt: skip


def row(choices: Choices, number: int) -> str:
    """The VALUES of one row."""
    values = ["NULL" if chance(choices, 12) else choices.one_of((*POOLS[type], *_EXTREMES.get(type, ())))
              for type in COLUMNS]  # fmt: skip
    return f"({number}, {', '.join(values)})"


def expression(choices: Choices) -> str:
    """A call of any function over columns, constants and other calls."""
    entry = choices.one_of(_ENTRIES)
    return _call(choices, entry, choices.one_of(entry.overloads), 2)


def _call(choices: Choices, entry: Function, overload: Overload, depth: int) -> str:
    more = choices.integer(0, 2) if overload.variadic else 0
    args = [_of_type(choices, overload.param(i), depth) for i in range(len(overload.params) + more)]
    return written(operator_of(entry), args)


def _of_type(choices: Choices, type: str, depth: int) -> str:
    if type == "any":
        type = "integer"
    nested = _RETURNING.get(type)
    if depth and nested and chance(choices, 30):
        entry, overload = choices.one_of(nested)
        return _call(choices, entry, overload, depth - 1)
    if type in COLUMNS and chance(choices, 60):
        return COLUMNS[type]
    return choices.one_of((*POOLS.get(type, ("NULL",)), *_EXTREMES.get(type, ())))
