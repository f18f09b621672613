"""The functions of pg_proc: those of the function table, those of types, and the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from halfjoin.catalog.system.known import Known
from halfjoin.catalog.system.types import built_in
from halfjoin.sql.functions.aggregate_table import AGGREGATE_TABLE
from halfjoin.sql.functions.signature import ANY, ANY_ARRAY, Overload, type_named
from halfjoin.sql.functions.table import TABLE
from halfjoin.sql.oids import own_oid, pg_type

_ANYELEMENT, _ANYARRAY, _RECORD, _CSTRING, _INTERNAL, _BYTEA, _OID, _INTEGER = 2283, 2277, 2249, 2275, 2281, 17, 26, 23
_ANY, _ANYENUM = 2276, 3500
_OF_PARTS = ("array_in", "record_in")  # read values by the number of what these consist of, and by its modifier


@dataclass(frozen=True, slots=True)
class Procedure:
    """A row of pg_proc. `kind`: f function, a aggregate. `takes`: numbers of types; `arguments`, `result`: as text."""

    oid: int
    schema: str
    name: str
    kind: str
    takes: tuple[int, ...]
    returns: int
    arguments: str
    result: str
    set: bool = False
    volatile: str = "i"
    doc: str = ""

    @property
    def signature(self) -> str:
        """The name with its arguments."""
        return f"{self.name}({self.arguments.replace(', ', ',')})"


@cache
def _built_in() -> tuple[Procedure, ...]:
    return tuple(_made())


def _made() -> Iterator[Procedure]:
    for kind, table in (("f", TABLE), ("a", AGGREGATE_TABLE)):
        for entry in table:
            if not entry.name.replace("_", "").isalnum():
                continue  # an operator, or a form
            for overload in entry.overloads:
                takes, returns = _numbers(overload)
                arguments = ", ".join(_shown(one) for one in overload.params)
                yield Procedure(own_oid(f"function {entry.name}({arguments})"), "pg_catalog", entry.name, kind, takes,
                                returns, arguments, _shown(overload.result), doc=entry.doc)
    titles = {one.oid: one.title for one in built_in()}
    for name, (takes, returns) in _of_types().items():
        yield Procedure(own_oid(f"function {name}"), "pg_catalog", name, "f", takes, returns,
                        ", ".join(titles[one] for one in takes), titles[returns])  # fmt: skip


def _of_types() -> dict[str, tuple[tuple[int, ...], int]]:
    """The functions by which PostgreSQL reads and writes values of types, with what they take and return."""
    made: dict[str, tuple[tuple[int, ...], int]] = {
        "enum_in": ((_CSTRING, _OID), _ANYENUM), "enum_out": ((_ANYENUM,), _CSTRING),
        "enum_recv": ((_INTERNAL, _OID), _ANYENUM), "enum_send": ((_ANYENUM,), _BYTEA),
        "domain_in": ((_CSTRING, _OID, _INTEGER), _ANY), "domain_recv": ((_INTERNAL, _OID, _INTEGER), _ANY),
    }  # fmt: skip
    cstrings = next(one.array for one in built_in() if one.oid == _CSTRING)
    for one in built_in():
        reads, writes, receives, sends, modifies, shows, subscripts = one.functions
        type = _ANYARRAY if reads == "array_in" else one.oid
        more = (_OID, _INTEGER) if modifies != "-" or reads in _OF_PARTS or reads.endswith("range_in") else ()
        for name, takes, returns in (
            (reads, (_CSTRING, *more), type), (writes, (type,), _CSTRING), (receives, (_INTERNAL, *more), type),
            (sends, (type,), _BYTEA), (modifies, (cstrings,), _INTEGER), (shows, (_INTEGER,), _CSTRING),
            (subscripts, (_INTERNAL,), _INTERNAL),
        ):  # fmt: skip
            if name != "-":
                made.setdefault(name, (takes, returns))
    return made


def _numbers(overload: Overload) -> tuple[tuple[int, ...], int]:
    return tuple(map(type_number, overload.params)), type_number(overload.result)


def type_number(name: str) -> int:
    """The number of a type of the function table."""
    return {ANY: _ANYELEMENT, ANY_ARRAY: _ANYARRAY}.get(name) or pg_type(type_named(name)).oid


def _shown(name: str) -> str:
    return {ANY: "anyelement", ANY_ARRAY: "anyarray"}.get(name) or pg_type(type_named(name)).sql


def function_number(name: str) -> int:
    """The number of a function of a type; 0 for `-`."""
    return 0 if name == "-" else own_oid(f"function {name}")


def procedures(known: Known) -> tuple[Procedure, ...]:
    """All functions: built in, then the user's table functions."""
    own = tuple(
        Procedure(own_oid(f"table function {name}"), "public", name, "f", (), _RECORD, "", "TABLE("
                  + ", ".join(f"{column} {pg_type(type).sql}" for column, type in columns) + ")", True)
        for name, columns in known.catalog.functions.items()
    )  # fmt: skip
    return (*_built_in(), *own)
