"""The types of pg_type: PostgreSQL's own, from `types.txt`, with their arrays; and the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from halfjoin.sql.named import Domain
from halfjoin.sql.oids import own_oid, pg_type
from halfjoin.sql.types import SqlType

FUNCTIONS = ("input", "output", "receive", "send", "modin", "modout", "subscript")  # of a type
_LONG = {"bool": "boolean", "int8": "bigint", "int2": "smallint", "int4": "integer", "float4": "real",
         "float8": "double precision", "bpchar": "character", "varchar": "character varying", "char": '"char"',
         "time": "time without time zone", "timetz": "time with time zone", "any": '"any"', "bit": "bit",
         "timestamp": "timestamp without time zone", "timestamptz": "timestamp with time zone",
         "varbit": "bit varying"}  # fmt: skip
_OF_ROWS = ("record_in", "record_out", "record_recv", "record_send", "-", "-", "-")


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A type as pg_type has it. `title`: what format_type says. `functions`: the names of `FUNCTIONS`; `-` is none."""

    oid: int
    array: int
    name: str
    length: int
    by_value: bool
    kind: str  # b base, c row, e enum, d domain, p pseudo
    category: str
    preferred: bool
    align: str
    storage: str
    collation: int
    functions: tuple[str, ...]
    element: int
    title: str
    schema: str = "pg_catalog"
    domain: Domain | None = None
    base: int = 0
    modifier: int = -1
    fields: SqlType | None = None  # the type, if it is one of rows
    table: int = 0  # the number of the table or view, if it is the type of its rows

    @property
    def relation(self) -> int:
        """The number by which pg_attribute knows the fields of a type of rows; 0 for another type."""
        return own_oid(f"fields of {self.oid}") if self.fields is not None else self.table


@cache
def built_in() -> tuple[TypeRow, ...]:
    """PostgreSQL's types, each followed by its array type."""
    made: list[TypeRow] = []
    for line in (Path(__file__).parent / "types.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        f = line.split(" ")
        title = _LONG.get(f[2], f[2])
        one = TypeRow(int(f[0]), int(f[1]), f[2], int(f[3]), f[4] == "t", f[5], f[6], f[7] == "t", f[8], f[9],
                      int(f[10]), tuple(f[11:18]), int(f[18]), title)  # fmt: skip
        made.append(one)
        if one.array:
            made.append(array_of(one))
    return tuple(made)


def array_of(one: TypeRow) -> TypeRow:
    """The array type of a type."""
    functions = ("array_in", "array_out", "array_recv", "array_send", *one.functions[4:6], "array_subscript_handler")
    align = "d" if one.align == "d" else "i"
    return TypeRow(one.array, 0, f"_{one.name}", -1, False, "b", "A", False, align, "x", one.collation, functions,
                   one.oid, f"{one.title}[]", one.schema)  # fmt: skip


def rows_of(table: int) -> int:
    """The number of the type of a table's or a view's rows."""
    return own_oid(f"rows of {table}")


def row_type(table: int, schema: str, name: str, shown: str) -> Iterator[TypeRow]:
    """The type of a table's or a view's rows, and that of their arrays."""
    row = TypeRow(rows_of(table), own_oid(f"arrays of rows of {table}"), name, -1, False, "c", "C", False, "d", "x", 0,
                  _OF_ROWS, 0, shown, schema, table=table)  # fmt: skip
    yield from (row, array_of(row))


def own_types(enums: Iterator[tuple[str, str, SqlType]], domains: Iterator[tuple[str, str, Domain]],
              shown: dict[str, str]) -> Iterator[TypeRow]:
    """The user's types: enums, rows and domains by schema and bare name. `shown`: how format_type names them."""
    by_oid = {one.oid: one for one in built_in()}
    for schema, name, enum in enums:
        if enum.fields:
            row = TypeRow(pg_type(enum).oid, own_oid(f"{enum.named}[]"), name, -1, False, "c", "C", False, "d", "x", 0,
                          _OF_ROWS, 0, shown[enum.named], schema, fields=enum)  # fmt: skip
            yield from (row, array_of(row))
            continue
        one = TypeRow(pg_type(enum).oid, own_oid(f"{enum.named}[]"), name, 4, True, "e", "E", False, "i", "p", 0,
                      ("enum_in", "enum_out", "enum_recv", "enum_send", "-", "-", "-"), 0, shown[enum.named],
                      schema)  # fmt: skip
        by_oid[one.oid] = one
        yield from (one, array_of(one))
    for schema, name, domain in domains:
        below = by_oid[pg_type(domain.type).oid]
        functions = ("domain_in", below.functions[1], "domain_recv", below.functions[3], "-", "-", "-")
        one = replace(below, oid=own_oid(domain.name), array=own_oid(f"{domain.name}[]"), name=name, kind="d",
                      preferred=False, schema=schema, functions=functions, title=shown[domain.name], domain=domain,
                      base=below.oid)
        yield from (one, array_of(one))


