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

_OF_OWN = ("enum_in", "enum_out", "enum_recv", "enum_send", "domain_in", "domain_recv")  # of enums and domains
_ANYELEMENT, _ANYARRAY, _RECORD = 2283, 2277, 2249


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
        return f"{self.name}({self.arguments})"


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
    names = dict.fromkeys((*_OF_OWN, *(name for one in built_in() for name in one.functions if name != "-")))
    for name in names:
        yield Procedure(own_oid(f"function {name}"), "pg_catalog", name, "f", (2275,), 2275, "cstring", "cstring")


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
