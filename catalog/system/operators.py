"""The operators of pg_operator: those of the function table whose names are symbols."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from halfjoin.catalog.system.procedures import type_number
from halfjoin.sql.functions.table import TABLE
from halfjoin.sql.oids import own_oid

_SYMBOLS = frozenset("+-*/<>=~!@#%^&|`?")
_PREFIX = {"neg": "-", "bit not": "~"}  # by the table's name
_NEGATED = {"=": "<>", "<": ">=", ">": "<=", "~": "!~", "~*": "!~*"}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", "@>": "<@", "&&": "&&"}
_NEGATORS = _NEGATED | {other: one for one, other in _NEGATED.items()}
_COMMUTATORS = _TURNED | {other: one for one, other in _TURNED.items()}


@dataclass(frozen=True, slots=True)
class Operator:
    """A row of pg_operator. `left` is 0 of one that stands before its argument; `left`, `right`, `result`: numbers of
    types."""

    name: str
    left: int
    right: int
    result: int
    doc: str

    @property
    def oid(self) -> int:
        """Its number."""
        return own_oid(f"operator {self.name}({self.left}, {self.right})")


@cache
def operators() -> tuple[Operator, ...]:
    """All operators. One that takes any type is there once, with anyelement on both sides."""
    return tuple(_made())


def _made() -> Iterator[Operator]:
    for entry in TABLE:
        name = _PREFIX.get(entry.name) or entry.name.removeprefix("jsonb ")
        if not _SYMBOLS.issuperset(name):
            continue
        for one in entry.overloads:
            *left, right = map(type_number, one.params)
            yield Operator(name, left[0] if left else 0, right, type_number(one.result), entry.doc)


def rows() -> Iterator[dict[str, object]]:
    """The rows of pg_operator."""
    known = {(one.name, one.left, one.right): one.oid for one in operators()}
    for one in operators():
        prefix, same = one.left == 0, one.left == one.right
        yield {"oid": one.oid, "oprname": one.name, "oprkind": "l" if prefix else "b", "oprleft": one.left,
               "oprright": one.right, "oprresult": one.result, "oprcanmerge": one.name == "=" and same,
               "oprcanhash": one.name == "=" and same,
               "oprcom": 0 if prefix else known.get((_COMMUTATORS.get(one.name, ""), one.right, one.left), 0),
               "oprnegate": 0 if prefix else known.get((_NEGATORS.get(one.name, ""), one.left, one.right), 0)}
