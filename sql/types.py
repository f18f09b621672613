"""The SQL types of columns and expressions, under PostgreSQL's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum


class Kind(StrEnum):
    """The families of types; `SqlType` adds the parameters (length, precision, element)."""

    BOOLEAN = "boolean"
    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    REAL = "real"
    DOUBLE = "double precision"
    NUMERIC = "numeric"
    TEXT = "text"
    VARCHAR = "varchar"
    CHAR = "char"
    BYTEA = "bytea"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    UUID = "uuid"
    JSON = "json"  # a text of JSON as it was written; no two are equal
    JSONB = "jsonb"
    INTERVAL = "interval"
    ENUM = "enum"  # a type of CREATE TYPE
    ARRAY = "array"
    RECORD = "record"  # a row as a value; see `functions.record_values`
    MZ_TIMESTAMP = "mz_timestamp"  # the type of mz_now() only: int64; milliseconds since 1970 when compared with dates
    UNKNOWN = "unknown"  # an untyped literal ('abc' or NULL) before its context gives it a type
    NAMED = "named"  # the name of a type of the user's, before the catalog says what it means


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type. `precision`: digits of a numeric, length of a text, or digits of the second, None: all six; `scale`: of
    a numeric; `element`: of an array.

    `named`: the name of a type of the user's. `labels`: the values of an enum, in their order. `fields`: the names and
    types of a row's members.
    """

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    element: SqlType | None = None
    named: str = ""
    labels: tuple[str, ...] = ()
    fields: tuple[tuple[str, SqlType], ...] = ()

    def __str__(self) -> str:
        if self.named:
            return self.named
        if self.kind is Kind.ARRAY:
            return f"{self.element}[]"
        if self.kind is Kind.NUMERIC and self.precision is not None:
            return f"numeric({self.precision},{self.scale})"
        if self.kind in (Kind.VARCHAR, Kind.CHAR, *SECONDS) and self.precision is not None:
            return f"{self.kind.value}({self.precision})"
        return self.kind.value


BOOLEAN = SqlType(Kind.BOOLEAN)
SMALLINT = SqlType(Kind.SMALLINT)
INTEGER = SqlType(Kind.INTEGER)
BIGINT = SqlType(Kind.BIGINT)
REAL = SqlType(Kind.REAL)
DOUBLE = SqlType(Kind.DOUBLE)
TEXT = SqlType(Kind.TEXT)
BYTEA = SqlType(Kind.BYTEA)
DATE = SqlType(Kind.DATE)
TIME = SqlType(Kind.TIME)
TIMESTAMP = SqlType(Kind.TIMESTAMP)
TIMESTAMPTZ = SqlType(Kind.TIMESTAMPTZ)
UUID = SqlType(Kind.UUID)
JSON = SqlType(Kind.JSON)
JSONB = SqlType(Kind.JSONB)
INTERVAL = SqlType(Kind.INTERVAL)
MZ_TIMESTAMP = SqlType(Kind.MZ_TIMESTAMP)
UNKNOWN = SqlType(Kind.UNKNOWN)

INTEGERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)  # narrow to wide
FLOATS = (Kind.REAL, Kind.DOUBLE)
STRINGS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)
SECONDS = (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)  # their precision is the digits of the second
SECOND_DIGITS = 6

# A stored numeric has at most 38 digits (Arrow's and Delta's decimal128), an intermediate result at most 76.
STORED_DIGITS = 38
WORKING_DIGITS = 76

# The most that an expression may build from one row: bytes of a text, bytea or array, and rows of a table function. A
# larger result is an error of the row, detected before the result is built. (PostgreSQL's fields end at 1 GB; here a
# batch of long values must fit into memory beside the state.)
VALUE_BYTES = 1 << 24
RESULT_ROWS = 10_000_000


def dimensions(type: SqlType) -> int:
    """The number of dimensions of an array type; 0 for another type."""
    return 0 if type.element is None else 1 + dimensions(type.element)


def innermost(type: SqlType) -> SqlType:
    """The type of the elements of all dimensions."""
    return type if type.element is None else innermost(type.element)


def looks_vary(type: SqlType) -> bool:
    """Whether two values of the type can be equal and yet look different, as 1 month and 30 days do."""
    return type.kind is Kind.INTERVAL or any(map(looks_vary, parts_of(type)))


def parts_of(type: SqlType) -> tuple[SqlType, ...]:
    """The types of an array's elements or of a row's members."""
    return tuple(field for _, field in type.fields) if type.element is None else (type.element,)


def with_parts(type: SqlType, change: Callable[[SqlType], SqlType]) -> SqlType:
    """The type with its elements' or members' types changed."""
    if type.element is not None:
        return replace(type, element=change(type.element))
    return replace(type, fields=tuple((name, change(field)) for name, field in type.fields)) if type.fields else type


def has_rows(type: SqlType) -> bool:
    """Whether values of the type are rows, or have rows inside."""
    return type.kind is Kind.RECORD or any(map(has_rows, parts_of(type)))


def field_names(type: SqlType) -> tuple[str, ...]:
    """The names of a row's members where no two may be equal, in upper or lower case, as in files."""
    names = [name.lower() for name, _ in type.fields]
    return tuple(name if name and names.count(name.lower()) == 1 else f"{name} ({number})"
                 for number, (name, _) in enumerate(type.fields, 1))  # fmt: skip


def all_digits(type: SqlType) -> SqlType:
    """The type with all digits of the second, of its elements and members as well."""
    return replace(type, precision=None) if type.kind in SECONDS else with_parts(type, all_digits)


def of_any_length(type: SqlType) -> SqlType:
    """The type with texts of any length, of arrays as well: where their length is still to be checked."""
    if type.element is not None:
        return array(of_any_length(type.element))
    return SqlType(Kind.TEXT) if type.kind in STRINGS and type.precision is not None else type


def numeric(precision: int = STORED_DIGITS, scale: int = 10) -> SqlType:
    """numeric(precision, scale). A column has one fixed scale, so the default keeps 10 decimals."""
    return SqlType(Kind.NUMERIC, precision, scale)


def with_digits(type: SqlType) -> SqlType:
    """The type with the default precision and scale for a bare `numeric`, of its elements and members as well."""
    return numeric() if type == SqlType(Kind.NUMERIC) else with_parts(type, with_digits)


def array(element: SqlType) -> SqlType:
    """An array of the element type."""
    return SqlType(Kind.ARRAY, element=element)
