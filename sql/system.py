"""What the binder asks about PostgreSQL's catalog (`pg_catalog`, `information_schema`), and the types of its columns.

A type that only catalogs have is one of the engine's under another name: an oid is a bigint, a name is a text. The name
tells clients what they see; what a function does follows from the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from halfjoin.sql import types as t
from halfjoin.sql.expr import Column
from halfjoin.sql.types import Kind, SqlType

DATABASE = "halfjoin"
USER = "halfjoin"
PG_CATALOG, INFORMATION = "pg_catalog", "information_schema"
SCHEMAS = (PG_CATALOG, INFORMATION)
SEQUENCE = f"{PG_CATALOG}.sequence "  # before a sequence's name: the table with its one row
TEMPORARY = "pg_temp"  # the schema of what a connection has for itself
POSTGRES = "15.0"  # whose catalog this is
FIXED = {  # settings that only say what holds
    "server_version": POSTGRES, "server_version_num": "150000", "max_identifier_length": "63", "max_index_keys": "32",
    "block_size": "8192", "integer_datetimes": "on", "is_superuser": "on", "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed", "default_transaction_read_only": "off", "in_hot_standby": "off",
    "transaction_read_only": "off", "role": "none", "lc_collate": "C", "lc_ctype": "C", "bytea_output": "hex",
    "jit": "off", "default_table_access_method": "heap",
}  # fmt: skip

OID = SqlType(Kind.BIGINT, named="oid")
NAME = SqlType(Kind.TEXT, named="name")
CHAR = SqlType(Kind.TEXT, named='"char"')
INT2VECTOR = SqlType(Kind.ARRAY, element=t.SMALLINT, named="int2vector")
OIDVECTOR = SqlType(Kind.ARRAY, element=OID, named="oidvector")
# Numbers that show as the name of what they number: a table, a type, ...
REG = {name: SqlType(Kind.BIGINT, named=name) for name in (
    "regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regoper", "regoperator",
    "regcollation")}  # fmt: skip
TYPES: Mapping[str, SqlType] = {
    **REG, "oid": OID, "name": NAME, '"char"': CHAR, "int2vector": INT2VECTOR, "oidvector": OIDVECTOR,
    "xid": SqlType(Kind.BIGINT, named="xid"), "cid": SqlType(Kind.BIGINT, named="cid"),
    **{name: SqlType(Kind.TEXT, named=name) for name in (
        "aclitem", "pg_node_tree", "pg_lsn", "inet", "json", "cstring", "tid", "pg_ndistinct", "pg_dependencies",
        "pg_mcv_list")},
}  # fmt: skip
VECTORS = ("int2vector", "oidvector")  # arrays that begin at 0


def is_temporary(name: str) -> bool:
    """Whether a name in the catalog is that of something temporary."""
    return name.startswith(f"{TEMPORARY}.")


class Size(NamedTuple):
    """How much is held: updates of a collection or entries of an index, bytes of rows, bytes of indexes. Bytes are None
    while the rows wait in files that nobody has opened."""

    rows: int
    bytes: int | None
    indexes: int


@dataclass
class Asker:
    """Who asks: what functions such as current_user say of a session.

    `path`: the schemas of search_path. `settings`: those that current_setting reads. `set`: what set_config calls; None
    where nothing can be set. `lock`: calls a function of advisory locks; None where nobody else could take one.
    `sleep`: lets the answer wait for some seconds; None where nothing waits.
    `notify`: tells other clients a text on a channel when the transaction commits; None where there are none.
    `listening`: the channels on which the session listens.
    `sizes`: asks what is held, by the names of collections and of arrangements.
    """

    user: str = USER
    database: str = DATABASE
    process: int = 0
    path: tuple[str, ...] = ("public",)
    settings: Mapping[str, str] = field(default_factory=dict)
    set: Callable[[str, str], None] | None = None
    lock: Callable[[str, Sequence[int]], bool] | None = None
    sleep: Callable[[float], None] | None = None
    notify: Callable[[str, str], None] | None = None
    listening: Callable[[], Sequence[str]] = tuple
    sizes: Callable[[], Mapping[str, Size]] = dict


class System(Protocol):
    """PostgreSQL's catalog at one moment."""

    asker: Asker

    def columns(self, name: str) -> tuple[Column, ...] | None:
        """The columns of a table such as `pg_catalog.pg_class`; None if there is none of that name."""

    def names(self) -> tuple[str, ...]:
        """The names of all tables, with their schemas."""

    def hidden(self) -> tuple[Column, ...]:
        """The columns that each table has beside those of `*`."""

    def texts(self, what: str) -> Mapping[int, str]:
        """What a function such as `pg_get_constraintdef`, or a type such as `regclass`, says of an oid. Of a
        table's column, by oid times 65536 plus the column's number."""

    def serials(self) -> Mapping[str, str]:
        """The sequences that number columns, by the table's oid, a blank, and the column's name."""

    def numbers(self, type: str) -> Mapping[str, int]:
        """The oids by name, for a type such as `regclass`."""


def plain(type: SqlType) -> SqlType:
    """The type that a table stores such values in: a name's is text."""
    if type.element is not None:
        return t.array(plain(type.element))
    own = type.kind in (Kind.ENUM, Kind.NAMED, Kind.RECORD)
    return type if own or not type.named else SqlType(type.kind, type.precision, type.scale)


def is_reg(type: SqlType) -> bool:
    """Whether values show as the name of what they number."""
    return type.named in REG


def _both(name: str) -> str:
    return "char" if name == '"char"' else name


BY_CATALOG_NAME: Mapping[str, SqlType] = {
    **{_both(name): type for name, type in TYPES.items()},
    "bool": t.BOOLEAN, "int2": t.SMALLINT, "int4": t.INTEGER, "int8": t.BIGINT, "float4": t.REAL, "float8": t.DOUBLE,
    "text": t.TEXT, "timestamptz": t.TIMESTAMPTZ, "bytea": t.BYTEA, "interval": t.INTERVAL,
    "numeric": t.numeric(), "anyarray": t.array(t.TEXT), "pg_statistic": t.TEXT, "date": t.DATE, "time": t.TIME,
    "timestamp": t.TIMESTAMP, "uuid": t.UUID, "json": t.JSON, "jsonb": t.JSONB, "varchar": SqlType(Kind.VARCHAR),
    "sql_identifier": NAME, "cardinal_number": t.INTEGER, "character_data": SqlType(Kind.VARCHAR),
    "yes_or_no": SqlType(Kind.VARCHAR),
}  # fmt: skip


def catalog_type(name: str) -> SqlType:
    """The type for a name as pg_type has it: `int4`, `char`, `name[]`."""
    if name.endswith("[]"):
        return t.array(catalog_type(name.removesuffix("[]")))
    return BY_CATALOG_NAME[name]
