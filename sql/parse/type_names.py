"""The names of types in SQL text: from a parsed type to a `SqlType`."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError

from halfjoin.sql import types as t
from halfjoin.sql.parse.locate import PUBLIC, name_of, refuse, written
from halfjoin.sql.system import BY_CATALOG_NAME, INFORMATION, PG_CATALOG, TYPES, plain
from halfjoin.sql.types import SqlType

NAMED: dict[exp.DType, SqlType] = {
    exp.DType.BOOLEAN: t.BOOLEAN,
    exp.DType.SMALLINT: t.SMALLINT,
    exp.DType.INT: t.INTEGER,
    exp.DType.BIGINT: t.BIGINT,
    exp.DType.FLOAT: t.REAL,
    exp.DType.DOUBLE: t.DOUBLE,
    exp.DType.TEXT: t.TEXT,
    exp.DType.VARBINARY: t.BYTEA,
    exp.DType.DATE: t.DATE,
    exp.DType.TIME: t.TIME,
    exp.DType.TIMESTAMP: t.TIMESTAMP,
    exp.DType.TIMESTAMPTZ: t.TIMESTAMPTZ,
    exp.DType.UUID: t.UUID,
    exp.DType.JSON: t.JSON,
    exp.DType.JSONB: t.JSONB,
    exp.DType.INTERVAL: t.INTERVAL,
}
_FLOATS = (exp.DType.FLOAT, exp.DType.DOUBLE)
FUNCTIONS: dict[str, SqlType] = {  # types that PostgreSQL can also call as functions, as in date(ts)
    "bool": t.BOOLEAN, "int2": t.SMALLINT, "int4": t.INTEGER, "int8": t.BIGINT, "float4": t.REAL, "float8": t.DOUBLE,
    "text": t.TEXT, "date": t.DATE, "bpchar": SqlType(t.Kind.CHAR), "timestamptz": t.TIMESTAMPTZ, "uuid": t.UUID,
    "json": t.JSON, "jsonb": t.JSONB, "bytea": t.BYTEA,
}  # fmt: skip
STRINGS = {exp.DType.VARCHAR: t.Kind.VARCHAR, exp.DType.CHAR: t.Kind.CHAR, exp.DType.NCHAR: t.Kind.CHAR,
           exp.DType.BPCHAR: t.Kind.CHAR}
NEAREST = {exp.DType.TIMETZ: "time or timestamptz: the offset of a zone depends on the date",
           exp.DType.BIT: "bytea, which get_bit and set_bit read and change, or an integer with &, | and #"}
ELSEWHERE = {  # types of other databases
    "datetime": "timestamp", "nvarchar": "varchar", "tinyint": "smallint", "string": "text", "short": "smallint",
    "long": "bigint", "int16": "smallint", "int32": "integer", "int64": "bigint", "double": "double precision",
    "number": "numeric", "blob": "bytea", "binary": "bytea", "varbinary": "bytea", "clob": "text",
}  # fmt: skip
KNOWN = ("boolean, smallint, integer, bigint, real, double precision, numeric(p,s), text, varchar(n), char(n), bytea, "
         "date, time(p), timestamp(p), timestamptz(p), uuid, json, jsonb, interval(p), and arrays of these")


def sql_type(node: exp.DataType, sql: str = "") -> SqlType:
    """The `SqlType` of a parsed type, or UnsupportedSQL. A bare `numeric` gets neither precision nor scale."""
    if not isinstance(node.this, exp.DType):  # regclass, cstring, interval day to second, ...
        raise refuse(node, sql, f"type {written(node).lower()} is not supported", f"types: {KNOWN}").with_(code="42704")
    kind, sizes = node.this, [_size(part, sql) for part in node.expressions if isinstance(part, exp.DataTypeParam)]
    if kind is exp.DType.ARRAY and node.expressions:
        return t.array(sql_type(node.expressions[0], sql))
    if kind is exp.DType.USERDEFINED and isinstance(node.args.get("kind"), exp.Expr) and not sizes:
        if (known := of_catalog(node.args["kind"])) is not None:
            return known
        return SqlType(t.Kind.NAMED, named=_named(node.args["kind"]))
    if kind is exp.DType.DECIMAL:
        return _numeric(node, sizes, sql)
    if kind in STRINGS:
        if sizes and sizes[0] < 1:
            raise refuse(node, sql, "the length of a text type must be at least 1")
        default = 1 if kind in (exp.DType.CHAR, exp.DType.NCHAR) else None
        return SqlType(STRINGS[kind], sizes[0] if sizes else default)
    if kind in NAMED and NAMED[kind].kind in t.SECONDS and len(sizes) == 1 and sizes[0] < t.SECOND_DIGITS:
        return SqlType(NAMED[kind].kind, sizes[0])
    if kind in _FLOATS and len(sizes) == 1:  # float(p), with p in binary digits
        if not 1 <= sizes[0] <= 53:
            raise refuse(node, sql, "the precision of a float is from 1 to 53", "write float(53)").with_(code="22023")
        return t.REAL if sizes[0] <= 24 else t.DOUBLE
    if kind not in NAMED or (sizes and NAMED[kind].kind not in t.SECONDS):
        # The name as parsed: sqlglot's writer replaces some types by others.
        text = written(node) if kind is exp.DType.USERDEFINED else kind.value
        text += f"({', '.join(map(str, sizes))})" if sizes and kind is not exp.DType.USERDEFINED else ""
        nearest = NEAREST.get(kind) or ELSEWHERE.get(text.partition("(")[0].lower())
        instead = f"write {nearest}" if nearest else f"types: {KNOWN}"
        raise refuse(node, sql, f"type {text.lower()} is not supported", instead)
    return NAMED[kind]


def stored_type(node: exp.DataType, sql: str) -> SqlType:
    """The type of a column; a bare `numeric` gets the default precision and scale of a column."""
    type = sql_type(node, sql)
    if plain(type) != type:
        raise refuse(node, sql, f"a column of type {type} is not supported: only catalogs have it",
                     f"write {plain(type)}").with_(code="42704")
    return t.with_digits(type)


def of_catalog(node: exp.Expr) -> SqlType | None:
    """The type of a name that PostgreSQL's catalog has: `oid`, `pg_catalog.text`, `_text`; None for another."""
    *schema, name = [name_of(part) for part in node.find_all(exp.Identifier, bfs=False)]
    if schema not in ([], [PG_CATALOG], [INFORMATION]):
        return None
    quoted = f'"{name}"' if name == "char" else name
    if not schema:
        element = BY_CATALOG_NAME.get(name.removeprefix("_")) if name.startswith("_") else None
        return TYPES.get(quoted) if element is None else t.array(element)
    if name.startswith("_"):
        return t.array(BY_CATALOG_NAME[name[1:]]) if name[1:] in BY_CATALOG_NAME else None
    return TYPES.get(quoted) or BY_CATALOG_NAME.get(name)


