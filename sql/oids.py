"""The numbers by which clients of PostgreSQL know types: one table for the server's messages and for pg_catalog.

Built-in types have PostgreSQL's fixed numbers. Types of the user's have numbers from 16384 up, made from their names.
So a warehouse that is opened again gives the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

from halfjoin.sql import types as t
from halfjoin.sql.types import Kind, SqlType

FIRST_OWN = 16384  # PostgreSQL gives numbers below it to what is built in
_OWN = (1 << 30) - FIRST_OWN  # so many numbers are for the user's; clients may hold them as signed 32-bit integers


@dataclass(frozen=True, slots=True)
class PgType:
    """A type as `pg_type` has it. `length`: bytes of a value, -1 if they vary, -2 for a text that ends in 0.

    `category` is PostgreSQL's letter: A array, B boolean, C row, D date or time, E enum, N number, S string,
    T timespan, P pseudo-type, U other, X unknown, Z internal. `sql`: the type's name in SQL.
    """

    oid: int
    array: int
    name: str
    length: int
    category: str
    sql: str
    kind: Kind | None = None  # the engine's type; None: only catalog tables have it


BUILT_IN: tuple[PgType, ...] = (
    PgType(16, 1000, "bool", 1, "B", "boolean", Kind.BOOLEAN),
    PgType(17, 1001, "bytea", -1, "U", "bytea", Kind.BYTEA),
    PgType(20, 1016, "int8", 8, "N", "bigint", Kind.BIGINT),
    PgType(21, 1005, "int2", 2, "N", "smallint", Kind.SMALLINT),
    PgType(23, 1007, "int4", 4, "N", "integer", Kind.INTEGER),
    PgType(25, 1009, "text", -1, "S", "text", Kind.TEXT),
    PgType(700, 1021, "float4", 4, "N", "real", Kind.REAL),
    PgType(701, 1022, "float8", 8, "N", "double precision", Kind.DOUBLE),
    PgType(1042, 1014, "bpchar", -1, "S", "character", Kind.CHAR),
    PgType(1043, 1015, "varchar", -1, "S", "character varying", Kind.VARCHAR),
    PgType(1082, 1182, "date", 4, "D", "date", Kind.DATE),
    PgType(1083, 1183, "time", 8, "D", "time without time zone", Kind.TIME),
    PgType(1114, 1115, "timestamp", 8, "D", "timestamp without time zone", Kind.TIMESTAMP),
    PgType(1184, 1185, "timestamptz", 8, "D", "timestamp with time zone", Kind.TIMESTAMPTZ),
    PgType(1186, 1187, "interval", 16, "T", "interval", Kind.INTERVAL),
    PgType(1700, 1231, "numeric", -1, "N", "numeric", Kind.NUMERIC),
    PgType(2950, 2951, "uuid", 16, "U", "uuid", Kind.UUID),
    PgType(114, 199, "json", -1, "U", "json", Kind.JSON),
    PgType(3802, 3807, "jsonb", -1, "U", "jsonb", Kind.JSONB),
    PgType(18, 1002, "char", 1, "Z", '"char"'),
    PgType(19, 1003, "name", 64, "S", "name"),
    PgType(22, 1006, "int2vector", -1, "A", "int2vector"),
    PgType(24, 1008, "regproc", 4, "N", "regproc"),
    PgType(26, 1028, "oid", 4, "N", "oid"),
    PgType(28, 1011, "xid", 4, "U", "xid"),
    PgType(30, 1013, "oidvector", -1, "A", "oidvector"),
    PgType(705, 0, "unknown", -2, "X", "unknown"),
    PgType(1266, 1270, "timetz", 12, "D", "time with time zone"),
    PgType(2205, 2210, "regclass", 4, "N", "regclass"),
    PgType(2206, 2211, "regtype", 4, "N", "regtype"),
    PgType(2249, 2287, "record", -1, "P", "record"),
    PgType(2276, 0, "any", 4, "P", '"any"'),
    PgType(2278, 0, "void", 4, "P", "void"),
    PgType(4089, 4090, "regnamespace", 4, "N", "regnamespace"),
)
BY_OID = {one.oid: one for one in BUILT_IN}
ARRAY_OF = {one.array: one for one in BUILT_IN if one.array}  # from an array's number to the type of its elements
_BY_NAME = {one.sql: one for one in BUILT_IN if one.sql in ("name", '"char"', "oid", "int2vector", "oidvector", "void")}
_BY_KIND = {one.kind: one for one in BUILT_IN if one.kind is not None}
_SAME = {Kind.MZ_TIMESTAMP: Kind.BIGINT, Kind.UNKNOWN: Kind.TEXT}  # how clients see a type that PostgreSQL has not
_ALL_FIELDS = 0x7FFF << 16  # an interval's modifier says which fields it has
_VARLENA = 4  # PostgreSQL counts the header of a value of varying length in its modifiers


def own_oid(name: str) -> int:
    """The number of what the user has named: a type, and other things in pg_catalog. It follows from the name alone."""
    return FIRST_OWN + crc32(name.encode()) % _OWN


@lru_cache(maxsize=4096)
def pg_type(type: SqlType) -> PgType:
    """The entry of a type; of an array, that of the array type."""
    if type.kind is Kind.ARRAY:
        assert type.element is not None
        if type.element.kind is Kind.ARRAY:
            return pg_type(type.element)  # PostgreSQL's array types have any number of dimensions
        element = pg_type(type.element)
        return PgType(element.array, 0, f"_{element.name}", -1, "A", f"{element.sql}[]", Kind.ARRAY)
    if type.kind is Kind.ENUM:
        return PgType(own_oid(type.named), own_oid(f"{type.named}[]"), type.named, 4, "E", type.named, Kind.ENUM)
    if type.kind is Kind.RECORD:
        return BY_OID[2249] if not type.named else PgType(
            own_oid(type.named), own_oid(f"{type.named}[]"), type.named, -1, "C", type.named, Kind.RECORD)
    if type.named in _BY_NAME:
        return _BY_NAME[type.named]
    return _BY_KIND[_SAME.get(type.kind, type.kind)]


def modifier(type: SqlType) -> int:
    """PostgreSQL's type modifier: the length of a text, the digits of a numeric or of the second; -1 for none."""
    if type.kind is Kind.ARRAY and type.element is not None:
        return modifier(type.element)
    if type.precision is None:
        return -1
    if type.kind is Kind.NUMERIC:
        return (type.precision << 16 | (type.scale or 0)) + _VARLENA
    if type.kind in t.SECONDS:
        return type.precision + (_ALL_FIELDS if type.kind is Kind.INTERVAL else 0)
    return type.precision + _VARLENA if type.kind in (Kind.VARCHAR, Kind.CHAR) else -1


def type_of(oid: int, enums: Iterable[SqlType] = ()) -> SqlType | None:
    """The engine's type with a number; None if there is none. `enums`: the user's enums and types of rows."""
    if oid in ARRAY_OF:
        element = type_of(ARRAY_OF[oid].oid)
        return None if element is None else t.array(element)
    if oid in BY_OID:
        kind = BY_OID[oid].kind
        return None if kind is None else SqlType(kind)
    for one in enums:
        if oid == own_oid(one.named):
            return one
        if oid == own_oid(f"{one.named}[]"):
            return t.array(one)
    return None