def _named(node: exp.Expr) -> str:
    """The name of a type of the user's in the catalog; see `locate.catalog_name`."""
    *schema, name = [name_of(part) for part in node.find_all(exp.Identifier, bfs=False)]
    return ".".join([*(part for part in schema if part != PUBLIC), name])


def _numeric(node: exp.DataType, sizes: list[int], sql: str) -> SqlType:
    if not sizes:
        return SqlType(t.Kind.NUMERIC)
    precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
    if not 1 <= precision <= t.STORED_DIGITS or not 0 <= scale <= precision:
        raise refuse(node, sql, f"numeric({precision},{scale}) is not supported",
                     f"precision is 1 to {t.STORED_DIGITS}, scale is 0 to the precision").with_(
                         code="22023" if not 1 <= precision <= 1000 else None)
    return t.numeric(precision, scale)


def _size(node: exp.DataTypeParam, sql: str) -> int:
    if not (isinstance(node.this, exp.Literal) and node.this.name.isdigit()):
        raise refuse(node, sql, "the size of a type must be a whole number").with_(code="42601")
    return int(node.this.name)


def type_named(text: str) -> SqlType:
    """The type for a text such as `numeric(10,2)` or `bigint[]`."""
    try:
        node = exp.DataType.build(text, dialect="halfjoin", udt=False)
    except ParseError:
        raise refuse(None, text, f"type {text!r} is not supported", f"types: {KNOWN}") from None
    return sql_type(node, text)
